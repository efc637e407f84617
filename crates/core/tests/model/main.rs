//! (docs to come)
mod canonical;
mod explorer;
mod packed;
mod properties;
mod protocol;
mod setup;
mod state;
mod step;
mod store;
mod witness;
mod worker;

use std::time::Instant;

use explorer::Explorer;
use protocol::{Protocol, Real};
use setup::Setup;
use state::Faults;
use stateright::{Checker, Model};
use witness::{EVENTS, Event};

fn explore<P: Protocol>(setup: Setup) {
    let begin = Instant::now();
    let checker = Explorer::<P>::new(setup).checker().spawn_bfs().join();
    let setup = &checker.model().setup;
    println!(
        "{}: {} unique states, {} generated, depth {}, {:.1?}",
        setup.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begin.elapsed()
    );
    for event in EVENTS {
        print!("{event:?} {}, ", setup.witness.count(event));
    }
    println!();
    checker.assert_properties();
}

#[test]
fn plain() {
    explore::<Real>(Setup {
        faults: Faults { crashes: 1, timeouts: 1, errors: 1 },
        put_back: true,
        expect: &[Event::Replayed],
        ..Setup::new("2 workers")
    });
}
#[test]
fn renew() {
    explore::<Real>(Setup {
        faults: Faults { crashes: 0, timeouts: 1, errors: 0 },
        renewal: 3,
        expect: &[Event::Replayed],
        ..Setup::new("2 workers renew")
    });
}
#[test]
fn three() {
    explore::<Real>(Setup {
        workers: 3,
        deliveries: 3,
        faults: Faults { crashes: 1, timeouts: 1, errors: 0 },
        expect: &[Event::Replayed],
        ..Setup::new("3 workers")
    });
}
