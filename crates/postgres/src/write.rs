//! The rounds of a call: send the pending writes, and repeat what may succeed.

use std::{
    collections::{HashMap, HashSet},
    ops::{Deref, DerefMut},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    effects::RefusedEffect,
    record::IdempotencyRecord,
    request_slots::Purpose,
    retry::{self, PendingWrite},
    store::{Guard, StoreError, StoreErrorKind, Verdict, Write},
};

use crate::{
    config::Config,
    connection::{Rows, Statement},
    effects::PostgresEffects,
    error::{self, Doing, Failure, Scope},
    guard::guard_values,
    item::{self, COLUMNS, Columns, keys, text, values},
    limits::{Budget, backoff, budget, fit},
    read::records,
    statements::{Change, MANY, ONE},
    store::PostgresStore,
};

/// How often a write is repeated if its guard fails, and holds for what is read afterwards.
const ROUNDS: u8 = 3;
/// The most writes of a transaction.
const MOST: usize = 1000;
/// The most bytes of a transaction, unless a single write is larger.
const MOST_BYTES: usize = 8 * 1024 * 1024;

const OPERATION: &str = "write to";

/// The state of a call.
type Rounds<'w> = retry::Rounds<Member<'w>, Scope>;

/// The record that is there in place of the one that was to be written, or why it could not be read.
type Found = Result<Option<IdempotencyRecord>, Failure>;

/// The keys that a transaction did not write. It wrote all others.
#[derive(Default)]
pub(crate) struct Done {
    /// The guard failed, and this is there.
    found: HashMap<String, Found>,
    /// The guard failed, and what there is has to be read.
    unread: Vec<String>,
    /// Nothing was written because of this effect.
    refused: Option<RefusedEffect>,
}

impl Done {
    pub(crate) fn has_written(&self, key: &str) -> bool {
        !self.found.contains_key(key) && self.unread.iter().all(|unread| unread != key)
    }

    pub(crate) fn refused(refused: RefusedEffect) -> Self {
        Self { refused: Some(refused), ..Self::default() }
    }
}

impl PostgresStore {
    /// Applies each write; one verdict each, in order.
    pub(crate) async fn write_all(
        &self,
        writes: &[Write],
        call_deadline: Timestamp,
    ) -> Vec<Verdict> {
        let budget = budget(&self.config, call_deadline);
        let mut backoff = backoff(&self.config);
        let mut rounds = Rounds::begin(writes, |pending| Member::new(&self.config, pending));
        let too_late = || error::too_late(&self.config);
        while let Some(members) = rounds.next(&budget, Some(&mut backoff), too_late).await {
            let sent = parcels(members).into_iter().map(|parcel| self.send(parcel, &budget));
            let sent: Vec<BoxFuture<'_, _>> = sent.map(|sent| Box::pin(sent) as _).collect();
            for (parcel, answer) in futures_util::future::join_all(sent).await {
                take(&mut rounds, &self.config, parcel, answer);
            }
            if let Some(kind) = rounds.failed() {
                tracing::debug!(table = %self.config.table.name(), ?kind, "some writes failed");
            }
        }
        rounds.verdicts()
    }

    /// Sends the writes once, in one transaction. They have different keys, so each is applied or not
    /// whatever becomes of the others.
    async fn send<'w>(
        &self,
        mut parcel: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> (Vec<Member<'w>>, Result<Done, Failure>) {
        let doing = |purpose| Doing { config: &self.config, purpose, operation: OPERATION };
        if let [member] = &mut *parcel
            && let Some(effects) = member.effects
        {
            let done = self.commit(doing(Purpose::Hurry), member, effects, budget).await;
            return (parcel, self.with_unread(doing(Purpose::Settle), done, budget).await);
        }
        let doing = doing(purpose(&parcel));
        let statements = self.statements_of(&parcel);
        let planning = if parcel.len() > 1 { MANY } else { ONE };
        let sent = match &*statements {
            [] => Ok(Rows::new()),
            statements => self.transaction(doing, planning, statements, budget).await,
        };
        // The transaction is committed by now, whatever is wrong with its rows.
        let read = |rows| done(&self.config, &parcel, rows).map_err(|f| f.with_doubt(true));
        let done = sent.and_then(read);
        let done = self.with_unread(doing, done, budget).await;
        (parcel, done)
    }

    /// Reads what there is where a guard failed. If that fails, it is the failure of those writes only, which were not
    /// applied: the others of the transaction were.
    async fn with_unread(
        &self,
        doing: Doing<'_>,
        done: Result<Done, Failure>,
        budget: &Budget<'_>,
    ) -> Result<Done, Failure> {
        let mut done = done?;
        let unread = std::mem::take(&mut done.unread);
        if unread.is_empty() {
            return Ok(done);
        }
        let parameters = vec![keys(unread.iter().map(String::as_str))];
        let read = [Statement::new(&*self.statements.read, parameters)];
        let rows = self.transaction(doing, MANY, &read, budget).await;
        let mut read = rows.and_then(|rows| records(&self.config, rows.iter().flatten()));
        for key in &unread {
            let found = match &mut read {
                Ok(found) => found.remove(key).transpose(),
                Err(failure) => Err(failure.clone().with_doubt(false)),
            };
            done.found.insert(key.clone(), found);
        }
        Ok(done)
    }

    /// The statements for these writes, in the order that [`statements`](crate::statements) explains.
    pub(crate) fn statements_of<'s>(&'s self, parcel: &[Member<'s>]) -> Vec<Statement<'s>> {
        let guarded: Vec<_> = parcel.iter().filter(|m| m.write.guard != Guard::Absent).collect();
        let mut statements = Vec::new();
        for change in Change::ALL {
            let mut columns = Columns::default();
            for member in parcel.iter().filter(|member| member.change() == Some(change)) {
                let key = std::iter::once(text(Some(member.key())));
                let record = member.write.record.iter().flat_map(values).zip(COLUMNS);
                let record =
                    record.filter(|(_, (name, _))| change.has(name)).map(|(value, _)| value);
                columns.push(
                    key.chain(record)
                        .chain(guard_values(&member.write.guard).into_iter().flatten()),
                );
            }
            if !columns.are_empty() {
                let (parameters, are_arrays) = columns.parameters();
                let text = self.statements.change(change, &are_arrays);
                statements.push((change, Statement::new(text, parameters)));
            }
        }
        // Others rarely want the rows of an owner. Takeovers of the same rows meet, and find what the first of them did.
        let of_owner = guarded.iter().all(|member| matches!(member.write.guard, Guard::OwnedBy(_)));
        let inserts = usize::from(matches!(statements.first(), Some((Change::Insert, _))));
        let in_one = statements.len() <= inserts + 1;
        let mut statements: Vec<_> =
            statements.into_iter().map(|(_, statement)| statement).collect();
        if guarded.len() > 1 && !(of_owner && in_one) {
            let keys = keys(guarded.iter().map(|member| member.key()));
            statements.insert(inserts, Statement::counted(&self.statements.lock, vec![keys]));
        }
        statements
    }
}

/// The purpose of a transaction of these writes, and of the one that reads what they found.
fn purpose(parcel: &[Member<'_>]) -> Purpose {
    if !parcel.iter().all(|member| member.write.is_claim()) {
        return Purpose::Settle;
    }
    // The lease of a claim that may have been applied runs out while others wait for connections.
    let are_in_doubt = parcel.iter().any(|member| member.in_doubt);
    if are_in_doubt { Purpose::Hurry } else { Purpose::Claim }
}

/// Reads the rows of all statements: one of one column is a key that was written under its guard, and a longer one is what
/// was found for a key that was not inserted.
pub(crate) fn done(config: &Config, parcel: &[Member<'_>], rows: Rows) -> Result<Done, Failure> {
    let mut done = Done::default();
    let mut written = HashSet::new();
    let corrupt = |problem| error::corrupt(config, problem);
    for row in rows.iter().flatten() {
        if row.len() == 1 {
            written.insert(item::key(row).map_err(corrupt)?);
        } else {
            let key = item::wanted(row).map_err(corrupt)?.to_owned();
            let found = item::is_there(row).then(|| item::decode(row).map_err(corrupt));
            done.found.insert(key, found.transpose());
        }
    }
    let unread = parcel.iter().filter(|member| match member.change() {
        Some(Change::Insert) => false,
        Some(Change::Update(_) | Change::Delete) => !written.contains(&member.write.key),
        None => true,
    });
    done.unread = unread.map(|member| member.key().to_owned()).collect();
    Ok(done)
}

/// Handles the answer to a transaction.
fn take<'w>(
    rounds: &mut Rounds<'w>,
    config: &Config,
    parcel: Vec<Member<'w>>,
    answer: Result<Done, Failure>,
) {
    match answer {
        Ok(Done { refused: Some(refused), .. }) => {
            for member in parcel {
                rounds.settle(&member, Verdict::EffectRefused(refused.clone()));
            }
        }
        Ok(mut done) => {
            for member in parcel {
                match done.found.remove(member.key()) {
                    None => rounds.settle(&member, Verdict::Written),
                    Some(found) => lost(rounds, config, member, found),
                }
            }
        }
        Err(failure) if failure.detail == Scope::Values && parcel.len() > 1 => {
            for mut member in parcel {
                member.alone = true;
                rounds.again(member);
            }
        }
        Err(failure) => {
            // Somebody holds the row of one of them, and the others shall not wait for it again.
            let one_of_many = failure.kind() == StoreErrorKind::Contended
                && failure.detail != Scope::Process
                && parcel.len() > 1;
            for mut member in parcel {
                member.alone |= one_of_many;
                rounds.fail(member, failure.clone());
            }
        }
    }
}

/// The guard did not hold, and this is there now.
fn lost<'w>(rounds: &mut Rounds<'w>, config: &Config, mut member: Member<'w>, found: Found) {
    let verdict = match found {
        Err(failure) => {
            rounds.fail(member, failure);
            return;
        }
        Ok(None) if member.write.record.is_none() => Verdict::Written,
        Ok(Some(found)) if member.is_own_work(&found) => Verdict::Written,
        // It failed because of another record, which has been changed since.
        Ok(found) if member.write.guard.holds(found.as_ref()) => {
            member.lost_attempts = member.lost_attempts.saturating_add(1);
            if member.lost_attempts < ROUNDS {
                rounds.again(member);
                return;
            }
            member.unknown(error::contended(config))
        }
        Ok(found) => Verdict::Found(found),
    };
    rounds.settle(&member, verdict);
}

/// Groups the writes into transactions, in the order of their keys.
fn parcels(mut members: Vec<Member<'_>>) -> Vec<Vec<Member<'_>>> {
    members.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    let mut parcels = Vec::new();
    let mut open: Vec<Member<'_>> = Vec::new();
    let mut bytes = 0usize;
    for member in members {
        if member.is_alone() {
            parcels.push(vec![member]);
            continue;
        }
        if open.len() >= MOST || bytes.saturating_add(member.size) > MOST_BYTES {
            parcels.push(std::mem::take(&mut open));
            bytes = 0;
        }
        bytes = bytes.saturating_add(member.size);
        open.push(member);
    }
    parcels.push(open);
    parcels.retain(|parcel| !parcel.is_empty());
    parcels
}

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pending: PendingWrite<'w>,
    /// The effects that are applied with it, in a transaction of its own.
    pub(crate) effects: Option<&'w PostgresEffects>,
    /// Bytes to send.
    pub(crate) size: usize,
    /// It was in a batch that was refused because of some value, or waited for some row, so it is sent by itself.
    pub(crate) alone: bool,
    /// How often its guard failed on a record that was gone or other when it was read.
    pub(crate) lost_attempts: u8,
    /// An effect took longer than a request, so the next one has all the time of the call.
    pub(crate) is_slow: bool,
    /// Why the server gave up its effects the last time.
    pub(crate) given_up: Option<GivenUp>,
}

/// Which effect failed, none at `COMMIT`, and with which SQLSTATE.
#[derive(PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) position: Option<usize>,
    pub(crate) code: String,
}

impl<'w> Member<'w> {
    /// The write, or its verdict if it cannot be sent.
    pub(crate) fn new(config: &Config, pending: PendingWrite<'w>) -> Result<Self, StoreError> {
        let write = pending.write;
        let effects = match &write.effects {
            None => None,
            Some(effects) => match effects.get::<PostgresEffects>() {
                Some(effects) if write.record.is_some() => Some(effects),
                _ => return Err(StoreError::without_effects(write)),
            },
        };
        let size = fit(config, write).map_err(|failure| failure.report(false))?;
        Ok(Self {
            pending,
            effects,
            size,
            alone: false,
            lost_attempts: 0,
            is_slow: false,
            given_up: None,
        })
    }

    /// Whether it must not share a transaction with others.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone || self.effects.is_some()
    }

    /// How long its next request may take, if it has effects.
    pub(crate) fn commit_limit(&self, budget: &Budget<'_>) -> Duration {
        if self.is_slow { budget.left() } else { budget.limit() }
    }

    pub(crate) fn key(&self) -> &'w str {
        self.write.key.as_str()
    }

    /// The statement of the write. `None` if nothing is to be written, whatever is there: that is read afterwards.
    pub(crate) fn change(&self) -> Option<Change> {
        match (&self.write.guard, &self.write.record) {
            (Guard::Absent, Some(_)) => Some(Change::Insert),
            (Guard::Absent, None) => None,
            (Guard::Unchanged(_) | Guard::OwnedBy(_), Some(_)) => {
                Some(Change::Update(self.write.extent()))
            }
            (Guard::Unchanged(_) | Guard::OwnedBy(_), None) => Some(Change::Delete),
        }
    }
}

impl<'w> Deref for Member<'w> {
    type Target = PendingWrite<'w>;

    fn deref(&self) -> &Self::Target {
        &self.pending
    }
}

impl DerefMut for Member<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.pending
    }
}
