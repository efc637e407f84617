//! The scenarios for effects pass with the memory store, and each finds a store with a bug.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    effects::{Effects, RefusalReason, RefusedEffect},
    key::Key,
    memory::{MemoryEffects, MemoryStore},
    record::IdempotencyRecord,
    store::{Capabilities, Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_testkit::conformance::effects::{EFFECTS_SCENARIOS, EffectsKit};

use crate::{assert_found, fails};

/// Counts in memory.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<HashMap<String, u64>>>);

/// Effects that the stores with a bug can look into.
struct Adding {
    names: Vec<String>,
    refused: Option<usize>,
}

impl Counts {
    fn add(&self, name: &str) {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += 1;
    }

    fn get(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

impl EffectsKit for Counts {
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects {
        let mut effects = MemoryEffects::default();
        for (position, name) in names.iter().cloned().enumerate() {
            let counts = self.clone();
            effects.add_if(move || refused != Some(position), move || counts.add(&name));
        }
        Effects::new(effects)
    }

    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
        let count = self.get(name);
        Box::pin(async move { count })
    }
}

mod memory {
    use super::{Counts, MemoryStore};

    lambda_idempotency_testkit::effects_conformance!(async || {
        (MemoryStore::new(), Counts::default())
    });
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    StatesNoEffects,
    DropsEffects,
    DropsAllButTheFirst,
    AppliesWithoutTheGuard,
    AppliesWhatIsGone,
    AppliesBeforeARefusal,
    CompletesDespiteARefusal,
    NamesNoPosition,
    AsksEffectsFirst,
    AppliesAtEachSending,
    OnlyUnderOwnedBy,
    OneTransactionForAll,
    DeletesWithEffects,
    AppliesAfterTheRecord,
}

/// A store with one bug, and the counts of its effects.
struct Mutant {
    bug: Bug,
    records: MemoryStore,
    counts: Counts,
}

/// Its effects.
struct Kit(Counts);

impl EffectsKit for Kit {
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects {
        Effects::new(Adding { names: names.to_vec(), refused })
    }

    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
        self.0.count(name)
    }
}

impl Mutant {
    fn refused(&self, effects: &Adding) -> Option<Verdict> {
        let refused = RefusedEffect::new(RefusalReason::ConditionFailed);
        let position = effects.refused?;
        Some(Verdict::EffectRefused(match self.bug {
            Bug::NamesNoPosition => refused,
            _ => refused.at(position),
        }))
    }

    fn apply(&self, effects: &Adding) {
        let most = match self.bug {
            Bug::DropsEffects => 0,
            Bug::DropsAllButTheFirst => 1,
            _ => usize::MAX,
        };
        effects.names.iter().take(most).for_each(|name| self.counts.add(name));
    }

    async fn plain(&self, write: &Write) -> Verdict {
        let write = write.clone().with_effects(None);
        self.records.write(&[write], Timestamp::EPOCH).await.remove(0)
    }

    async fn found(&self, key: &Key) -> Option<IdempotencyRecord> {
        let keys = std::slice::from_ref(key);
        self.records.read(keys, Timestamp::EPOCH).await.remove(0).unwrap()
    }

    async fn one(&self, write: &Write) -> Verdict {
        let Some(effects) = &write.effects else { return self.plain(write).await };
        let Some(effects) = effects.get::<Adding>() else {
            return Verdict::Unknown(StoreError::without_effects(write));
        };
        if write.record.is_none() && self.bug != Bug::DeletesWithEffects {
            return Verdict::Unknown(StoreError::without_effects(write));
        }
        let found = self.found(&write.key).await;
        let holds = write.guard.holds(found.as_ref());
        match (self.bug, &write.guard) {
            (Bug::AppliesAtEachSending, _) if found == write.record => {
                self.apply(effects);
                return Verdict::Found(found);
            }
            (Bug::AppliesWithoutTheGuard, _) if !holds && found.is_some() => self.apply(effects),
            (Bug::AppliesWhatIsGone, Guard::OwnedBy(_)) if found.is_none() => self.apply(effects),
            (Bug::AsksEffectsFirst, _) => {
                if let Some(refused) = self.refused(effects) {
                    return refused;
                }
            }
            (Bug::OnlyUnderOwnedBy, Guard::Absent | Guard::Unchanged(_)) => {
                return self.plain(write).await;
            }
            _ => {}
        }
        if !holds {
            return Verdict::Found(found);
        }
        if let Some(refused) = self.refused(effects) {
            match self.bug {
                Bug::AppliesBeforeARefusal => {
                    let before = effects.refused.unwrap();
                    effects.names.iter().take(before).for_each(|name| self.counts.add(name));
                }
                Bug::CompletesDespiteARefusal => {
                    self.plain(write).await;
                }
                _ => {}
            }
            return refused;
        }
        if self.bug == Bug::AppliesAfterTheRecord {
            self.apply(effects);
            // Another write comes between.
            tokio::task::yield_now().await;
            return self.plain(write).await;
        }
        let verdict = self.plain(write).await;
        self.apply(effects);
        verdict
    }
}

impl Store for Mutant {
    fn capabilities(&self) -> Capabilities {
        match self.bug {
            Bug::StatesNoEffects => Capabilities::NONE,
            _ => Capabilities::NONE.with_effects::<Adding>(),
        }
    }

    fn write<'a>(&'a self, writes: &'a [Write], _: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut verdicts = Vec::new();
            for write in writes {
                verdicts.push(self.one(write).await);
            }
            let refused = verdicts.iter().find(|v| matches!(v, Verdict::EffectRefused(_)));
            match refused.filter(|_| self.bug == Bug::OneTransactionForAll) {
                Some(refused) => vec![refused.clone(); writes.len()],
                None => verdicts,
            }
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.records.read(keys, deadline)
    }
}

const BUGS: &[(Bug, &[&str])] = &[
    (Bug::StatesNoEffects, &["effects_are_applied_with_their_write"]),
    (Bug::DropsEffects, &["effects_are_applied_with_their_write"]),
    (Bug::DropsAllButTheFirst, &["effects_are_applied_with_their_write"]),
    (Bug::AppliesWithoutTheGuard, &["a_fenced_write_applies_no_effect"]),
    (Bug::AppliesWhatIsGone, &["a_write_whose_record_is_gone_applies_no_effect"]),
    (Bug::AppliesBeforeARefusal, &["a_refused_effect_applies_nothing"]),
    (Bug::CompletesDespiteARefusal, &["a_refused_effect_applies_nothing"]),
    (Bug::NamesNoPosition, &["a_refused_effect_applies_nothing"]),
    (Bug::AsksEffectsFirst, &["a_fenced_write_with_a_refused_effect_is_fenced"]),
    (Bug::AppliesAtEachSending, &["a_write_that_is_sent_again_applies_its_effects_once"]),
    (Bug::OnlyUnderOwnedBy, &["effects_are_applied_under_every_guard"]),
    (Bug::OneTransactionForAll, &["each_write_of_a_call_has_its_own_transaction"]),
    (Bug::DeletesWithEffects, &["effects_beside_a_deletion_are_refused"]),
    (Bug::AppliesAfterTheRecord, &["committing_against_takeovers_has_one_winner"]),
];

#[tokio::test]
async fn every_bug_is_found_by_the_scenario_that_is_named_for_it() {
    let all = EFFECTS_SCENARIOS.iter().map(|(name, _)| *name);
    assert_found(BUGS, Bug::None, all, async |bug, _| {
        let mut failing = Vec::new();
        for (name, run) in EFFECTS_SCENARIOS {
            let counts = Counts::default();
            let store = Mutant { bug, records: MemoryStore::new(), counts: counts.clone() };
            if fails(run(&store, &Kit(counts))).await {
                failing.push(*name);
            }
        }
        failing
    })
    .await;
}
