//! Calls of a sender. One that panics, hangs or answers too little has sent nothing, as far as anybody knows.

use std::{
    future::poll_fn,
    iter::repeat_with,
    pin::pin,
    task::{Context, Poll},
};

use super::{OutgoingMessage, SendError, Sender};
use crate::{
    clock::{Clock, Timestamp},
    contained::{Contained, caught},
};

/// Sends the messages; one answer for each, at `deadline` at the latest.
pub async fn send(
    sender: &dyn Sender,
    clock: &dyn Clock,
    messages: &[OutgoingMessage],
    deadline: Timestamp,
) -> Vec<Result<(), SendError>> {
    let mut call = match caught(|| sender.send(messages, deadline)) {
        Some(call) => Contained::new(call),
        None => return failed(messages, panicked),
    };
    let mut end = pin!(clock.sleep(deadline.since(clock.now())));
    let answers = poll_fn(|context: &mut Context<'_>| {
        let Some(running) = call.get_mut() else { return Poll::Ready(Err(panicked())) };
        match caught(|| running.as_mut().poll(context)) {
            Some(Poll::Ready(answers)) => Poll::Ready(Ok(answers)),
            Some(Poll::Pending) => end.as_mut().poll(context).map(|()| Err(late())),
            None => Poll::Ready(Err(panicked())),
        }
    });
    match answers.await {
        Ok(answers) => {
            let missing = repeat_with(|| Err(unanswered()));
            answers.into_iter().chain(missing).take(messages.len()).collect()
        }
        Err(error) => failed(messages, || error.clone()),
    }
}

fn failed(
    messages: &[OutgoingMessage],
    error: impl Fn() -> SendError,
) -> Vec<Result<(), SendError>> {
    messages.iter().map(|_| Err(error())).collect()
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
