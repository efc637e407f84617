//! What the store and the sender do with a call, and how its invocation is answered.

use crate::core::{
    outbox::SendError,
    store::{StoreError, StoreErrorKind, Verdict},
};

use crate::{
    explorer::Explorer,
    invocation::advance,
    machine::Input,
    outboxes,
    store::land,
    world::{Request, World},
};

/// How a call is answered.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Answered,
    Refused,
    /// All of it is lost, or this member.
    Lost(Option<usize>),
}

impl Explorer {
    /// The store applies a call. Its answer is late.
    pub(crate) fn apply(&self, world: &mut World, invocation: usize, call: usize) {
        let request = world.invocations[invocation].own.calls[call].request.clone();
        let answer = match request {
            Request::Read(keys) => {
                keys.iter().map(|key| Some(world.store[self.setup.key(key)].clone())).collect()
            }
            Request::Write(writes) => {
                let verdict = |write| match land(&self.setup, world, write) {
                    Verdict::Found(found) => Some(found),
                    _ => None,
                };
                writes.iter().map(verdict).collect()
            }
            Request::Send(_) => return,
        };
        world.invocations[invocation].own.calls[call].answer = Some(answer);
    }

    pub(crate) fn answer(&self, world: &mut World, invocation: usize, call: usize, how: How) {
        let own = &mut world.invocations[invocation].own;
        let sent = own.calls.remove(call);
        own.was_failed |= !matches!(how, How::Answered);
        let how = if sent.is_late { How::Refused } else { how };
        let mut late = sent.answer.map(Vec::into_iter);
        let mut late = || late.as_mut().and_then(Iterator::next);
        let fails = |member: usize| match how {
            How::Answered => false,
            How::Refused | How::Lost(None) => true,
            How::Lost(Some(one)) => one == member,
        };
        let error = || {
            let kind = match how {
                How::Refused => StoreErrorKind::Throttled,
                _ => StoreErrorKind::Unavailable,
            };
            StoreError::new(kind, "a fault")
        };
        let id = sent.id;
        let input = match sent.request {
            Request::Read(keys) => {
                let found = keys.iter().enumerate().map(|(member, key)| {
                    if fails(member) {
                        return Err(error());
                    }
                    Ok(late().flatten().unwrap_or_else(|| world.store[self.setup.key(key)].clone()))
                });
                let found = found.collect();
                Input::Read { call: id, found }
            }
            Request::Write(writes) => {
                let mut verdicts = Vec::new();
                for (member, write) in writes.iter().enumerate() {
                    verdicts.push(if fails(member) {
                        if !matches!(how, How::Refused) {
                            world.strays.push((write.clone(), world.now));
                        }
                        Verdict::Unknown(error())
                    } else if let Some(found) = late() {
                        found.map_or(Verdict::Written, Verdict::Found)
                    } else {
                        land(&self.setup, world, write)
                    });
                }
                Input::Written { call: id, writes, verdicts }
            }
            Request::Send(messages) => {
                let own = world.invocations[invocation].own.clone();
                let send = |(member, message)| {
                    // Without an answer, it has arrived, but for a single one.
                    if !fails(member) || matches!(how, How::Lost(None)) {
                        outboxes::arrive(&self.setup, world, &own, message);
                    }
                    if fails(member) { Err(SendError::new("a fault")) } else { Ok(()) }
                };
                let answers = messages.iter().enumerate().map(send).collect();
                Input::Sent { call: id, answers }
            }
        };
        advance(&self.setup, world, invocation, Some(input));
    }
}
