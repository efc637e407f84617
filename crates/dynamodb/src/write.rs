//! The rounds of a call: send the pending writes, read the records of failed guards, and repeat
//! what may succeed.

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    request_slots::Purpose,
    retry,
    store::{Guard, Verdict, Write},
};

use crate::{
    config::Config,
    error,
    item::decode,
    limits::{MOST_STATEMENT_BYTES, MOST_STATEMENTS},
    member::{Answer, Lost, Member},
    retry::{Budget, backoff, bounded},
    slots::leave,
    store::DynamoDbStore,
};

/// The least number of writes that are sent as a batch. Measured: two claims
/// cost 146 us of processor in a batch and 231 us by themselves, ten 206 us and 871 us, at the same
/// latency. Only claims whose guard fails are faster as single writes, by one round trip, and they
/// are rare.
const BATCH_FROM: usize = 2;
/// How often a write is repeated if its guard fails but the record is gone when it is read.
const ROUNDS: u8 = 3;

/// The state of a call.
type Rounds<'w> = retry::Rounds<Member<'w>>;

impl DynamoDbStore {
    /// Applies each write; one verdict each, in order.
    pub(crate) async fn write_all(
        &self,
        writes: &[Write],
        call_deadline: Timestamp,
    ) -> Vec<Verdict> {
        let budget = Budget::new(&self.config, call_deadline);
        let mut backoff = backoff(&self.config);
        let mut rounds = Rounds::begin(writes, |pending| Member::new(&self.config, pending));
        let too_late = || error::too_late(&self.config);
        while let Some(members) = rounds.next(&budget, Some(&mut backoff), too_late).await {
            // Writes whose guard failed, and whose record has to be read.
            let mut unread = Vec::new();
            for (member, answer) in self.send(members, &budget).await {
                unread.extend(take(&mut rounds, &self.config, member, answer));
            }
            if !unread.is_empty() {
                // In a box, as below: it is rare.
                Box::pin(self.look_up(&mut rounds, unread, &budget)).await;
            }
            if let Some(kind) = rounds.failed() {
                tracing::debug!(table = %self.config.table, ?kind, "some writes failed");
            }
        }
        rounds.verdicts()
    }

    /// Sends each write once, in as few requests as possible.
    async fn send<'w>(
        &self,
        members: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Answer)> {
        let parcels = parcels(members, self.config.statements()).into_iter();
        let request = |parcel| -> BoxFuture<'_, _> { Box::pin(self.send_parcel(parcel, budget)) };
        bounded(parcels.map(request).collect()).await
    }

    /// Sends these writes in a request.
    async fn send_parcel<'w>(
        &self,
        parcel: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Answer)> {
        let before = budget.left();
        let slot = match self.slot(purpose(&parcel), budget).await {
            Ok(slot) => slot,
            Err(failure) => {
                let answer = |member| (member, Answer::Failed(failure.clone()));
                return parcel.into_iter().map(answer).collect();
            }
        };
        let waited = before.saturating_sub(budget.left());
        let limits = (budget.attempt_limit(), self.config.timing.attempt_timeout);
        // In boxes: very many calls may wait for a slot, and this part is not for them.
        let mut answers = match &*parcel {
            [member] => vec![Box::pin(self.write_one(member, budget)).await],
            members => Box::pin(self.write_batch(members, budget)).await,
        };
        leave(slot).await;
        self.blame(&mut answers, waited, limits);
        parcel.into_iter().zip(answers).collect()
    }

    /// Reads the records that the responses did not contain, all in one request.
    async fn look_up<'w>(
        &self,
        rounds: &mut Rounds<'w>,
        losers: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) {
        let keys = losers.iter().map(|member| &member.write.key);
        let answers = self.read_all(keys, purpose(&losers), budget).await;
        for member in losers {
            match answers.get(&member.write.key) {
                Some(Ok(Some(found))) => {
                    let verdict = member.met(&self.config, found.clone());
                    rounds.settle(&member, verdict);
                }
                Some(Ok(None)) => lost_to_nothing(rounds, &self.config, member),
                // The write was refused. Only the record that it met is not known.
                Some(Err(failure)) => {
                    let failure = failure.clone().with_doubt(false);
                    rounds.settle(&member, member.unknown(failure));
                }
                None => rounds.settle(&member, member.unknown(error::too_late(&self.config))),
            }
        }
    }
}

/// The purpose of a request with these writes, and of the one that reads what they found.
fn purpose(members: &[Member<'_>]) -> Purpose {
    if !members.iter().all(|member| member.write.is_claim()) {
        return Purpose::Settle;
    }
    // The lease of a claim that may have been applied runs out while others wait for slots.
    let are_in_doubt = members.iter().any(|member| member.in_doubt);
    if are_in_doubt { Purpose::Hurry } else { Purpose::Claim }
}

/// Handles the answer to a write. Returns the write if its guard failed and its record has to be read.
fn take<'w>(
    rounds: &mut Rounds<'w>,
    config: &Config,
    mut member: Member<'w>,
    answer: Answer,
) -> Option<Member<'w>> {
    match answer {
        Answer::Written => rounds.settle(&member, Verdict::Written),
        Answer::Lost(Lost::To(item)) => {
            let verdict = match decode(&config.attributes, &item) {
                Ok(found) => member.met(config, found),
                Err(problem) => member.unknown(error::corrupt(config, problem)),
            };
            rounds.settle(&member, verdict);
        }
        Answer::Lost(Lost::ToNothing) => lost_to_nothing(rounds, config, member),
        Answer::Lost(Lost::Unread) => return Some(member),
        Answer::Refused(refused) => rounds.settle(&member, Verdict::EffectRefused(refused)),
        Answer::Alone(refused) => {
            if let Some(code) = refused {
                // A single write may succeed where a statement is refused; if not, its error has more detail.
                tracing::warn!(table = %config.table, code, "a statement was refused");
            }
            member.alone = true;
            rounds.again(member);
        }
        Answer::Failed(failure) => rounds.fail(member, failure),
    }
    None
}

/// There is no record: a delete is done, a claim is sent again, and any other write found
/// nothing.
fn lost_to_nothing<'w>(rounds: &mut Rounds<'w>, config: &Config, mut member: Member<'w>) {
    match (&member.write.guard, &member.write.record) {
        (_, None) => rounds.settle(&member, Verdict::Written),
        (Guard::Absent, Some(_)) => {
            member.lost_attempts = member.lost_attempts.saturating_add(1);
            if member.lost_attempts < ROUNDS {
                rounds.again(member);
            } else {
                rounds.settle(&member, member.unknown(error::contended(config)));
            }
        }
        (Guard::OwnedBy(_) | Guard::Unchanged(_), Some(_)) => {
            rounds.settle(&member, Verdict::Found(None));
        }
    }
}

/// Groups the writes into requests.
fn parcels(members: Vec<Member<'_>>, statements: bool) -> Vec<Vec<Member<'_>>> {
    let together = members.iter().filter(|member| !member.is_alone()).count();
    let batched = statements && together >= BATCH_FROM;
    let mut parcels = Vec::new();
    let mut open: Vec<Member<'_>> = Vec::new();
    let mut bytes = 0usize;
    for member in members {
        if !batched || member.is_alone() {
            parcels.push(vec![member]);
            continue;
        }
        if open.len() >= MOST_STATEMENTS || bytes.saturating_add(member.size) > MOST_STATEMENT_BYTES
        {
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

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::{key::Key, retry::PendingWrite};

    use super::*;

    /// How many of the members that have these sizes, 0 for one that is sent by itself, share each
    /// request.
    fn requests(sizes: &[usize], statements: bool) -> Vec<usize> {
        let write = Write::new(Key::from_text("op#a"), Guard::Absent, None);
        let member = |(index, size): (usize, &usize)| Member {
            pending: PendingWrite::new(index, &write),
            effects: None,
            size: *size,
            alone: *size == 0,
            lost_attempts: 0,
        };
        let parcels = parcels(sizes.iter().enumerate().map(member).collect(), statements);
        parcels.iter().map(Vec::len).collect()
    }

    /// The calls that wait for a request are most of the memory of a program that makes very many at once.
    #[test]
    fn a_call_has_no_room_for_what_is_rare() {
        let size =
            size_of_future(|store: &'static DynamoDbStore| store.write_all(&[], Timestamp::EPOCH));
        assert!(size <= 512, "{size} bytes; 680 with the reading of records");
    }

    fn size_of_future<F>(_: impl Fn(&'static DynamoDbStore) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn writes_share_a_request_from_two_on() {
        assert_eq!(requests(&[1], true), [1]);
        assert_eq!(requests(&[1; 2], true), [2]);
        assert_eq!(requests(&[1; 26], true), [25, 1]);
        assert_eq!(requests(&[], true), [0; 0]);
    }

    #[test]
    fn without_statements_each_write_is_a_request() {
        assert_eq!(requests(&[1; 3], false), [1; 3]);
    }

    #[test]
    fn a_write_that_was_refused_in_a_batch_goes_by_itself() {
        assert_eq!(requests(&[1, 0, 1], true), [1, 2]);
        assert_eq!(requests(&[1, 0], true), [1; 2], "and so does the only other one");
    }

    #[test]
    fn a_request_holds_four_megabytes() {
        let half = 2 * 1024 * 1024;
        assert_eq!(requests(&[half, half, 1], true), [2, 1]);
        assert_eq!(requests(&[half, half + 1], true), [1, 1]);
    }
}
