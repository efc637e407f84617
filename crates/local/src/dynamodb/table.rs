//! The definition of a table.

use serde_json::{Value, json};

/// A table to create: a name, a partition key (a string), perhaps a sort key, an index and a time-to-live attribute.
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
    /// Its name and its partition key.
    index: Option<(String, String)>,
}

impl Table {
    /// A table with the partition key `key`, a string.
    pub fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { name: name.into(), key: key.into(), sort: None, ttl: None, index: None }
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

    /// With a global secondary index of the keys of items that have the attribute `key`, a string.
    ///
    /// ```
    /// # use lambda_idempotency_local::Table;
    /// let table = Table::new("idempotency", "id").index("unfinished", "unfinished");
    /// ```
    #[must_use]
    pub fn index(mut self, name: impl Into<String>, key: impl Into<String>) -> Self {
        self.index = Some((name.into(), key.into()));
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
        let key =
            |(name, kind): &(&String, &str)| json!({ "AttributeName": name, "KeyType": kind });
        let schema: Vec<_> = keys.iter().map(key).collect();
        let attributes = keys.iter().map(|(name, _)| *name);
        let attributes = attributes.chain(self.index.iter().map(|(_, key)| key));
        let attributes = attributes
            .map(|name| json!({ "AttributeName": name, "AttributeType": "S" }))
            .collect::<Vec<_>>();
        let mut request = json!({
            "TableName": self.name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": attributes,
            "KeySchema": schema,
        });
        if let (Some((name, attribute)), Value::Object(request)) = (&self.index, &mut request) {
            let index = json!([{
                "IndexName": name,
                "KeySchema": [key(&(attribute, "HASH"))],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            }]);
            request.insert("GlobalSecondaryIndexes".to_owned(), index);
        }
        request
    }

    pub(crate) fn ttl_request(&self) -> Option<Value> {
        let attribute = self.ttl.as_ref()?;
        Some(json!({
            "TableName": self.name,
            "TimeToLiveSpecification": { "AttributeName": attribute, "Enabled": true },
        }))
    }
}
