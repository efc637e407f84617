//! What handlers publish and commit, the sender that takes their messages, and what must hold of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock as _, Timestamp},
    failure::Failure,
    memory::MemoryEffects,
    outbox::{Message, OutgoingMessage, PublishError, SendError, Sender},
    outcome::Outcome,
    record::Status,
};
use lambda_idempotency_engine::call::Call;

use super::{
    scenario::{Line, WireTrouble},
    world::{World, key},
};

/// What has arrived, and what was committed.
#[derive(Default)]
pub(super) struct Post {
    /// How often the sender was called.
    calls: AtomicUsize,
    /// Whether nothing goes wrong any more.
    is_healed: std::sync::atomic::AtomicBool,
    /// By the id of a message, what it is: of which key, and which of its messages.
    ids: Mutex<BTreeMap<String, (u8, usize)>>,
    arrived: Mutex<BTreeSet<(u8, usize)>>,
    /// How often the effect of a key was committed.
    committed: Arc<Mutex<BTreeMap<u8, usize>>>,
}

impl Post {
    pub(super) fn heal(&self) {
        self.is_healed.store(true, Ordering::Relaxed);
    }
}

/// The sender of all processes.
pub(super) struct Wire(pub(super) Arc<World>);

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        let world = &self.0;
        let nth = world.post.calls.fetch_add(1, Ordering::Relaxed);
        let is_healed = world.post.is_healed.load(Ordering::Relaxed);
        let troubles = world.scenario.wire.get(nth).copied().flatten();
        let trouble = troubles.filter(|_| !is_healed);
        assert!(!matches!(trouble, Some(WireTrouble::Panic)), "the sender panics");
        Box::pin(async move {
            let refused = || Err(SendError::new("no luck"));
            match trouble {
                Some(WireTrouble::Slow(ms)) => world.clock.sleep(Duration::from_millis(ms)).await,
                Some(WireTrouble::Refuse) => return messages.iter().map(|_| refused()).collect(),
                _ => tokio::task::yield_now().await,
            }
            let is_refused = |at: usize| matches!(trouble, Some(WireTrouble::RefuseOne(n)) if n % messages.len() == at);
            for (at, message) in messages.iter().enumerate() {
                if !is_refused(at) {
                    world.arrives(message);
                }
                if at == 0 && matches!(trouble, Some(WireTrouble::PanicLater)) {
                    panic!("the sender panics");
                }
                tokio::task::yield_now().await;
            }
            match trouble {
                Some(WireTrouble::Hang) => std::future::pending().await,
                Some(WireTrouble::Lose) => messages.iter().map(|_| refused()).collect(),
                Some(WireTrouble::Short) => messages.iter().skip(1).map(|_| Ok(())).collect(),
                _ => {
                    let answer = |at| if is_refused(at) { refused() } else { Ok(()) };
                    (0..messages.len()).map(answer).collect()
                }
            }
        })
    }
}

impl World {
    /// What the handler of a key publishes.
    fn lines(&self, n: u8) -> &[Line] {
        let all = &self.scenario.publishes;
        if all.is_empty() { &[] } else { &all[usize::from(n) % all.len()] }
    }

    /// The handler of a key has done its work: what it publishes and commits.
    pub(super) fn collect(&self, n: u8, call: &Call) -> Result<(), Failure> {
        let policy = &self.scenario.policy;
        for (position, line) in self.lines(n).iter().enumerate() {
            let message = Message::new(line.to(), format!("{n}:{position}"));
            let message = if line.is_grouped() { message.with_group("g") } else { message };
            match call.publish(message) {
                Ok(()) => {}
                Err(PublishError::Unprotected) if !policy.mode.claims() || !self.strict => {}
                Err(error) => self.wrong.say(format!("key {n} cannot publish: {error}")),
            }
        }
        if policy.mode.commits_effects() {
            let committed = Arc::clone(&self.post.committed);
            call.collect(move |effects: &mut MemoryEffects| {
                effects.add(move || *committed.lock().unwrap().entry(n).or_default() += 1);
            })?;
        }
        Ok(())
    }

    fn arrives(&self, message: &OutgoingMessage) {
        let (n, position) = message.message().body().split_once(':').unwrap();
        let (n, position): (u8, usize) = (n.parse().unwrap(), position.parse().unwrap());
        let say = |what: &str| self.wrong.say(format!("message {position} of key {n} {what}"));
        let mut ids = self.post.ids.lock().unwrap();
        if *ids.entry(message.id().to_owned()).or_insert((n, position)) != (n, position) {
            say("has the id of another");
        }
        let lines = self.lines(n);
        let mut arrived = self.post.arrived.lock().unwrap();
        let is_one_run =
            |from: usize| lines[from..=position].iter().all(|line| *line == lines[position]);
        let is_before = |from: &usize| lines[position].is_grouped() || !is_one_run(*from);
        if !(0..position).filter(is_before).all(|before| arrived.contains(&(n, before))) {
            say("arrives before the one before it");
        }
        let is_completed =
            self.stored(&key(n)).is_some_and(|record| record.status == Status::Completed);
        let can_be_lost =
            !self.scenario.faults.is_empty() && !self.scenario.policy.mode.commits_effects();
        if !is_completed && !can_be_lost {
            say("arrives before its completion");
        }
        arrived.insert((n, position));
    }

    /// Whether a delivery that is answered from a completion may be.
    pub(super) fn judge_messages(&self, n: u8, outcome: &Outcome) {
        let say = |what: String| {
            self.wrong.say(format!("key {n} is {}, but {what}", outcome.label()));
        };
        let policy = &self.scenario.policy;
        let is_done = matches!(
            outcome,
            Outcome::Executed { .. }
                | Outcome::Replayed { .. }
                | Outcome::Coalesced { .. }
                | Outcome::Superseded { .. }
                | Outcome::CompletionLost { .. }
        );
        if is_done && policy.mode.commits_effects() {
            let committed = self.committed(n);
            if committed != 1 {
                say(format!("its effect was committed {committed} times"));
            }
        }
        if is_done && policy.mode.claims() {
            let arrived = self.post.arrived.lock().unwrap();
            if let Some(lost) = (0..self.lines(n).len()).find(|at| !arrived.contains(&(n, *at))) {
                say(format!("its message {lost} was not sent"));
            }
        }
        let undisturbed = self.scenario.wire.iter().all(Option::is_none)
            && self.scenario.faults.is_empty()
            && self.blocked.lock().unwrap().is_zero();
        if undisturbed && matches!(outcome, Outcome::Unsent { .. }) {
            say("nothing was in the way".into());
        }
    }

    fn committed(&self, n: u8) -> usize {
        self.post.committed.lock().unwrap().get(&n).copied().unwrap_or_default()
    }

    /// At the end: nothing was committed twice, and no message is left.
    pub(super) fn judge_posts(&self, keys: impl Iterator<Item = u8>) {
        for n in keys {
            let stored = self.stored(&key(n));
            if self.committed(n) > 1 {
                self.wrong.say(format!("the effect of key {n} was committed twice: {stored:?}"));
            }
            if stored.is_some_and(|record| record.outbox.is_some()) {
                self.wrong.say(format!("key {n} still has messages"));
            }
        }
    }
}
