//! Calls of a sender. A sender that panics, hangs or answers too little has sent nothing, as far as anybody knows.
//!
//! Each destination has a call of its own, at the same time as the others: a queue that does not answer then keeps
//! no messages to other destinations.

use std::{collections::HashMap, future::poll_fn, iter::repeat_with, task::Poll};

use super::{
    message::OutgoingMessage,
    publisher::MAX_MESSAGES,
    sender::{SendError, Sender},
};
use crate::{
    clock::{Clock, Timestamp},
    contained::{Ended, run},
};

type Answers = Vec<Result<(), SendError>>;

/// Sends the messages; one answer for each, at `deadline` at the latest.
pub async fn send(
    sender: &dyn Sender,
    clock: &dyn Clock,
    messages: &[OutgoingMessage],
    deadline: Timestamp,
) -> Vec<Result<(), SendError>> {
    let groups = by_destination(messages);
    let call = |group| (Box::pin(call(sender, clock, group, deadline)), None);
    let mut calls: Vec<_> = groups.iter().map(call).collect();
    poll_fn(|context| {
        let mut are_open = false;
        for (call, ended) in calls.iter_mut().filter(|(_, ended)| ended.is_none()) {
            match call.as_mut().poll(context) {
                Poll::Ready(answers) => *ended = Some(answers),
                Poll::Pending => are_open = true,
            }
        }
        if are_open { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let mut answers: Answers = messages.iter().map(|_| Err(unanswered())).collect();
    for (group, (_, ended)) in groups.iter().zip(calls) {
        for (at, answer) in group.positions.iter().zip(answers_of(ended)) {
            if let Some(place) = answers.get_mut(*at) {
                *place = answer;
            }
        }
    }
    answers
}

/// The number of records, in their order, whose next messages go into one call: not more than [`MAX_MESSAGES`] together,
/// which is also what one record can have at most. A sender can send that many within the time of a call.
pub fn in_one_call<'m>(records: impl Iterator<Item = &'m [OutgoingMessage]>) -> usize {
    let all = records.scan(0_usize, |sum, next| {
        *sum = sum.saturating_add(next.len());
        Some(*sum)
    });
    all.enumerate().take_while(|(index, sum)| *index == 0 || *sum <= MAX_MESSAGES).count()
}

/// Messages to one destination, and their positions among all.
struct Group {
    positions: Vec<usize>,
    messages: Vec<OutgoingMessage>,
}

fn by_destination(messages: &[OutgoingMessage]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        let group = *known.entry(message.message().destination()).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Group { positions: Vec::new(), messages: Vec::new() });
        }
        if let Some(group) = groups.get_mut(group) {
            group.positions.push(at);
            group.messages.push(message.clone());
        }
    }
    groups
}

/// One call of the sender.
async fn call(
    sender: &dyn Sender,
    clock: &dyn Clock,
    group: &Group,
    deadline: Timestamp,
) -> Ended<Answers> {
    let late = clock.sleep(deadline.since(clock.now()));
    run(|| sender.send(&group.messages, deadline), late).await
}

/// The answers of one call: one for each message, and more.
fn answers_of(call: Option<Ended<Answers>>) -> impl Iterator<Item = Result<(), SendError>> {
    let (answers, rest) = match call {
        Some(Ended::Through(answers)) => (answers, unanswered()),
        Some(Ended::Panicked) => (Vec::new(), panicked()),
        Some(Ended::Late) | None => (Vec::new(), late()),
    };
    answers.into_iter().chain(repeat_with(move || Err(rest.clone())))
}

fn panicked() -> SendError {
    SendError::new("the sender panicked; the message of the panic is in the function's log")
}

fn late() -> SendError {
    SendError::new("the sender did not answer before the deadline of the call")
}

fn unanswered() -> SendError {
    SendError::new("the sender gave fewer answers than it was asked for; correct it")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        clock::{BoxFuture, SystemClock},
        key::Key,
        outbox::messages,
        record::{IdempotencyRecord, Status},
    };

    enum Bad {
        Panics,
        PanicsLater,
        Hangs,
        AnswersOne,
    }

    impl Sender for Bad {
        fn send<'a>(
            &'a self,
            _messages: &'a [OutgoingMessage],
            _deadline: Timestamp,
        ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
            match self {
                Self::Panics => panic!("at once"),
                Self::PanicsLater => Box::pin(async { panic!("later") }),
                Self::Hangs => Box::pin(std::future::pending()),
                Self::AnswersOne => Box::pin(async { vec![Ok(())] }),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_misbehaves_has_sent_nothing() {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
        record.outbox = Some(r#"[{"to":"q","body":"1"},{"to":"q","body":"2"}]"#.into());
        let messages = messages(&Key::from_text("op#a"), &record).unwrap();
        for (bad, sent) in
            [(Bad::Panics, 0), (Bad::PanicsLater, 0), (Bad::Hangs, 0), (Bad::AnswersOne, 1)]
        {
            let deadline = SystemClock.now().plus(Duration::from_secs(5));
            let answers = send(&bad, &SystemClock, &messages, deadline).await;
            assert_eq!(answers.len(), 2);
            assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), sent);
        }
    }
}
