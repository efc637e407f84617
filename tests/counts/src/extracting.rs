//! From the text of a record to its key.

use std::hint::black_box;

use lambda_idempotency_keys::{Document, Expression, FieldSet, KeyFormat, Scope};

use crate::cases::Case;

const BODY: &str = r#"{"tenant":"acme","order":{"id":"o-2026-000042","lines":[{"sku":"A-100","quantity":2,"price":19.95},{"sku":"B-7","quantity":1,"price":5.5}]},"amount":45.4,"currency":"EUR","note":"leave at the door"}"#;

const EXPRESSIONS: [(&str, &str); 3] =
    [("one field", "order.id"), ("two fields", "[tenant, order.id]"), ("the whole payload", "@")];

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    EXPRESSIONS.into_iter().map(|(name, text)| {
        Case::new(format!("key of {name}"), move || {
            let expression = Expression::compile(text).expect("it is valid");
            let fields = FieldSet::of(std::slice::from_ref(&expression));
            Box::new(move || {
                let document = Document::read(black_box(BODY), &fields).expect("it is JSON");
                let selection = expression.select(&document).expect("it has them");
                let scope = Scope { operation: "place-order", tenant: None };
                black_box(KeyFormat::Hashed.key(&scope, &selection));
            })
        })
    })
}
