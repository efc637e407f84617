//! Makes payloads of different work from one payload: changes the member in which they differ.

use serde_json::Value;

/// Changes the member at this path for the nth piece of work: `p` becomes `p-7`, and 40 becomes 47. A text on the path
/// that is itself JSON, as the body of a message with a notification, is read and written again. Says whether there is
/// such a member, a text or a whole number.
pub(crate) fn vary(value: &mut Value, path: &[String], nth: usize) -> bool {
    match (path, value) {
        ([], Value::String(text)) => {
            *text = format!("{text}-{nth}");
            true
        }
        ([], Value::Number(number)) => match number.as_i64() {
            Some(integer) => {
                *number = integer.saturating_add(as_i64(nth)).into();
                true
            }
            None => false,
        },
        ([name, rest @ ..], Value::Object(members)) => {
            members.get_mut(name).is_some_and(|member| vary(member, rest, nth))
        }
        (path @ [_, ..], Value::String(text)) => {
            let Ok(mut inner) = serde_json::from_str::<Value>(text) else { return false };
            let is_varied = inner.is_object() && vary(&mut inner, path, nth);
            if is_varied {
                *text = inner.to_string();
            }
            is_varied
        }
        _ => false,
    }
}

/// As [`vary`], in an item of DynamoDB: `{"paymentId": {"S": "p"}}`.
pub(crate) fn vary_item(item: &mut Value, path: &[String], nth: usize) -> bool {
    let [name, rest @ ..] = path else { return false };
    let Some(attribute) = item.get_mut(name) else { return false };
    if !rest.is_empty() {
        return attribute.get_mut("M").is_some_and(|map| vary_item(map, rest, nth));
    }
    if let Some(Value::String(text)) = attribute.get_mut("S") {
        *text = format!("{text}-{nth}");
        return true;
    }
    if let Some(Value::String(number)) = attribute.get_mut("N")
        && let Ok(integer) = number.parse::<i64>()
    {
        *number = integer.saturating_add(as_i64(nth)).to_string();
        return true;
    }
    false
}

fn as_i64(nth: usize) -> i64 {
    i64::try_from(nth).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn texts_and_whole_numbers_are_varied_also_in_nested_json() {
        for (mut value, member, expected) in [
            (json!({ "id": "p" }), "id", json!({ "id": "p-2" })),
            (json!({ "a": { "n": 40 } }), "a.n", json!({ "a": { "n": 42 } })),
            (
                json!({ "Message": "{\"id\":\"p\"}" }),
                "Message.id",
                json!({ "Message": "{\"id\":\"p-2\"}" }),
            ),
        ] {
            assert!(vary(&mut value, &path(member), 2));
            assert_eq!(value, expected);
        }
        for (value, member) in
            [(json!({ "id": 1.5 }), "id"), (json!({ "id": [] }), "id"), (json!("p"), "id")]
        {
            assert!(!vary(&mut value.clone(), &path(member), 2), "{value}");
        }
    }

    #[test]
    fn attributes_of_an_item_are_varied() {
        let mut item = json!({ "id": { "S": "p" }, "a": { "M": { "n": { "N": "40" } } } });
        assert!(vary_item(&mut item, &path("id"), 2) && vary_item(&mut item, &path("a.n"), 2));
        assert_eq!(item, json!({ "id": { "S": "p-2" }, "a": { "M": { "n": { "N": "42" } } } }));
        assert!(!vary_item(&mut item, &path("b"), 2) && !vary_item(&mut item, &path("a"), 2));
    }
}
