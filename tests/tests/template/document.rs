//! A CloudFormation template as JSON, with pointers into it.

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;

/// YAML to JSON, CloudFormation's short tags (`!Ref x`) to its long form (`{"Ref": x}`).
pub(crate) fn long_form(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(bool) => bool.into(),
        Yaml::Number(number) => serde_json::to_value(number).unwrap(),
        Yaml::String(string) => string.into(),
        Yaml::Sequence(items) => items.into_iter().map(long_form).collect(),
        Yaml::Mapping(entries) => entries
            .into_iter()
            .map(|(key, value)| (key.as_str().unwrap().to_owned(), long_form(value)))
            .collect::<Map<_, _>>()
            .into(),
        Yaml::Tagged(tagged) => {
            let tag = tagged.tag.to_string();
            let name = match tag.trim_start_matches('!') {
                name @ ("Ref" | "Condition") => name.to_owned(),
                name => format!("Fn::{name}"),
            };
            json!({ name: long_form(tagged.value) })
        }
    }
}

/// The template with what is at `pointer` replaced, added or, without a `value`, removed.
pub(crate) fn breaking(template: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut broken = template.clone();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let parent = broken.pointer_mut(parent).unwrap_or_else(|| panic!("no {pointer}"));
    match (parent, value) {
        (Value::Object(object), Some(value)) => {
            object.insert(last.to_owned(), value);
        }
        (Value::Object(object), None) => {
            object.remove(last).unwrap_or_else(|| panic!("no {pointer}"));
        }
        (Value::Array(array), value) => {
            let index: usize = last.parse().unwrap();
            array.splice(index..(index + 1).min(array.len()), value);
        }
        _ => panic!("{pointer}: its parent has no members"),
    }
    assert!(broken != *template, "{pointer}: the template did not change");
    broken
}

pub(crate) fn at<'a>(template: &'a Value, pointer: &str) -> &'a Value {
    template.pointer(pointer).unwrap_or(&Value::Null)
}

pub(crate) fn get_att(path: &str) -> Value {
    json!({ "Fn::GetAtt": path })
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn entries(value: &Value) -> Vec<(&String, &Value)> {
    value.as_object().map(|object| object.iter().collect()).unwrap_or_default()
}

pub(crate) fn keys(value: &Value) -> Vec<&str> {
    entries(value).into_iter().map(|(key, _)| key.as_str()).collect()
}

/// The resources of this type, by name.
pub(crate) fn of_type<'t>(template: &'t Value, wanted: &str) -> Vec<(&'t str, &'t Value)> {
    let resources = entries(at(template, "/Resources")).into_iter();
    resources
        .filter(|(_, resource)| resource["Type"] == wanted)
        .map(|(name, resource)| (name.as_str(), resource))
        .collect()
}

/// The resource that a `Ref` or a `GetAtt` names.
pub(crate) fn target(value: &Value) -> &str {
    let reference = value["Ref"].as_str().or_else(|| value["Fn::GetAtt"].as_str());
    reference.unwrap_or_default().split('.').next().unwrap_or_default()
}

/// The properties of the resource that a `Ref` or a `GetAtt` names.
pub(crate) fn referred<'t>(template: &'t Value, value: &Value) -> &'t Value {
    at(template, &format!("/Resources/{}/Properties", target(value)))
}
