//! The migration of the guide (`guide/powertools/migration.md`): four versions of a function, of which two neighbours
//! may run at once, in either direction, without doing work twice.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use lambda_idempotency::{
    Call, CallExt as _, Failure, Function, Idempotency, Operation, RunContext, RunError,
    source::Sqs, testing,
};
use lambda_idempotency_tests::events::{batch, message, order};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    Language, Shared,
    theirs::{self, Form, Settings},
};

/// The versions of the function, in the order in which they are deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    /// Powertools.
    Powertools,
    /// This library, with the keys of Powertools.
    SameKeys,
    /// This library, with keys of its own and, inside, the keys of Powertools.
    BothKeys,
    /// This library, with keys of its own only.
    OwnKeys,
}
use Version::{BothKeys, OwnKeys, Powertools, SameKeys};

/// The steps of the migration. Each may also be taken back.
const STEPS: [(Version, Version); 3] =
    [(Powertools, SameKeys), (SameKeys, BothKeys), (BothKeys, OwnKeys)];

fn settings() -> Settings {
    Settings { prefix: None, form: Form::Records, ..Settings::by("powertools_json(body).orderId") }
}

/// What the work of an order is.
#[derive(Default)]
struct Work {
    done: AtomicU32,
    begun: Notify,
    /// Where the work stops until the test goes on.
    held: Option<Notify>,
}

impl Work {
    async fn place(&self) {
        self.done.fetch_add(1, Relaxed);
        if let Some(held) = &self.held {
            self.begun.notify_one();
            held.notified().await;
        }
    }
}

/// The work under the keys of Powertools, inside of a call under own keys.
async fn with_their_key(
    idempotency: Idempotency,
    theirs: Operation,
    order: Value,
    call: Call,
    work: Arc<Work>,
) -> Result<(), Failure> {
    let context = call.context().map_or(RunContext::without_deadline(), RunContext::from);
    let run = idempotency.run(&theirs, &order, &context, async |_| {
        work.place().await;
        Ok::<_, Failure>(())
    });
    match run.await {
        // Powertools keeps another result, and version 2 none, because it processes queue records.
        Ok(_) | Err(RunError::ResultLost(_)) => Ok(()),
        Err(RunError::Failed(failure)) => Err(failure),
        Err(error) => Err(Failure::transient(error)),
    }
}

/// One of our versions.
fn function(shared: &Shared, version: Version, work: Arc<Work>) -> Function {
    let idempotency = shared.ours.idempotency(None);
    let theirs = shared.ours.operation(&settings()).key("orderId");
    let own = Operation::new("place-order").key("orderId");
    let function = match version {
        Powertools => panic!("it is not a function of ours"),
        BothKeys => {
            let inside = idempotency.clone();
            // An operation of its own, so it has another name. The keys do not contain it.
            let settings = Settings { prefix: None, ..settings() };
            let theirs = shared.ours.named("place-order-of-powertools", &settings).key("orderId");
            idempotency.on(Sqs::new(), &own, move |order: Value, call: Call| {
                with_their_key(inside.clone(), theirs.clone(), order, call, Arc::clone(&work))
            })
        }
        SameKeys | OwnKeys => {
            let operation = if version == SameKeys { &theirs } else { &own };
            idempotency.on(Sqs::new(), operation, move |_: Value, _: Call| {
                let work = Arc::clone(&work);
                async move {
                    work.place().await;
                    Ok::<_, Failure>(())
                }
            })
        }
    };
    function.unwrap()
}

/// The ids that a batch response returns to the queue.
fn returned(answer: &Value) -> Vec<String> {
    let failures = answer["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|one| one["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}

/// Delivers a batch: how often the work was done, and the ids that are returned.
async fn deliver(shared: &mut Shared, version: Version, event: &Value) -> (u32, Vec<String>) {
    if version == Powertools {
        let event = event.to_string();
        let answer = shared.theirs.call(&settings(), theirs::Call::new(&event, "{\"placed\": 1}"));
        let done = answer["executed"].as_u64().unwrap().try_into().unwrap();
        return (done, returned(&answer["result"]));
    }
    let work = Arc::<Work>::default();
    let function = function(shared, version, Arc::clone(&work));
    let answer = testing::invoke(&function, event).await.unwrap();
    (work.done.load(Relaxed), returned(&answer))
}

fn one(id: &str) -> Value {
    batch([message(&format!("m-{id}"), &order(id))])
}

/// The work that `first` completed, delivered again to `second`: how often it is done in all.
async fn one_after_the_other(shared: &mut Shared, first: Version, second: Version) -> u32 {
    let event = one("o-1");
    let (done, returned) = deliver(shared, first, &event).await;
    assert_eq!((done, returned), (1, vec![]), "{first:?}");
    let (again, returned) = deliver(shared, second, &event).await;
    assert_eq!(returned, Vec::<String>::new(), "{first:?}, then {second:?}");
    shared.empty();
    done + again
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_do_not_repeat_completed_work() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for (old, new) in STEPS {
            for (first, second) in [(old, new), (new, old)] {
                let done = one_after_the_other(&mut shared, first, second).await;
                assert_eq!(done, 1, "{language:?}: {first:?}, then {second:?}");
            }
        }
    }
}

/// Why no step may be left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_are_further_apart_repeat_work() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for (first, second) in [(Powertools, OwnKeys), (SameKeys, OwnKeys), (OwnKeys, SameKeys)] {
            let done = one_after_the_other(&mut shared, first, second).await;
            assert_eq!(done, 2, "{language:?}: {first:?}, then {second:?}");
        }
    }
}

/// Delivers an order to `second` while `first` is working on it, and again when that has ended.
async fn at_once(shared: &mut Shared, first: Version, second: Version) {
    let (what, event) = (format!("{first:?} and {second:?}"), one("o-1"));
    let refused = (0, vec!["m-o-1".to_owned()]);
    if first == Powertools {
        let text = event.to_string();
        shared.theirs.begin(&settings(), theirs::Call::new(&text, "true"));
        assert_eq!(deliver(shared, second, &event).await, refused, "{what}");
        assert_eq!(shared.theirs.go_on()["executed"], 1, "{what}");
    } else {
        let work = Arc::new(Work { held: Some(Notify::new()), ..Work::default() });
        let function = function(shared, first, Arc::clone(&work));
        let other = async {
            work.begun.notified().await;
            assert_eq!(deliver(shared, second, &event).await, refused, "{what}");
            work.held.as_ref().unwrap().notify_one();
        };
        let (answer, ()) = tokio::join!(testing::invoke(&function, &event), other);
        assert_eq!(returned(&answer.unwrap()), Vec::<String>::new(), "{what}");
        assert_eq!(work.done.load(Relaxed), 1, "{what}");
    }
    assert_eq!(deliver(shared, second, &event).await, (0, vec![]), "{what}");
    shared.empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_do_not_begin_the_same_work() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for (old, new) in STEPS {
            at_once(&mut shared, old, new).await;
            at_once(&mut shared, new, old).await;
        }
    }
}

/// Both deliveries of a batch run at once, until each version has acknowledged each message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_both_functions_get_at_once_is_done_once() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        let ids: Vec<_> = (0..20).map(|n| format!("o-{n}")).collect();
        let event = batch(ids.iter().map(|id| message(&format!("m-{id}"), &order(id))));
        let work = Arc::<Work>::default();
        let ours = function(&shared, SameKeys, Arc::clone(&work));
        let (mut done, mut left) = (0, 1);
        for _ in 0..10 {
            let (mut process, text) = (shared.theirs, event.to_string());
            let asked = tokio::task::spawn_blocking(move || {
                let answer = process.call(&settings(), theirs::Call::new(&text, "true"));
                (process, answer)
            });
            let (asked, answer) = tokio::join!(asked, testing::invoke(&ours, &event));
            let by_them;
            (shared.theirs, by_them) = asked.unwrap();
            done += by_them["executed"].as_u64().unwrap();
            left = returned(&by_them["result"]).len() + returned(&answer.unwrap()).len();
            if left == 0 {
                break;
            }
        }
        assert_eq!((done + u64::from(work.done.load(Relaxed)), left), (20, 0), "{language:?}");
    }
}

/// Before the switch: the command makes the keys of a recorded event, of the payload and of the record, and finds the
/// records of Powertools there. Nothing is claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn their_records_are_found_before_the_switch() {
    let event = std::env::temp_dir().join(format!("before-the-switch-{}.json", std::process::id()));
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        let (name, prefix) = match language {
            Language::Python => ("powertools-python", "orders-fn.app.process_record"),
            Language::TypeScript => ("powertools-typescript", theirs::FUNCTION),
        };
        let (done, _) = deliver(&mut shared, Powertools, &one("o-1")).await;
        assert_eq!(done, 1);
        let before = shared.items();
        for key in ["orderId", "record:powertools_json(body).orderId"] {
            let powertools = ["--powertools", name, "--powertools-prefix", prefix, "--key", key];
            let show = |id: &str| {
                std::fs::write(&event, one(id).to_string()).unwrap();
                shared.show(&[&["--event", event.to_str().unwrap()][..], &powertools].concat())
            };
            assert_eq!(show("o-1"), "completed", "{language:?} {key}");
            assert_eq!(show("o-2"), Value::Null, "{language:?} {key}");
        }
        assert_eq!(shared.items(), before);
    }
    std::fs::remove_file(event).unwrap();
}
