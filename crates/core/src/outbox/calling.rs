//! Calls of a sender. One that panics, hangs or answers too little has sent nothing, as far as anybody knows.
//!
//! Each destination has a call of its own, at the same time as the others: a queue that does not answer then keeps
//! no messages to other destinations.

use std::{
    collections::HashMap,
    future::poll_fn,
    iter::repeat_with,
    pin::pin,
    task::{Context, Poll},
};

use super::{MAX_MESSAGES, OutgoingMessage, SendError, Sender};
use crate::{
    clock::{BoxFuture, Clock, Timestamp},
    contained::{Contained, caught},
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
    let mut calls: Vec<_> =
        groups.iter().map(|group| Call::new(sender, &group.messages, deadline)).collect();
    let mut end = pin!(clock.sleep(deadline.since(clock.now())));
    poll_fn(|context: &mut Context<'_>| {
        let mut are_open = false;
        for call in &mut calls {
            are_open |= call.poll(context).is_pending();
        }
        if are_open { end.as_mut().poll(context) } else { Poll::Ready(()) }
    })
    .await;
    let mut answers: Answers = messages.iter().map(|_| Err(unanswered())).collect();
    for (group, call) in groups.iter().zip(calls) {
        for (at, answer) in group.positions.iter().zip(call.answers()) {
            if let Some(place) = answers.get_mut(*at) {
                *place = answer;
            }
        }
    }
    answers
}

/// Of how many records, in their order, the next messages go into one call: not more than [`MAX_MESSAGES`] together,
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
struct Call<'a> {
    running: Contained<BoxFuture<'a, Answers>>,
    ended: Option<Result<Answers, SendError>>,
}

impl<'a> Call<'a> {
    fn new(sender: &'a dyn Sender, messages: &'a [OutgoingMessage], deadline: Timestamp) -> Self {
        match caught(|| sender.send(messages, deadline)) {
            Some(call) => Self { running: Contained::new(call), ended: None },
            None => Self { running: Contained::none(), ended: Some(Err(panicked())) },
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(running) = self.running.get_mut() else { return Poll::Ready(()) };
        self.ended = Some(match caught(|| running.as_mut().poll(context)) {
            Some(Poll::Ready(answers)) => Ok(answers),
            Some(Poll::Pending) => return Poll::Pending,
            None => Err(panicked()),
        });
        self.running = Contained::none();
        Poll::Ready(())
    }

    /// One for each message, and more.
    fn answers(self) -> impl Iterator<Item = Result<(), SendError>> {
        let (answers, rest) = match self.ended {
            Some(Ok(answers)) => (answers, unanswered()),
            Some(Err(error)) => (Vec::new(), error),
            None => (Vec::new(), late()),
        };
        answers.into_iter().chain(repeat_with(move || Err(rest.clone())))
    }
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
