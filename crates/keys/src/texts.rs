//! JSON texts inside a document that are read more than once: each is parsed once for all.
//!
//! A key and a fingerprint that both look into `json(body)` share what is read of the body.

use std::sync::{Arc, OnceLock};

use super::{
    Document,
    reads::{Text, Wanted},
};

/// A text that several calls of `json` read: known when a function starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    path: Vec<String>,
    /// What all the calls together look at.
    wanted: Wanted,
    calls: usize,
}

impl Shared {
    /// Adds a call that reads a text; one that is computed is no other call's.
    pub(super) fn add(all: &mut Vec<Self>, text: &Text) {
        let Some(path) = &text.path else { return };
        if let Some(known) = all.iter_mut().find(|shared| shared.path == *path) {
            known.wanted.merge(&text.wanted);
            known.calls += 1;
        } else {
            all.push(Self { path: path.clone(), wanted: text.wanted.clone(), calls: 1 });
        }
    }

    pub(super) const fn is_shared(&self) -> bool {
        self.calls > 1
    }
}

/// Those of one document, each read when it is first asked for.
pub(super) struct Texts {
    shared: Arc<[Shared]>,
    /// In the same order; `None` of what cannot be read for all of the calls.
    read: Vec<OnceLock<Option<Document>>>,
}

impl Texts {
    /// None where nothing is shared, as in most documents.
    pub(super) fn of(shared: &Arc<[Shared]>) -> Option<Arc<Self>> {
        let read = || shared.iter().map(|_| OnceLock::new()).collect();
        (!shared.is_empty()).then(|| Arc::new(Self { shared: Arc::clone(shared), read: read() }))
    }

    /// What was read of the text of a call. `None` if the call has to read it alone: it is not
    /// shared, or what another call looks at is bad, which is no business of this one.
    pub(super) fn read(&self, text: &str, call: &Text) -> Option<&Document> {
        let path = call.path.as_ref()?;
        let (shared, read) =
            self.shared.iter().zip(&self.read).find(|(shared, _)| shared.path == *path)?;
        if !shared.wanted.covers(&call.wanted) {
            return None;
        }
        read.get_or_init(|| Document::reading(text, &shared.wanted).ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Expression, Reads, SelectionError};
    use super::*;

    fn expressions<const N: usize>(texts: [&str; N]) -> [Expression; N] {
        texts.map(|text| Expression::compile(text).unwrap())
    }

    #[test]
    fn what_several_calls_read_is_parsed_once() {
        let both = expressions(["json(body).id", "[json(body).n, powertools_json(x.body).a]"]);
        let reads = Reads::of(&both);
        let [shared] = &*reads.shared else { panic!("{reads:?}") };
        assert_eq!((&*shared.path, shared.calls), (&["body".to_owned()][..], 2));
        let json =
            r#"{"body":"{\"id\":\"a\",\"n\":0.1000000000000000055}","x":{"body":"{\"a\":1}"}}"#;
        let document = Document::read(json, &reads).unwrap();
        let texts = document.texts().unwrap();
        let read = || texts.read.first().unwrap().get().map(|read| read.as_ref().unwrap());
        assert!(read().is_none(), "not before it is asked for");
        for (expression, expected) in
            both.iter().zip([Ok(&b"\"a\""[..]), Err(SelectionError::InexactNumber)])
        {
            let selected = expression.select(&document);
            let selected = selected.as_ref().map(|selection| selection.canonical_bytes());
            assert_eq!(selected, expected.as_ref().map(|bytes| *bytes));
        }
        let first: *const Document = read().unwrap();
        let again = both.iter().map(|expression| expression.evaluate(&document).is_ok());
        assert_eq!(again.collect::<Vec<_>>(), [true, false]);
        assert!(std::ptr::eq(first, read().unwrap()));
    }

    #[test]
    fn nothing_is_kept_of_what_one_call_reads() {
        for texts in [
            ["json(body).id", "amount"],
            ["json(body).id", "json(other).id"],
            ["json(a.body).id", "a.json(base64(body)).id"],
            ["json(body).id", "map(&json(@).id, bodies)"],
            ["json(list[0]).id", "json(list[1]).id"],
        ] {
            assert!(Reads::of(&expressions(texts)).shared.is_empty(), "{texts:?}");
        }
        for texts in [["json(a.body).id", "a.json(body).n"], ["a | json(body)", "json(a.body)"]] {
            assert_eq!(Reads::of(&expressions(texts)).shared.len(), 1, "{texts:?}");
        }
    }

    /// As each would have fared with a document of its own.
    #[test]
    fn what_one_call_looks_at_does_no_harm_to_another() {
        let both = expressions(["json(body).id", "json(body).n"]);
        let [id, n] = &both;
        for bad in ["1,\\\"n\\\":2", "1e999", "\\\"\\\\ud800\\\""] {
            let json = format!(r#"{{"body":"{{\"id\":\"a\",\"n\":{bad}}}"}}"#);
            let document = Document::read(&json, &Reads::of(&both)).unwrap();
            assert_eq!(id.select(&document).unwrap().canonical_bytes(), b"\"a\"", "{json}");
            assert!(
                matches!(n.select(&document), Err(SelectionError::Evaluation { .. })),
                "{json}"
            );
        }
        // One that was not known when the document was read has what it looks at all the same.
        let [other] = expressions(["json(body).other"]);
        let json = r#"{"body":"{\"id\":1,\"n\":2,\"other\":3}"}"#;
        let document = Document::read(json, &Reads::of(&both)).unwrap();
        for (expression, expected) in [(id, b"1"), (&other, b"3"), (n, b"2")] {
            assert_eq!(expression.select(&document).unwrap().canonical_bytes(), expected);
        }
    }
}
