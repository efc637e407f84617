//! Divides messages into requests: one destination each, at most ten messages and 256 KB.

use std::{collections::HashMap, time::Duration};

use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use futures_util::future::join_all;
use lambda_idempotency::{
    clock::{Clock as _, SystemClock, Timestamp},
    outbox::{OutgoingMessage, SendError},
    store::BoxFuture,
};

/// The most messages of a request, of all three services.
const MOST: usize = 10;
/// The most bytes of a request: what SNS allows for any topic, and EventBridge. SQS allows 1 MiB.
const BYTES: usize = 256 * 1024;

/// A message, and its position in the call.
pub(crate) type Numbered<'m> = (usize, &'m OutgoingMessage);

/// What is counted for the limit: the texts, and an allowance for the id and its name.
fn size(message: &OutgoingMessage) -> usize {
    let message = message.message();
    let attributes = message.attributes().map(|(name, value)| name.len() + value.len() + 16);
    message.body().len() + attributes.sum::<usize>() + 128
}

/// The requests for these messages.
fn batches(messages: &[OutgoingMessage]) -> Vec<Vec<Numbered<'_>>> {
    let mut open: Vec<(usize, Vec<Numbered<'_>>)> = Vec::new();
    let mut full = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let to = message.message().destination();
        let same = open.iter().position(|(_, batch)| batch[0].1.message().destination() == to);
        let bytes = size(message);
        if let Some(index) = same {
            let (used, batch) = &mut open[index];
            if batch.len() < MOST && *used + bytes <= BYTES {
                *used += bytes;
                batch.push((at, message));
                continue;
            }
            full.push(open.swap_remove(index).1);
        }
        open.push((bytes, vec![(at, message)]));
    }
    full.extend(open.into_iter().map(|(_, batch)| batch));
    full
}

/// What a service did with the messages of a request.
pub(crate) enum Answer {
    /// It stored all but these, which are named by their positions.
    AllBut(Vec<(usize, SendError)>),
    /// It stored none. `by_one` says that one message of the request may be the reason, and the others would be stored
    /// without it.
    None { error: SendError, by_one: bool },
}

/// A service: sends messages to one destination in one request.
pub(crate) trait Service: Send + Sync {
    fn request<'a>(&'a self, batch: Vec<Numbered<'a>>, left: Duration) -> BoxFuture<'a, Answer>;
}

/// The entries of a request, and the positions of their messages.
pub(crate) struct Entries<T> {
    pub(crate) positions: Vec<usize>,
    pub(crate) entries: Vec<T>,
    /// The messages that cannot be in a request.
    pub(crate) invalid: Vec<(usize, SendError)>,
}

pub(crate) fn entries<T>(
    batch: &[Numbered<'_>],
    entry: impl Fn(usize, &OutgoingMessage) -> Result<T, SendError>,
) -> Entries<T> {
    let mut all = Entries { positions: Vec::new(), entries: Vec::new(), invalid: Vec::new() };
    for (at, message) in batch {
        match entry(*at, message) {
            Ok(entry) => {
                all.positions.push(*at);
                all.entries.push(entry);
            }
            Err(error) => all.invalid.push((*at, error)),
        }
    }
    all
}

/// Sends the messages in such requests, at the same time.
pub(crate) async fn send_in_batches(
    service: &dyn Service,
    messages: &[OutgoingMessage],
    call_deadline: Timestamp,
) -> Vec<Result<(), SendError>> {
    let mut answers: Vec<Result<(), SendError>> = messages.iter().map(|_| Ok(())).collect();
    let mut requests = batches(messages);
    while !requests.is_empty() {
        let left = call_deadline.since(SystemClock.now());
        let sent = requests.into_iter().map(async |batch| {
            let answer = service.request(batch.clone(), left).await;
            (batch, answer)
        });
        let mut alone = Vec::new();
        for (batch, answer) in join_all(sent).await {
            match answer {
                Answer::AllBut(failed) => {
                    failed.into_iter().for_each(|(at, error)| answers[at] = Err(error));
                }
                // A message that the service does not take must not keep back those of other records.
                Answer::None { by_one: true, .. } if batch.len() > 1 => {
                    alone.extend(batch.into_iter().map(|one| vec![one]));
                }
                Answer::None { error, .. } => {
                    batch.iter().for_each(|(at, _)| answers[*at] = Err(error.clone()));
                }
            }
        }
        requests = alone;
    }
    answers
}

/// The error of one message that a service has refused. The service's own message may quote the application's texts.
pub(crate) fn refused(service: &str, code: Option<&str>) -> SendError {
    let code = code.unwrap_or("an error without a code");
    SendError::new(format!(
        "{service} refused it with {code}; it is sent again with the next delivery"
    ))
}

/// The entries that a service has stored, by the positions of their messages as ids; and of others, the codes with which it has
/// refused them.
pub(crate) type Stored = (Vec<String>, HashMap<String, String>);

/// Makes entries of a request, and sends those that are valid.
pub(crate) async fn send_entries<T, E: ProvideErrorMetadata>(
    service: &str,
    batch: &[Numbered<'_>],
    entry: impl Fn(usize, &OutgoingMessage) -> Result<T, SendError>,
    send: impl AsyncFnOnce(Vec<T>) -> Result<Stored, SdkError<E, HttpResponse>>,
) -> Answer {
    let Entries { positions, entries, mut invalid } = entries(batch, entry);
    if entries.is_empty() {
        return Answer::AllBut(invalid);
    }
    let (stored, codes) = match send(entries).await {
        Ok(stored) => stored,
        Err(error) => return failed(service, error),
    };
    for (at, id) in positions.into_iter().map(|at| (at, at.to_string())) {
        if !stored.contains(&id) {
            invalid.push((at, refused(service, codes.get(&id).map(String::as_str))));
        }
    }
    Answer::AllBut(invalid)
}

/// The error of a message without a group, to a queue or topic that keeps an order.
pub(crate) fn without_group(destination: &str) -> SendError {
    SendError::new(format!(
        "a message to a FIFO {destination} needs a group; add `with_group` in the handler"
    ))
}

/// The answer to a request that has failed as a whole.
pub(crate) fn failed<E>(service: &str, error: SdkError<E, HttpResponse>) -> Answer
where
    E: ProvideErrorMetadata,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    let code = error.code().map(str::to_owned);
    // The SDK has repeated what may succeed later, as long as there was time.
    let is_throttled = code.as_deref().is_some_and(|code| code.contains("Throttl"));
    let by_one = status.is_some_and(|status| (400..429).contains(&status)) && !is_throttled;
    let how = code.map_or_else(|| "did not answer".to_owned(), |code| format!("answered {code}"));
    // Without the SDK's error as its source: that has the response, which may quote the application's texts.
    let context = format!("{service} {how}; it is sent again with the next delivery");
    Answer::None { error: SendError::new(context), by_one }
}
