//! Finds a stack by the tags of its resources.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::SdkError;

use super::{
    clients::Clients,
    stack::{DEPLOY, MARK, Stack, failed},
};
use crate::failure::Failure;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_are_of_one_account() {
        let ledger = "arn:aws-cn:dynamodb:cn-north-1:123:table/mine-ledger";
        let logs = arn(ledger, "logs", "log-group:", "mine-logs");
        assert_eq!(logs, "arn:aws-cn:logs:cn-north-1:123:log-group:mine-logs");
    }
}
