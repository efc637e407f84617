//! Worlds in which handlers publish messages, and what breaks without the rules for that.
//!
//! Each handler publishes two messages to a destination that keeps their order. A call of the sender is answered,
//! refused (nothing has arrived), or gets no answer: all of it has arrived, or all but one message.

use std::time::Duration;

use crate::core::{
    outbox::{OutgoingMessage, messages},
    policy::Mode,
    record::{IdempotencyRecord, Status},
    store::Write,
};

use crate::{
    properties::{ACKNOWLEDGED_SENT, MARKED_SENT, SENT_AFTER_COMPLETION},
    run::{catch, hold},
    setup::Setup,
    world::{Faults, Own, Payloads, World},
    worlds::{self, NONE},
};

/// What a handler publishes.
pub(crate) const PUBLISHED: &str =
    r#"[{"to":"q","body":"1","group":"g"},{"to":"q","body":"2","group":"g"}]"#;

/// Of which key the message is, and which of its messages, if it has an id of this world.
fn position(setup: &Setup, message: &OutgoingMessage) -> Option<(usize, usize)> {
    let all = setup.keys.iter().enumerate().flat_map(|(at, key)| {
        let mut record = IdempotencyRecord::new(Status::Completed, crate::setup::START);
        record.outbox = Some(PUBLISHED.into());
        let messages = messages(key, &record).unwrap().into_iter().enumerate();
        messages.map(move |(index, message)| (at, index, message.id().to_owned()))
    });
    let mut all = all.filter(|(.., id)| id == message.id());
    all.next().map(|(key, index, _)| (key, index))
}

const fn are_sent(sent: Payloads) -> bool {
    sent.contains(0) && sent.contains(1)
}

/// A message arrives at its destination.
pub(crate) fn arrive(setup: &Setup, world: &mut World, own: &Own, message: &OutgoingMessage) {
    let Some((key, index)) = position(setup, message) else {
        return world.blame(SENT_AFTER_COMPLETION);
    };
    let stored = world.store[key].as_ref();
    let is_completed = stored.is_some_and(|record| record.status == Status::Completed);
    // Otherwise its completion was lost.
    let may_go = is_completed || own.was_failed;
    let in_order = (0..index).all(|earlier| world.sent[key].contains(earlier));
    if !may_go || !in_order {
        world.blame(SENT_AFTER_COMPLETION);
    }
    if world.sent[key].contains(index) {
        setup.witness.saw("sent again");
    }
    world.sent[key].add(index);
}

/// A delivery of this key is acknowledged.
pub(crate) fn check_acknowledged(setup: &Setup, world: &mut World, key: usize) {
    if setup.publishes && !are_sent(world.sent[key]) {
        world.blame(ACKNOWLEDGED_SENT);
    }
}

/// Whether a write says of a completed record that its messages are sent, and changes nothing else.
pub(crate) fn marks(world: &mut World, key: usize, old: &IdempotencyRecord, write: &Write) -> bool {
    let mut marked = old.clone();
    marked.outbox = None;
    let marks = old.status == Status::Completed && write.record.as_ref() == Some(&marked);
    if marks && old.outbox.is_some() && !are_sent(world.sent[key]) {
        world.blame(MARKED_SENT);
    }
    marks
}

fn alone() -> Setup {
    Setup::new("messages", &[0]).with(|world| {
        world.publishes = true;
        world.faults = Faults { deaths: 1, losses: 1, late: 1, refusals: 1, ..NONE };
        world.expect = &["death", "late write", "unsent", "replayed", "sent again"];
    })
}

fn group() -> Setup {
    Setup::new("messages of a FIFO group", &[0, 1]).with(|world| {
        (world.publishes, world.ordered) = (true, true);
        world.faults = Faults { deaths: 1, losses: 1, ..NONE };
        world.expect = &["death", "unsent", "returned", "replayed"];
    })
}

fn one_process() -> Setup {
    Setup::new("messages in one process", &[0, 0]).with(|world| {
        (world.at_once, world.batch, world.receives) = (2, 1, 3);
        world.publishes = true;
        world.takes = Duration::from_millis(500);
        world.faults = Faults { losses: 1, deaths: 1, ..NONE };
        world.expect = &["busy", "replayed", "unsent"];
    })
}

/// A short lease ends while a completion is on its way, and another process takes over.
fn overtaken() -> Setup {
    worlds::overtaken("messages of two processes").with(|world| {
        world.publishes = true;
        world.faults = Faults { losses: 1, late: 1, delays: 1, ..NONE };
        world.expect = &["late write", "renewal", "busy", "replayed", "sent again"];
    })
}

fn transaction() -> Setup {
    Setup::new("messages of a transaction", &[0])
        .with(|world| {
            world.publishes = true;
            world.faults = Faults { deaths: 1, losses: 1, late: 1, refusals: 1, ..NONE };
            world.expect = &["death", "late write", "unsent", "replayed"];
        })
        .policy(|policy| policy.mode = Mode::Transactional)
}

tests! {
    messages_of_one_record: hold(alone());
    messages_of_a_fifo_group: hold(group());
    messages_in_one_process: hold(one_process());
    messages_of_two_processes: hold(overtaken());
    messages_of_a_transaction: hold(transaction());
    an_acknowledgement_before_the_messages_are_sent_is_found:
        catch("SendsBeforeItAcknowledges", ACKNOWLEDGED_SENT, alone);
    a_mark_before_the_messages_are_sent_is_found: catch("MarksOnlyWhatIsSent", MARKED_SENT, alone);
    an_answer_from_a_completion_whose_messages_are_not_sent_is_found:
        catch("SendsWhatIsLeft", ACKNOWLEDGED_SENT, alone);
    messages_that_are_sent_before_their_completion_are_found:
        catch("SendsAfterTheCompletion", SENT_AFTER_COMPLETION, alone);
    messages_out_of_order_are_found: catch("SendsInOrder", SENT_AFTER_COMPLETION, alone);
}
