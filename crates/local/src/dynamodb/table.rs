//! The definition of a table.

use serde_json::{Value, json};

/// A table to create: a name, a partition key (a string), perhaps a sort key and a time-to-live attribute.
///
/// ```
/// # use lambda_idempotency_local::Table;
/// let table = Table::new("idempotency", "id").ttl("expiration");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(crate) name: String,
    key: String,
    sort: Option<String>,
    ttl: Option<String>,
}

impl Table {
    /// A table with the partition key `key`, a string.
    pub fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { name: name.into(), key: key.into(), sort: None, ttl: None }
    }

    /// With a sort key, a string.
    #[must_use]
    pub fn sort(mut self, key: impl Into<String>) -> Self {
        self.sort = Some(key.into());
        self
    }

    /// With a time to live by this attribute, in epoch seconds.
    #[must_use]
    pub fn ttl(mut self, attribute: impl Into<String>) -> Self {
        self.ttl = Some(attribute.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its partition key.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn create_request(&self) -> Value {
        let keys = [(Some(&self.key), "HASH"), (self.sort.as_ref(), "RANGE")];
        let keys: Vec<_> =
            keys.into_iter().filter_map(|(name, kind)| Some((name?, kind))).collect();
        json!({
            "TableName": self.name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions":
                keys.iter().map(|(name, _)| json!({ "AttributeName": name, "AttributeType": "S" })).collect::<Vec<_>>(),
            "KeySchema":
                keys.iter().map(|(name, kind)| json!({ "AttributeName": name, "KeyType": kind })).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn ttl_request(&self) -> Option<Value> {
        let attribute = self.ttl.as_ref()?;
        Some(json!({
            "TableName": self.name,
            "TimeToLiveSpecification": { "AttributeName": attribute, "Enabled": true },
        }))
    }
}
