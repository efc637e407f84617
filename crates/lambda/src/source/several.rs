//! Several sources of one operation and one handler.

use super::contract::{Parts, Source, parts};

/// A [`Source`], or several that one handler takes: a tuple of up to eight, or a list of one type. Sealed.
///
/// ```
/// use lambda_idempotency::source::{EventBridge, Sqs};
/// # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
/// # async fn place_order(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
/// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
/// # let idempotency = Idempotency::new(MemoryStore::new());
/// # let place = Operation::new("place-order").key("orderId");
/// let both = (Sqs::new().queue("orders"), EventBridge::new().detail_type("OrderRequested").key("order.id"));
/// idempotency.on(both, &place, place_order)?;
///
/// let queues = ["orders", "orders-of-partners"].map(|queue| Sqs::new().queue(queue));
/// # let idempotency = Idempotency::new(MemoryStore::new());
/// idempotency.on(queues, &place, place_order)?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event source",
    label = "not an event source",
    note = "sources are types of `lambda_idempotency::source`, each made by `new()`: `Sqs::new()`, `Kinesis::new()`, ...",
    note = "several are a tuple: `(Sqs::new(), Kinesis::new())`",
    note = "the order of arguments is: source, operation, handler; requests of HTTP are for `Idempotency::http`"
)]
pub trait Sources: sealed::Several {}

mod sealed {
    pub trait Several {
        fn all(self) -> Vec<super::Parts>;
    }
}

/// Takes each source apart.
pub(crate) fn parts_of_each(sources: impl Sources) -> Vec<Parts> {
    sealed::Several::all(sources)
}

#[diagnostic::do_not_recommend]
impl<S: Source> Sources for S {}

impl<S: Source> sealed::Several for S {
    fn all(self) -> Vec<Parts> {
        vec![parts(self)]
    }
}

#[diagnostic::do_not_recommend]
impl<S: Source> Sources for Vec<S> {}

impl<S: Source> sealed::Several for Vec<S> {
    fn all(self) -> Vec<Parts> {
        self.into_iter().map(parts).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Source, const N: usize> Sources for [S; N] {}

impl<S: Source, const N: usize> sealed::Several for [S; N] {
    fn all(self) -> Vec<Parts> {
        self.into_iter().map(parts).collect()
    }
}

macro_rules! tuple {
    ($($source:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($source: Source),*> Sources for ($($source,)*) {}

        impl<$($source: Source),*> sealed::Several for ($($source,)*) {
            #[allow(non_snake_case, reason = "one name for a type and its value")]
            fn all(self) -> Vec<Parts> {
                let ($($source,)*) = self;
                vec![$(parts($source)),*]
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
