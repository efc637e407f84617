//! What functions that read text need to know while an expression is evaluated: from which side to
//! read numbers that are not exact, what the expression looks at, and how much may still be
//! decompressed. They note if they met any such number.
//!
//! JMESPath's interpreter has no place for that, so it is the thread's for that long.

use std::{cell::RefCell, collections::BTreeMap, mem, sync::Arc};

use jmespath::Rcvar;

use super::{
    Document, DocumentError, decode,
    document::MOST_BYTES,
    numeral::Side,
    reads::{Node, Text},
    texts::Texts,
};

/// What the expression looks at in the texts that it reads, by the calls that read them.
type Calls = Arc<BTreeMap<usize, Text>>;

struct Evaluation {
    side: Side,
    met_inexact: bool,
    calls: Option<Calls>,
    /// The texts that several calls share.
    shared: Option<Arc<Texts>>,
    /// How many bytes may still be decompressed: a list of small texts must not fill the memory.
    room: usize,
}

impl Evaluation {
    const fn new(side: Side, calls: Option<Calls>, shared: Option<Arc<Texts>>) -> Self {
        Self { side, met_inexact: false, calls, shared, room: MOST_BYTES }
    }
}

thread_local! {
    static NOW: RefCell<Evaluation> =
        const { RefCell::new(Evaluation::new(Side::Below, None, None)) };
}

/// Evaluates on a document with numbers read from `side`; also says whether one was met that is not
/// exact.
///
/// A function may evaluate another expression, so what was there before is put back.
pub(super) fn on<T>(
    side: Side,
    calls: &Calls,
    document: &Document,
    evaluate: impl FnOnce(&Rcvar) -> T,
) -> (T, bool) {
    let new = Evaluation::new(side, Some(Arc::clone(calls)), document.texts().cloned());
    let outer = NOW.with_borrow_mut(|now| mem::replace(now, new));
    let value = evaluate(document.on(side));
    (value, NOW.with_borrow_mut(|now| mem::replace(now, outer)).met_inexact)
}

/// The value of a JSON text, as far as the expression looks at what the call at `offset` gives.
pub(super) fn json(text: &str, offset: usize) -> Result<Rcvar, DocumentError> {
    let (calls, shared) = NOW.with_borrow(|now| (now.calls.clone(), now.shared.clone()));
    let call = calls.as_ref().and_then(|calls| calls.get(&offset));
    let shared = shared.as_ref().zip(call).and_then(|(shared, call)| shared.read(text, call));
    if let Some(document) = shared {
        return Ok(value(document));
    }
    let wanted = call.map_or(&Node::All, |call| &call.wanted);
    Ok(value(&Document::reading(text, wanted)?))
}

/// The text that `text` is the base64 of the gzip of.
pub(super) fn base64_gzip(text: &str) -> Result<String, &'static str> {
    let plain = decode::base64_gzip(text, NOW.with_borrow(|now| now.room))?;
    NOW.with_borrow_mut(|now| now.room = now.room.saturating_sub(plain.len()));
    Ok(plain)
}

/// The value of a document that a function has read.
pub(super) fn value(document: &Document) -> Rcvar {
    NOW.with_borrow_mut(|now| {
        now.met_inexact |= !document.is_exact();
        Rcvar::clone(document.on(now.side))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_inside_another_leaves_no_trace() {
        let [exact, inexact] = ["1", "0.1000000000000000055"].map(|n| Document::parse(n).unwrap());
        let (inner, outer) = on(Side::Above, &Arc::default(), &exact, |_| {
            let (_, inner) = on(Side::Below, &Arc::default(), &exact, |_| value(&inexact));
            assert_eq!(value(&inexact).as_number(), inexact.on(Side::Above).as_number());
            inner
        });
        assert!(inner && outer);
        assert!(!on(Side::Above, &Arc::default(), &inexact, |_| value(&exact)).1);
    }
}
