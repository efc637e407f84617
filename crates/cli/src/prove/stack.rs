//! The stack, and how its services are reached. It is recognised by the tags of its ledger, which name its other resources,
//! and by the tag of each of these. The outputs of the stack would name them, too, and need one more SDK.

use std::{collections::HashMap, time::Duration};

use aws_config::{BehaviorVersion, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::error::{DisplayErrorContext, SdkError};

use crate::{failure::Failure, records::Found};

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

type Tags = HashMap<String, String>;

/// Finds the stack with this name. Any other table of that name is refused.
pub(crate) async fn find(clients: &Clients, name: &str) -> Result<Stack, Failure> {
    let ledger = format!("{name}-ledger");
    let described = clients.dynamodb.describe_table().table_name(&ledger).send().await;
    let table = match described {
        Ok(described) => described.table,
        Err(SdkError::ServiceError(error)) if error.err().is_resource_not_found_exception() => {
            let text = format!("there is no table {ledger} in this Region and account");
            return Err(Failure::from(text).remedy(DEPLOY));
        }
        Err(error) => return Err(failed(&format!("DescribeTable of {ledger}"), error)),
    };
    let arn = table.and_then(|table| table.table_arn).unwrap_or_default();
    let stack = Stack::of_tags(name, of_table(clients, &arn).await?)?;
    for (resource, tags) in of_resources(clients, &stack, &arn).await? {
        if tags.get(MARK).map(String::as_str) != Some(name) {
            let text = format!(
                "{resource}, which the table {ledger} names, has no tag {MARK}={name}, so `prove` leaves it alone"
            );
            return Err(Failure::from(text).remedy(DEPLOY));
        }
    }
    Ok(stack)
}

/// The tags of a table, by its ARN.
async fn of_table(clients: &Clients, arn: &str) -> Result<Tags, Failure> {
    let asked = clients.dynamodb.list_tags_of_resource().resource_arn(arn).send().await;
    let asked = asked.map_err(|error| failed(&format!("the tags of {arn}"), error))?;
    Ok(asked.tags.unwrap_or_default().into_iter().map(|tag| (tag.key, tag.value)).collect())
}

/// All that the ledger names, with their tags. They are in one Region and account.
async fn of_resources<'s>(
    clients: &Clients,
    stack: &'s Stack,
    ledger: &str,
) -> Result<Vec<(&'s str, Tags)>, Failure> {
    let mut found = vec![
        (&*stack.table, of_table(clients, &arn(ledger, "dynamodb", "table/", &stack.table)).await?),
        (&*stack.logs, of_logs(clients, &arn(ledger, "logs", "log-group:", &stack.logs)).await?),
    ];
    for queue in [&stack.queue, &stack.fifo].into_iter().chain(&stack.dead_letters) {
        found.push((queue, of_queue(clients, queue).await?));
    }
    Ok(found)
}

/// The ARN of a resource beside another: `arn:aws:SERVICE:REGION:ACCOUNT:KIND/NAME`.
fn arn(other: &str, service: &str, kind: &str, name: &str) -> String {
    let mut parts: Vec<&str> = other.split(':').take(5).collect();
    if let Some(part) = parts.get_mut(2) {
        *part = service;
    }
    format!("{}:{kind}{name}", parts.join(":"))
}

async fn of_queue(clients: &Clients, queue: &str) -> Result<Tags, Failure> {
    let asked = clients.sqs.list_queue_tags().queue_url(queue).send().await;
    let asked = asked.map_err(|error| failed(&format!("the tags of {queue}"), error))?;
    Ok(asked.tags.unwrap_or_default())
}

async fn of_logs(clients: &Clients, arn: &str) -> Result<Tags, Failure> {
    let asked = clients.logs.list_tags_for_resource().resource_arn(arn).send().await;
    let asked = asked.map_err(|error| failed(&format!("the tags of {arn}"), error))?;
    Ok(asked.tags.unwrap_or_default())
}

#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) logs: aws_sdk_cloudwatchlogs::Client,
    pub(crate) region: String,
}

impl Clients {
    pub(crate) async fn from_env() -> Result<Self, Failure> {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(5))
            .operation_attempt_timeout(Duration::from_secs(30))
            .build();
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            // A message that was sent twice is a duplicate more, and no error: the audit knows only its own ids.
            .retry_config(RetryConfig::standard().with_max_attempts(8))
            .timeout_config(timeouts)
            .load()
            .await;
        let Some(region) = config.region().map(ToString::to_string) else {
            let failure = Failure::from("no AWS Region is configured");
            return Err(failure.remedy("Name it by AWS_REGION."));
        };
        if let Some(provider) = config.credentials_provider() {
            Found::by(provider).await?;
        }
        Ok(Self {
            dynamodb: aws_sdk_dynamodb::Client::new(&config),
            sqs: aws_sdk_sqs::Client::new(&config),
            logs: aws_sdk_cloudwatchlogs::Client::new(&config),
            region,
        })
    }
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

#[cfg(test)]
mod tags_tests {
    use super::*;

    #[test]
    fn arns_are_of_one_account() {
        let ledger = "arn:aws-cn:dynamodb:cn-north-1:123:table/mine-ledger";
        let logs = arn(ledger, "logs", "log-group:", "mine-logs");
        assert_eq!(logs, "arn:aws-cn:logs:cn-north-1:123:log-group:mine-logs");
    }
}
