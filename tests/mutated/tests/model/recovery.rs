//! How often a message is received after the last fault, if a fault touched several.
//!
//! Records whose process died are suspects, started or not, and run in groups. Where handlers are quick,
//! one invocation works through all of them. Where a handler takes more than half of an invocation, there
//! is time for one group: the first one, and at the next receive all others together, since they were
//! received without an attempt. If some of the batch were not claimed when the process died, these and the suspects
//! take turns, which costs one receive more. Records whose handlers were stopped at the deadline are not suspects, and
//! run together at the next receive.

use std::time::Duration;

use crate::{run::hold, setup::Setup, world::Faults, worlds::NONE};

const KEYS: [usize; 5] = [0, 1, 2, 3, 4];
const QUICK: Duration = Duration::from_millis(100);
const SLOW: Duration = Duration::from_secs(3);

fn touched(name: &'static str, records: usize, takes: Duration, receives: u8) -> Setup {
    Setup::new(name, &KEYS[..records]).with(|world| {
        (world.takes, world.receives) = (takes, receives);
        world.in_turn = records > 3 && takes == SLOW;
        world.faults = Faults { deaths: 1, ..NONE };
        world.expect = &["death", "quarantined handler"];
    })
}

/// Slow records.
pub(crate) fn near_a_death(records: usize) -> Setup {
    let names = [
        "a death among one slow record",
        "a death among two slow records",
        "a death among three slow records",
        "a death among four slow records",
    ];
    // One may not have been claimed.
    let receives = u8::try_from(records.min(2)).unwrap();
    let world = touched(names[records - 1], records, SLOW, receives);
    world.with(|world| {
        // With two deaths.
        world.larger_receives = (records == 4).then_some(4);
        if records > 2 {
            world.expect = &["death", "quarantined handler", "quarantine group"];
        }
    })
}

pub(crate) fn near_two_deaths(name: &'static str, records: usize, receives: u8) -> Setup {
    touched(name, records, SLOW, receives).with(|world| world.faults.deaths = 2)
}

/// Slow records whose handlers are stopped at the deadline.
pub(crate) fn stopped(records: usize) -> Setup {
    let names =
        ["a stop of one slow record", "a stop of two slow records", "a stop of three slow records"];
    touched(names[records - 1], records, SLOW, 1).with(|world| {
        world.faults = Faults { hangs: u8::try_from(records).unwrap(), ..NONE };
        world.expect = &["stopped handler", "timed_out"];
    })
}

/// A suspect that shares its invocations with records that are received for the first time.
pub(crate) fn beside_fresh_ones() -> Setup {
    touched("a suspect beside fresh records", 5, SLOW, 4).with(|world| {
        (world.batch, world.at_once) = (2, 2);
        // With two deaths, which leave suspects of two batches.
        world.larger_receives = Some(4);
    })
}

/// The first record kills its process whenever it can.
fn killer(name: &'static str, records: usize, deaths: u8, receives: u8, harm: u8) -> Setup {
    touched(name, records, QUICK, receives).with(|world| {
        (world.poison, world.harm) = (true, harm);
        world.faults.deaths = deaths;
        world.expect = &["death", "harmed handler", "quarantined handler"];
    })
}

/// Receives are not counted, so each invocation completes one group.
fn stream() -> Setup {
    touched("a death among three slow records of a stream", 3, SLOW, 2).with(|world| {
        world.whole = true;
        world.expect = &["death", "quarantined handler", "replayed"];
    })
}

tests! {
    a_death_among_one_quick_record: hold(touched("a death among one quick record", 1, QUICK, 1));
    a_death_among_two_quick_records: hold(touched("a death among two quick records", 2, QUICK, 1));
    a_death_among_three_quick_records: hold(touched("a death among three quick records", 3, QUICK, 1));
    a_death_among_one_slow_record: hold(near_a_death(1));
    a_death_among_two_slow_records: hold(near_a_death(2));
    a_death_among_three_slow_records: hold(near_a_death(3));
    a_death_among_four_slow_records: hold(near_a_death(4));
    a_death_among_three_slow_records_of_a_stream: hold(stream());
    two_deaths_among_two_slow_records: hold(near_two_deaths("two deaths among two slow records", 2, 2));
    /// The fewest of which two can have lost both attempts, beside others.
    two_deaths_among_five_slow_records: hold(near_two_deaths("two deaths among five slow records", 5, 5));
    a_stop_of_one_slow_record: hold(stopped(1));
    a_stop_of_two_slow_records: hold(stopped(2));
    a_stop_of_three_slow_records: hold(stopped(3));
    a_suspect_beside_fresh_records: hold(beside_fresh_ones());
    a_killer_among_three_quick_records: hold(killer("a killer among three quick records", 3, 3, 1, 2));
    a_killer_among_four_quick_records: hold(killer("a killer among four quick records", 4, 3, 1, 2));
}
