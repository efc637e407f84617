//! The stack: recognised by the tags of its ledger, which name its other resources, and by the tag of each of these. The
//! outputs of the stack would name them, too, and need one more SDK.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::DisplayErrorContext;

use crate::failure::Failure;

/// The tag that `docs/prove/template.yaml` gives to everything that it makes; its value is the name of the stack.
pub(crate) const MARK: &str = "lambda-idempotency-prove";

/// The resources of a stack.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) ledger: String,
    pub(crate) table: String,
    pub(crate) queue: String,
    pub(crate) fifo: String,
    /// Dead letters of the queue and of the FIFO queue.
    pub(crate) dead_letters: [String; 2],
    pub(crate) logs: String,
}

impl Stack {
    /// The stack whose ledger has these tags.
    pub(crate) fn of_tags(name: &str, tags: HashMap<String, String>) -> Result<Self, Failure> {
        if tags.get(MARK).map(String::as_str) != Some(name) {
            let text = format!(
                "the table {name}-ledger has no tag {MARK}={name}, so it was not made for `prove`, which leaves it"
            );
            return Err(Failure::from(text).remedy(DEPLOY));
        }
        let tag = |of: &str| {
            let key = format!("prove-{of}");
            let value = tags.get(&key).filter(|value| !value.is_empty()).cloned();
            value.ok_or_else(|| {
                let text = format!(
                    "the table {name}-ledger has no tag {key}: its template is of another version"
                );
                Failure::from(text).remedy(DEPLOY)
            })
        };
        Ok(Self {
            name: name.to_owned(),
            ledger: format!("{name}-ledger"),
            table: tag("table")?,
            queue: tag("queue")?,
            fifo: tag("fifo-queue")?,
            dead_letters: [tag("dead-letters")?, tag("fifo-dead-letters")?],
            logs: tag("logs")?,
        })
    }
}

pub(crate) const DEPLOY: &str = "Deploy docs/prove/template.yaml, and give the name of that stack: docs/prove/README.md says how.";

/// A request that failed.
pub(crate) fn failed(what: &str, error: impl std::error::Error) -> Failure {
    Failure::from(format!("{what}: {}", DisplayErrorContext(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> HashMap<String, String> {
        let of = ["table", "queue", "fifo-queue", "dead-letters", "fifo-dead-letters", "logs"];
        let tags = of.map(|of| (format!("prove-{of}"), of.to_owned()));
        tags.into_iter().chain([(MARK.to_owned(), "mine".to_owned())]).collect()
    }

    #[test]
    fn a_stack_is_known_by_its_mark_and_complete() {
        let stack = Stack::of_tags("mine", tags()).unwrap();
        assert_eq!((stack.ledger.as_str(), stack.queue.as_str()), ("mine-ledger", "queue"));
        assert!(Stack::of_tags("yours", tags()).is_err(), "the mark names another stack");
        for missing in tags().keys() {
            let mut tags = tags();
            tags.remove(missing);
            assert!(Stack::of_tags("mine", tags).is_err(), "without {missing}");
        }
    }
}
