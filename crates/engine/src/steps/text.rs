//! How the results of steps are stored: as a JSON object of their names. Stores keep the text, and nothing else
//! in this project reads it.

use std::{collections::BTreeMap, sync::Arc};

use lambda_idempotency_core::record::Json;
use serde_json::value::RawValue;

use super::StepError;

/// The results of steps that have ended, by name.
#[derive(Clone, Default)]
pub(super) struct Results(BTreeMap<Arc<str>, Box<RawValue>>);

impl Results {
    /// Reads what an attempt before has stored.
    pub(super) fn parse(text: Option<&Json>) -> Result<Self, StepError> {
        let Some(text) = text else { return Ok(Self::default()) };
        serde_json::from_str(text).map(Self).map_err(|_| StepError::Unreadable)
    }

    pub(super) fn text(&self) -> Result<Json, StepError> {
        serde_json::to_string(&self.0).map(Json::from).map_err(|_| StepError::Unreadable)
    }

    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|result| &**result)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, name: Arc<str>, result: Box<RawValue>) {
        self.0.insert(name, result);
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn results_are_an_object_of_names_and_are_kept_byte_for_byte() {
        let mut results = Results::default();
        results.insert("ship".into(), raw("null"));
        results.insert("charge".into(), raw("{\"id\": 1.0}"));
        let text = results.text().unwrap();
        assert_eq!(&*text, "{\"charge\":{\"id\": 1.0},\"ship\":null}");
        let again = Results::parse(Some(&text)).unwrap();
        assert_eq!(again.get("charge").unwrap().get(), "{\"id\": 1.0}");
        assert_eq!((again.len(), again.get("bill").is_none()), (2, true));
    }

    #[test]
    fn a_text_that_is_not_an_object_is_unreadable() {
        for text in ["", "[]", "{\"charge\":", "1"] {
            let read = Results::parse(Some(&text.into()));
            assert!(matches!(read, Err(StepError::Unreadable)), "{text}");
        }
    }
}
