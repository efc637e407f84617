//! The names of an item's attributes.

use std::borrow::Cow;

/// DynamoDB's limit for a sort key.
pub(crate) const LONGEST_SORT_KEY: usize = 1024;
/// DynamoDB's limit for a partition key.
pub(crate) const LONGEST_PARTITION: usize = 2048;

/// The names of the attributes of an item.
///
/// The first six are those of [Powertools for AWS Lambda][powertools], so that a Rust function can
/// share a table with a Python or TypeScript one. Set the table's time-to-live attribute to the one
/// named by `expiration`.
///
/// ```
/// use lambda_idempotency_dynamodb::Attributes;
///
/// let mut names = Attributes::default();
/// assert_eq!(names.id, "id");
/// names.id = "pk".into();
/// names.expiration = "ttl".into();
/// ```
///
/// [powertools]: https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// S: the idempotency key; the table's partition key. Default `id`.
    pub id: Cow<'static, str>,
    /// S: `INPROGRESS`, `COMPLETED` or `FAILED`. Default `status`.
    pub status: Cow<'static, str>,
    /// N: when the record expires, in seconds since the epoch. Default `expiration`.
    pub expiration: Cow<'static, str>,
    /// N: when the lease ends, in milliseconds since the epoch. Default `in_progress_expiration`.
    pub in_progress_expiration: Cow<'static, str>,
    /// S: the result as JSON text. Default `data`.
    pub data: Cow<'static, str>,
    /// S: the fingerprint of the payload. Default `validation`.
    pub validation: Cow<'static, str>,
    /// S: the token of the claim that holds the key. Default `owner`.
    pub owner: Cow<'static, str>,
    /// S: the token of the claim that released or undid the key. Default `last_owner`.
    pub last_owner: Cow<'static, str>,
    /// N: the number of failed attempts; not written if zero. Default `failed_attempts`.
    pub failed_attempts: Cow<'static, str>,
    /// N: the number of lost attempts; not written if zero. Default `lost_attempts`.
    pub lost_attempts: Cow<'static, str>,
    /// N: the number of attempts lost one after the other, up to the last one; not written if zero.
    /// Default `consecutive_losses`.
    pub consecutive_losses: Cow<'static, str>,
    /// N: the fence of the last claim. Default `fence`.
    pub fence: Cow<'static, str>,
    /// S: the type of the last error. Default `error`.
    pub error: Cow<'static, str>,
    /// S: the application that claimed the key, if it has a name. Default `application`.
    pub application: Cow<'static, str>,
    /// M: where the last claim came from, for people who look at the table: `claimed_at` (N, in
    /// milliseconds since the epoch) and, as far as they are known, `request_id`, `function`, `version`,
    /// `log_stream`, `source` and `record` (S). Default `provenance`.
    pub provenance: Cow<'static, str>,
    /// S: what the finished steps of the handler returned, as JSON text. Default `steps`.
    pub steps: Cow<'static, str>,
    /// S: the messages that are not yet known to be sent, as JSON text. Default `outbox`.
    pub outbox: Cow<'static, str>,
    /// S: the payload, if the operation keeps it until the key is completed, as JSON text. Default
    /// `payload`.
    pub payload: Cow<'static, str>,
    /// S: where an [index](crate::DynamoDbStoreBuilder::index) has the item, as `messages#07`; only while it has an `outbox`
    /// or a `payload`. Default `unfinished`.
    pub unfinished: Cow<'static, str>,
    /// For a table with a sort key. Default none.
    pub sort_key: Option<SortKey>,
    /// The form in which `data` is written. Default JSON text.
    pub data_form: DataForm,
}

/// The sort key of a table that also holds other items.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SortKey {
    /// S: the attribute that holds the idempotency key, in place of [`Attributes::id`].
    pub name: Cow<'static, str>,
    /// In which partition a record is.
    pub partition: Partition,
}

/// In which partition of a table with a sort key a record is: the value of [`Attributes::id`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partition {
    /// All records are in this one, as with `sort_key_attr` and `static_pk_value` of Powertools, whose default is
    /// `idempotency#` and the name of the function. Listing reads it alone.
    ///
    /// They share its throughput: DynamoDB allows 1000 writes a second, and throttles what is above until it has split
    /// the partition.
    Static(Cow<'static, str>),
    /// Each record has one of its own: this prefix, and then the idempotency key. No partition is hot. Listing passes
    /// over the whole table.
    Derived {
        /// The beginning of the partitions. No other item of the table may begin so.
        prefix: Cow<'static, str>,
    },
}

impl SortKey {
    /// The attribute of the sort key, and the [partition](Partition::Static) in which all records are.
    ///
    /// ```
    /// use lambda_idempotency_dynamodb::{Attributes, SortKey};
    ///
    /// let mut names = Attributes::default();
    /// names.sort_key = Some(SortKey::new("sk", "idempotency#orders-fn"));
    /// ```
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        partition: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name: name.into(), partition: Partition::Static(partition.into()) }
    }

    /// The attribute of the sort key, and what the [partition of each record](Partition::Derived) begins with.
    ///
    /// ```
    /// use lambda_idempotency_dynamodb::{Attributes, SortKey};
    ///
    /// let mut names = Attributes::default();
    /// (names.id, names.sort_key) = ("PK".into(), Some(SortKey::derived("SK", "idempotency#")));
    /// ```
    #[must_use]
    pub fn derived(
        name: impl Into<Cow<'static, str>>,
        prefix: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name: name.into(), partition: Partition::Derived { prefix: prefix.into() } }
    }
}

impl Partition {
    /// The partition of this key.
    pub(crate) fn of(&self, key: &str) -> String {
        match self {
            Self::Static(partition) => partition.to_string(),
            Self::Derived { prefix } => format!("{prefix}{key}"),
        }
    }

    /// Whether records may be in this partition.
    pub(crate) fn may_be(&self, partition: &str) -> bool {
        match self {
            Self::Static(only) => partition == only,
            Self::Derived { prefix } => partition.starts_with(&**prefix),
        }
    }

    /// Whether DynamoDB takes it, for every key that it takes as a sort key.
    pub(crate) fn is_fit(&self) -> bool {
        let (length, longest) = match self {
            Self::Static(partition) => (partition.len(), LONGEST_PARTITION),
            Self::Derived { prefix } => (prefix.len(), LONGEST_PARTITION - LONGEST_SORT_KEY),
        };
        (1..=longest).contains(&length)
    }
}

/// How a result is stored in `data`. Both forms are read; the setting affects reading only if a
/// text could be of either form. So all functions and relays of a table use the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataForm {
    /// S: JSON text, as Powertools for Python, Java and .NET stores it.
    #[default]
    Json,
    /// Any type: the value itself, as Powertools for TypeScript stores it. `null` in a result is
    /// stored. A result with a number of more than 38 digits or beyond 10^125, or with more than 31
    /// nested levels, cannot be stored; then the record says only that the work was done.
    Native,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            id: "id".into(),
            status: "status".into(),
            expiration: "expiration".into(),
            in_progress_expiration: "in_progress_expiration".into(),
            data: "data".into(),
            validation: "validation".into(),
            owner: "owner".into(),
            last_owner: "last_owner".into(),
            failed_attempts: "failed_attempts".into(),
            lost_attempts: "lost_attempts".into(),
            consecutive_losses: "consecutive_losses".into(),
            fence: "fence".into(),
            error: "error".into(),
            application: "application".into(),
            provenance: "provenance".into(),
            steps: "steps".into(),
            outbox: "outbox".into(),
            payload: "payload".into(),
            unfinished: "unfinished".into(),
            sort_key: None,
            data_form: DataForm::Json,
        }
    }
}

impl Attributes {
    pub(crate) fn all(&self) -> [&str; 19] {
        [
            &self.id,
            &self.status,
            &self.expiration,
            &self.in_progress_expiration,
            &self.data,
            &self.validation,
            &self.owner,
            &self.last_owner,
            &self.failed_attempts,
            &self.lost_attempts,
            &self.consecutive_losses,
            &self.fence,
            &self.error,
            &self.application,
            &self.provenance,
            &self.steps,
            &self.outbox,
            &self.payload,
            &self.unfinished,
        ]
    }

    /// All attributes of a record but these texts, which have the names of fields.
    pub(crate) fn without(&self, unread: &[&str]) -> impl Iterator<Item = &str> {
        let texts = [
            ("result", &self.data),
            ("steps", &self.steps),
            ("outbox", &self.outbox),
            ("payload", &self.payload),
        ];
        let unread = texts.into_iter().filter(|(field, _)| unread.contains(field));
        let unread: Vec<&str> = unread.map(|(_, name)| &**name).collect();
        let all = self.all().into_iter().chain(self.sort_key.iter().map(|key| &*key.name));
        all.filter(move |name| !unread.contains(name))
    }

    /// The key schema that the table needs.
    pub(crate) fn needed_key(&self) -> String {
        let sort = match &self.sort_key {
            None => "no sort key".to_owned(),
            Some(SortKey { name, .. }) => format!("a sort key `{name}` of type S"),
        };
        format!(
            "the table needs a partition key `{}` of type S and {sort}; make it so, or name the keys \
             that it has in the store's `Attributes`",
            self.id
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_names_are_those_that_are_documented() {
        let (defaults, mut documented, mut fields) =
            (format!("{:?}", Attributes::default()), String::new(), 0);
        for line in include_str!("attributes.rs").lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("///") {
                documented.push_str(text);
            } else if let Some((name, _)) =
                line.strip_prefix("pub ").and_then(|line| line.split_once(": Cow<'static, str>,"))
            {
                if let Some((_, value)) = documented.split_once("Default `") {
                    let value = value.split('`').next().unwrap();
                    assert!(
                        defaults.contains(&format!(" {name}: \"{value}\"")),
                        "{name}: {defaults}"
                    );
                    fields += 1;
                }
                documented.clear();
            } else {
                documented.clear();
            }
        }
        assert_eq!(fields, Attributes::default().all().len());
    }
}
