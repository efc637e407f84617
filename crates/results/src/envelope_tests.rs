use super::*;

fn every_steps() -> Vec<Steps> {
    let ids = [None, Some("2026-11".into()), Some("arn:aws:kms:eu-west-1:1:key/a".into())];
    let with = |zlib| ids.clone().map(|key_id| Steps { zlib, key_id });
    with(true).into_iter().chain(with(false)).collect()
}

#[test]
fn every_form_is_read_as_it_was_written() {
    for steps in every_steps() {
        for content in [&b""[..], b"1", b" two  words ", &[0, 255, b' ', b'"']] {
            let text = here(&steps, content);
            assert_eq!(text.len(), length_here(&steps, content.len()));
            assert_eq!(read(&text), Ok(Some(Stored::Here(steps.clone(), content.to_vec()))));
            let object = object(&steps, content);
            assert_eq!(read_object(object), Ok((steps.clone(), content.to_vec())));
        }
    }
    let name = ResultName::new(&Key::from_text("a"), b"content");
    assert_eq!(read(&elsewhere(&name)), Ok(Some(Stored::Elsewhere(name))));
}

#[test]
fn a_form_of_another_version_or_with_unknown_steps_is_not_read() {
    for text in [
        "lambda-idempotency:2 plain MQ",
        "lambda-idempotency:1 zstd MQ",
        "lambda-idempotency:1 zlib,zlib MQ",
        "lambda-idempotency:1 aes-256-gcm= MQ",
        "lambda-idempotency:1 aes-256-gcm=a,zlib MQ",
    ] {
        assert!(matches!(read(&format!("\"{text}\"")), Err(Unreadable::UnknownForm)), "{text}");
        assert!(matches!(read_object(text.into()), Err(Unreadable::UnknownForm)), "{text}");
    }
    assert!(read("\"lambda-idempotency:\"").is_err());
}

#[test]
fn a_form_that_was_cut_off_is_damaged() {
    let whole = here(&Steps::default(), b"12345");
    for end in MARK.len() + 1..whole.len() {
        assert!(read(&whole[..end]).is_err(), "{}", &whole[..end]);
    }
    let whole = object(&Steps::default(), b"");
    for end in 0..whole.len() {
        assert!(read_object(whole[..end].to_vec()).is_err(), "{end}");
    }
}

#[test]
fn a_name_that_is_a_path_is_not_looked_up() {
    for name in ["", "../secrets", "https://example.com", "a/b", &"0".repeat(129)] {
        let text = format!("\"lambda-idempotency:1 elsewhere {name}\"");
        assert_eq!(read(&text), Err(Unreadable::Damaged), "{name}");
    }
}

#[test]
fn what_an_encrypted_content_is_bound_to_differs_in_each_part() {
    let (key, steps) = (Key::from_text("a"), Steps { zlib: false, key_id: Some("k".into()) });
    let about = steps.about(Part::Result, &key, Some(Owner::from_bits(1)));
    let others = [
        steps.about(Part::Result, &Key::from_text("b"), Some(Owner::from_bits(1))),
        steps.about(Part::Result, &key, Some(Owner::from_bits(2))),
        steps.about(Part::Result, &key, None),
        steps.about(Part::Outbox, &key, Some(Owner::from_bits(1))),
        steps.about(Part::Steps, &key, Some(Owner::from_bits(1))),
        Steps { zlib: true, ..steps.clone() }.about(Part::Result, &key, Some(Owner::from_bits(1))),
    ];
    assert!(others.iter().all(|other| *other != about));
}

#[test]
fn a_string_that_a_store_may_write_as_the_mark_looks_stored() {
    for result in [
        "\"lambda-idempotency:1 plain MQ\"",
        " \"lambda-idempotency:\"",
        "\"\\u006cambda-idempotency:1 plain MQ\"",
        "\"lambda\\u002didempotency:1 plain MQ\"",
    ] {
        assert!(looks_stored(result), "{result}");
    }
    for result in ["1", "null", "\"lambda\"", "{\"lambda-idempotency:\":1}", "\"\"", "\""] {
        assert!(!looks_stored(result), "{result}");
    }
}
