//! Many writes in one request: PartiQL statements in a `BatchExecuteStatement`, a verdict each.
//!
//! `BatchWriteItem` has no conditions and a transaction is all or nothing, so this is the one
//! operation that fits. Its members are independent, each atomic, and answered in order; the
//! request succeeds even if every member failed, and the SDK retries none of them.
//!
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html>

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementErrorCodeEnum as Code, BatchStatementRequest,
    BatchStatementResponse, ReturnValuesOnConditionCheckFailure::AllOld,
};
use lambda_idempotency_core::{
    retry::Budget,
    store::{Guard, StoreErrorKind},
};

use crate::{
    attributes::Attributes,
    config::Config,
    error::{self, Doing, Failure, sdk_failure, service_failure},
    guard::{predicate, terms},
    item::{changes, fields, key_fields},
    store::DynamoDbStore,
    write::{Member, Met, Reply},
};

/// Room for the text of a statement with the default names, and for its parameters.
const TEXT: usize = 640;
const PARAMETERS: usize = 20;

const OPERATION: &str = "BatchExecuteStatement";

impl DynamoDbStore {
    /// Sends up to [`MOST_STATEMENTS`](crate::write::MOST_STATEMENTS) writes and waits for their answers, in order.
    pub(crate) async fn write_batch(
        &self,
        members: &[Member<'_>],
        budget: &Budget<'_>,
    ) -> Vec<Reply> {
        let is_shared = members.len() > 1;
        let mut statements = Vec::with_capacity(members.len());
        for member in members {
            match statement(&self.config, member) {
                Some(statement) => statements.push(statement),
                None => return same(members, Reply::Alone(None)),
            }
        }
        let doing = Doing { config: &self.config, operation: OPERATION, permission: "" };
        let request = self.client.batch_execute_statement().set_statements(Some(statements));
        match self.attempt(request.send(), budget).await {
            Err(late) => same(members, Reply::Failed(error::timed_out(doing, late))),
            Ok(Err(error)) => {
                let permission = &all_permissions(members);
                let failure = sdk_failure(Doing { permission, ..doing }, &error);
                // One member can make DynamoDB refuse the whole batch, so each member is then sent
                // by itself.
                let alone = is_shared && refused(&failure);
                same(members, if alone { Reply::Alone(None) } else { Reply::Failed(failure) })
            }
            Ok(Ok(output)) => {
                let responses = output.responses.unwrap_or_default().into_iter().map(Some);
                let responses = responses.chain(std::iter::repeat_with(|| None));
                let answers = members.iter().zip(responses);
                let answer = |(member, response)| match self.answer(member, response) {
                    Reply::Failed(failure) if is_shared && refused(&failure) => {
                        Reply::Alone(failure.cause().map(str::to_owned))
                    }
                    reply => reply,
                };
                answers.map(answer).collect()
            }
        }
    }

    fn answer(&self, member: &Member<'_>, response: Option<BatchStatementResponse>) -> Reply {
        let permission = permission(member);
        let doing = Doing { config: &self.config, operation: OPERATION, permission };
        let Some(response) = response else {
            return Reply::Failed(Failure::unanswered(format!("{doing} left a member unanswered")));
        };
        let Some(error) = response.error else { return Reply::Written };
        match error.code {
            Some(Code::ConditionalCheckFailed | Code::DuplicateItem) => {
                // Without an item there may be none, or the server does not return it: see the docs of
                // `Error.Item` and of DuplicateItemException, which has none.
                Reply::GuardFailed(error.item.map_or(Met::Unread, Met::Item))
            }
            code => {
                let code = code.as_ref().map(Code::as_str);
                Reply::Failed(service_failure(doing, code, error.message.as_deref(), None))
            }
        }
    }
}

/// Whether the statements were refused, as opposed to the table or the caller.
fn refused(failure: &Failure) -> bool {
    !failure.retry && matches!(failure.kind(), StoreErrorKind::Refused | StoreErrorKind::TooLarge)
}

fn same(members: &[Member<'_>], answer: Reply) -> Vec<Reply> {
    vec![answer; members.len()]
}

/// One statement with its parameters; `None` if PartiQL cannot express it.
fn statement(config: &Config, member: &Member<'_>) -> Option<BatchStatementRequest> {
    let (statement, parameters) = text(config, member)?;
    BatchStatementRequest::builder()
        .statement(statement)
        .set_parameters(Some(parameters))
        .return_values_on_condition_check_failure(AllOld)
        .build()
        .ok()
}

/// The text of a statement, and the values of its `?` parameters. Names are quoted, since some
/// (`status`, `data`) are reserved words; values never appear in the text.
fn text(config: &Config, member: &Member<'_>) -> Option<(String, Vec<AttributeValue>)> {
    let Config { table, attributes: names, .. } = config;
    let of = &member.write.key;
    let key = key_fields(names, of);
    let mut parameters = Vec::with_capacity(PARAMETERS);
    let mut text = String::with_capacity(TEXT);
    match (&member.write.guard, &member.write.record) {
        // A delete under `Absent` changes nothing; it is a read in the form of a write.
        (Guard::Absent, None) => return None,
        (Guard::Absent, Some(record)) => {
            let fields = fields(names, of, record).filter_map(|(name, value)| Some((name, value?)));
            add(&mut text, &["INSERT INTO \"", table, "\" VALUE {"]);
            for (position, (name, value)) in key.into_iter().chain(fields).enumerate() {
                add(&mut text, &[if position > 0 { ", '" } else { "'" }, name, "': ?"]);
                parameters.push(value);
            }
            text.push('}');
        }
        (Guard::OwnedBy(_) | Guard::Unchanged(_), Some(record)) => {
            // Sets or removes what the write changes. Attributes that others added are kept; a single write of a whole
            // record removes them.
            add(&mut text, &["UPDATE \"", table, "\""]);
            for (name, value) in changes(names, member.write, record) {
                if let Some(value) = value {
                    add(&mut text, &[" SET \"", name, "\" = ?"]);
                    parameters.push(value);
                } else {
                    add(&mut text, &[" REMOVE \"", name, "\""]);
                }
            }
            where_clause(member, names, key, &mut text, &mut parameters);
        }
        (Guard::OwnedBy(_) | Guard::Unchanged(_), None) => {
            add(&mut text, &["DELETE FROM \"", table, "\""]);
            where_clause(member, names, key, &mut text, &mut parameters);
        }
    }
    Some((text, parameters))
}

fn where_clause(
    member: &Member<'_>,
    names: &Attributes,
    key: Vec<(&str, AttributeValue)>,
    text: &mut String,
    parameters: &mut Vec<AttributeValue>,
) {
    for (position, (name, value)) in key.into_iter().enumerate() {
        add(text, &[if position > 0 { " AND \"" } else { " WHERE \"" }, name, "\" = ?"]);
        parameters.push(value);
    }
    predicate(terms(&member.write.guard, names), text, parameters);
}

fn add(text: &mut String, parts: &[&str]) {
    for part in parts {
        text.push_str(part);
    }
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html>
fn permission(member: &Member<'_>) -> &'static str {
    match (&member.write.guard, &member.write.record) {
        (_, None) => "PartiQLDelete",
        (Guard::Absent, Some(_)) => "PartiQLInsert",
        (Guard::OwnedBy(_) | Guard::Unchanged(_), Some(_)) => "PartiQLUpdate",
    }
}

fn all_permissions(members: &[Member<'_>]) -> String {
    let mut names: Vec<_> = members.iter().map(permission).collect();
    names.sort_unstable();
    names.dedup();
    names.join(" ")
}
