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

/// The template with this JSON at a pointer, or without what is there. Without a slash at its beginning, a pointer goes into the
/// properties of a resource: `Queue/VisibilityTimeout`.
pub(crate) fn breaking(template: &Value, pointer: &str, json: &str) -> Value {
    let into_resource = |(name, property)| format!("/Resources/{name}/Properties/{property}");
    let path = if pointer.starts_with('/') { None } else { pointer.split_once('/') };
    let path = path.map_or_else(|| pointer.to_owned(), into_resource);
    let parsed = || serde_json::from_str::<Value>(json).unwrap_or_else(|_| panic!("{json}"));
    let value = (!json.is_empty()).then(parsed);
    let mut broken = template.clone();
    let (parent, last) = path.rsplit_once('/').unwrap();
    match (broken.pointer_mut(parent), value) {
        (Some(Value::Object(object)), Some(value)) => drop(object.insert(last.to_owned(), value)),
        (Some(Value::Object(object)), None) => drop(object.remove(last)),
        (Some(Value::Array(array)), value) => {
            let index: usize = last.parse().unwrap();
            array.splice(index..(index + 1).min(array.len()), value);
        }
        _ => {}
    }
    assert!(broken != *template, "{pointer}: the template did not change");
    broken
}

/// The template as it is deployed: once for each timeout of the function that can be chosen, with all that is optional and
/// without.
pub(crate) fn deployed(template: &Value) -> Vec<Value> {
    let timeouts = items(at(template, "/Parameters/FunctionTimeout/AllowedValues"));
    let timeouts = if timeouts.is_empty() { &[Value::Null] } else { timeouts };
    let choices = timeouts.iter().flat_map(|timeout| [true, false].map(|all| (timeout, all)));
    let choose = |(timeout, all): (&Value, bool)| {
        let mut chosen = chosen(template, template, timeout, all);
        let is_there = |_: &String, resource: &mut Value| all || resource["Condition"].is_null();
        let resources = chosen["Resources"].as_object_mut();
        resources.unwrap_or(&mut Map::new()).retain(is_there);
        chosen
    };
    choices.map(choose).collect()
}

fn chosen(value: &Value, template: &Value, timeout: &Value, all: bool) -> Value {
    let choose = |value: &Value| chosen(value, template, timeout, all);
    let is_there = |value: &Value| *value != json!({ "Ref": "AWS::NoValue" });
    if value["Ref"] == "FunctionTimeout" {
        return timeout.clone();
    }
    if let [_, some, none] = items(&value["Fn::If"]) {
        return choose(if all { some } else { none });
    }
    if let [map, key, field] =
        items(&value["Fn::FindInMap"]).iter().map(choose).collect::<Vec<_>>().as_slice()
    {
        let names =
            [map, key, field].map(|name| name.as_str().map_or(name.to_string(), str::to_owned));
        return at(template, &format!("/Mappings/{}", names.join("/"))).clone();
    }
    match value {
        Value::Array(items) => items.iter().map(choose).filter(is_there).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| (name.clone(), choose(member)));
            members.filter(|(_, member)| is_there(member)).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
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
