//! No expression exhausts the stack. `fuzz` tries expressions of every form.

use lambda_idempotency_keys::{
    Document, Expression, SelectionError,
    powertools::{PowertoolsKeys, PowertoolsLanguage},
};

use crate::bodies::{made, selector};

/// On a thread with little stack, as Tokio's workers have.
fn compile_and_select(text: String) -> Result<(), String> {
    let work = move || {
        let expression = Expression::compile(&text).map_err(|e| e.to_string())?;
        let list = "[".repeat(120) + "1" + &"]".repeat(120);
        for json in [r#"{"a":{"a":[1]}}"#, &list] {
            let _: Result<_, SelectionError> =
                expression.clone().select(&Document::parse(json).unwrap());
            for language in [PowertoolsLanguage::Python, PowertoolsLanguage::TypeScript] {
                let powertools = PowertoolsKeys::of(language, "p").accept_collisions();
                if let Ok(selector) = selector(&powertools, &text) {
                    let _: Result<_, SelectionError> = made(&selector, json).unwrap();
                }
            }
        }
        Ok(())
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap()
}

#[test]
fn no_expression_exhausts_the_stack() {
    let shapes = [
        ("[", "a", "]"),
        ("{a:", "a", "}"),
        ("a.", "a", ""),
        ("", "a", "[*]"),
        ("", "@", "[0]"),
        ("a|", "a", ""),
        ("json(", "a", ")"),
        ("not_null(", "a", ")"),
        ("json(a.[", "a", "])"),
        ("a[*].", "a", ""),
        ("@ | [@, ", "@", "]"),
    ];
    for (before, middle, after) in shapes {
        for levels in [30, 50, 100, 1000] {
            let text = before.repeat(levels) + middle + &after.repeat(levels);
            let compiled = compile_and_select(text);
            assert!(levels < 1000 || compiled.is_err(), "{before}{middle}{after}");
        }
    }
}
