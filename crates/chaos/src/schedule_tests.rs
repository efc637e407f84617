use std::collections::BTreeSet;

use super::*;
use crate::store_faults::Trouble;

fn schedule(seed: u64, faults: &[FaultKind]) -> Schedule {
    let faults = faults.iter().copied().collect();
    Schedule::new(&Settings { seed, faults, ..Settings::new("orders") })
}

#[test]
fn a_seed_determines_the_schedule() {
    let digest = |seed| schedule(seed, FaultKind::ALL).digest();
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

#[test]
fn every_fault_occurs_and_every_message_once() {
    let schedule = schedule(1, FaultKind::ALL);
    let plans: BTreeSet<_> = schedule.orders.iter().map(|order| &order.plan).collect();
    for plan in Plan::all(&Settings::new("orders")) {
        assert!(plans.contains(&plan), "{plan:?}");
    }
    let troubles: BTreeSet<_> = schedule.store_faults.iter().map(StoreFault::kind).collect();
    assert_eq!(troubles.len(), 5, "{troubles:?}");
    let ids: BTreeSet<_> = schedule.messages.iter().map(|message| &message.id).collect();
    assert_eq!((ids.len(), schedule.messages.len()), (2000, 2000));
    assert!(schedule.skews.iter().all(|skew| skew.unsigned_abs() <= MOST_SKEW_MS));
}

#[test]
fn one_outage_lasts_beyond_the_deadline() {
    let schedule = schedule(1, &[FaultKind::Outage]);
    let longest =
        schedule.store_faults.iter().filter_map(|store_fault| match store_fault.trouble {
            Trouble::Outage { ms } => Some(ms),
            _ => None,
        });
    assert!(longest.max() > Some(2000));
}

#[test]
fn a_messages_id_says_which_order_it_is_about() {
    let event =
        r#"{"Records":[{"eventSource":"aws:dynamodb","dynamodb":{"Keys":{"id":{"S":"p"}}}}]}"#;
    let stream = Template::of_event(event, "id").unwrap();
    let queue = Template::new(r#"{"id":1}"#, "id").unwrap();
    let event = r#"{"detail-type":"t","source":"s","detail":{"id":"p"}}"#;
    let bus = Template::of_event(event, "id").unwrap();
    for template in [stream, queue, bus] {
        let schedule = Schedule::new(&Settings::for_any_function("f", template));
        let ids: BTreeSet<_> = schedule.messages.iter().map(|message| &message.id).collect();
        assert_eq!(ids.len(), schedule.messages.len());
        for message in schedule.messages.iter().chain(&schedule.probe(17)) {
            assert_eq!(order_of(&message.id), Some(message.order), "{}", message.id);
        }
    }
}

#[test]
fn a_schedule_without_faults_has_only_duplicates() {
    let schedule = schedule(1, &[]);
    assert!(schedule.store_faults.is_empty() && schedule.skews == [0]);
    assert!(schedule.orders.iter().all(|order| order.plan == Plan::Plain));
    assert!(schedule.orders.len() < 1000);
}
