//! The message of a user's function, from which messages of different work are made.

use serde_json::Value;

/// The body of an SQS message, and the member in which messages of different work differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    body: Value,
    /// The path of the member, from the outside.
    path: Vec<String>,
}

/// Why a body is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is not a JSON object.
    #[error("the body of the message is not a JSON object, so none of its members can be varied")]
    NotAnObject,
    /// There is no such member, or it is not a text or a whole number.
    #[error("the body has no text or whole number `{member}`; it has: {}", members.join(", "))]
    NoMember {
        /// The member.
        member: String,
        /// The members of the body.
        members: Vec<String>,
    },
}

impl Template {
    /// Makes a template of a body. `vary` names the member in which messages of different work differ, as `order.id`.
    ///
    /// ```
    /// # use lambda_idempotency_chaos::Template;
    /// let template = Template::new(r#"{"order":{"id":"o"},"quantity":1}"#, "order.id")?;
    /// assert_eq!(template.body(7), r#"{"order":{"id":"o-7"},"quantity":1}"#);
    /// # Ok::<(), lambda_idempotency_chaos::TemplateError>(())
    /// ```
    ///
    /// # Errors
    /// The body is not a JSON object, or has no such member.
    pub fn new(body: &str, vary: &str) -> Result<Self, TemplateError> {
        let body: Value = serde_json::from_str(body).map_err(|_| TemplateError::NotAnObject)?;
        let Value::Object(members) = &body else { return Err(TemplateError::NotAnObject) };
        let members = members.keys().cloned().collect();
        let path: Vec<String> = vary.split('.').map(str::to_owned).collect();
        let found = path.iter().try_fold(&body, |value, name| value.get(name));
        match found {
            Some(value) if value.is_string() || value.is_i64() => Ok(Self { body, path }),
            _ => Err(TemplateError::NoMember { member: vary.to_owned(), members }),
        }
    }

    /// The body of the message of this work: two numbers make two bodies.
    #[must_use]
    pub fn body(&self, number: usize) -> String {
        let mut body = self.body.clone();
        let member = self.path.iter().try_fold(&mut body, |value, name| value.get_mut(name));
        if let Some(member) = member {
            *member = match &*member {
                Value::String(text) => Value::from(format!("{text}-{number}")),
                other => Value::from(
                    other
                        .as_i64()
                        .unwrap_or_default()
                        .saturating_add(i64::try_from(number).unwrap_or(i64::MAX)),
                ),
            };
        }
        body.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_varied() {
        let template = Template::new(r#"{"id":40,"name":"n"}"#, "id").unwrap();
        assert_eq!(template.body(2), r#"{"id":42,"name":"n"}"#);
        let template = Template::new(r#"{"id":40,"name":"n"}"#, "name").unwrap();
        assert_eq!(template.body(2), r#"{"id":40,"name":"n-2"}"#);
    }

    #[test]
    fn a_body_without_the_member_is_refused() {
        let error = Template::new(r#"{"id":1,"list":[]}"#, "list").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the body has no text or whole number `list`; it has: id, list"
        );
        for body in ["text", "[]", "7"] {
            assert_eq!(Template::new(body, "id"), Err(TemplateError::NotAnObject), "{body}");
        }
    }
}
