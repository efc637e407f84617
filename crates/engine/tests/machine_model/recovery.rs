//! How often a message is received after the last fault, if a fault touched several.
//!
//! A death leaves every record that was claimed in quarantine, and one of those runs at a time, with
//! nothing beside it. Where handlers are quick, one invocation works through all of them. Where one
//! handler takes more than half of an invocation, each receive completes one record: the last of `n`
//! records needs `n` receives. That is the bound today, exactly, and it grows with the records that
//! the fault touched.

use std::time::Duration;

use crate::{run::hold, setup::Setup, world::Faults, worlds::NONE};

const KEYS: [usize; 3] = [0, 1, 2];

fn touched(name: &'static str, records: usize, takes: Duration, receives: u8) -> Setup {
    Setup::new(name, &KEYS[..records]).with(|world| {
        (world.takes, world.receives) = (takes, receives);
        world.faults = Faults { deaths: 1, ..NONE };
        world.expect = &["death", "quarantined handler"];
    })
}

#[test]
fn quick_records_recover_at_the_next_receive_however_many_a_death_touched() {
    let quick = Duration::from_millis(100);
    hold(touched("a death among one quick record", 1, quick, 1));
    hold(touched("a death among two quick records", 2, quick, 1));
    hold(touched("a death among three quick records", 3, quick, 1));
}

#[test]
fn slow_records_recover_one_at_each_receive() {
    let slow = Duration::from_secs(3);
    hold(touched("a death among one slow record", 1, slow, 1));
    hold(touched("a death among two slow records", 2, slow, 2));
    hold(touched("a death among three slow records", 3, slow, 3));
}
