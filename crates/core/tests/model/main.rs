//! (docs to come)
mod actions;
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
use stateright::{Checker, HasDiscoveries, Model};
use witness::{EVENTS, Event};

fn explore<P: Protocol>(setup: Setup) {
    let begin = Instant::now();
    let checker = Explorer::<P>::new(setup)
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
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
    for event in setup.expect {
        assert!(setup.witness.count(*event) > 0, "{event:?}");
    }
    checker.assert_properties();
}

fn exp(name: &'static str, crashes: u8, timeouts: u8, errors: u8, f: impl Fn(&mut Setup)) {
    let mut setup = Setup { faults: Faults { crashes, timeouts, errors }, ..Setup::new(name) };
    f(&mut setup);
    explore::<Real>(setup);
}
#[test]
fn series() {
    exp("100 2w2k", 1,0,0, |s| {s.keys = 2;});
    exp("000 3w2k end4", 0,0,0, |s| {s.keys = 2;s.workers=3; s.end=4});
    exp("100 2w2k end4", 1,0,0, |s| {s.keys = 2; s.end=4});
    exp("010 2w2k d1 end4", 0,1,0, |s| {s.keys = 2; s.deliveries=1; s.end=4});
    exp("100 3w2k d1", 1,0,0, |s| {s.keys = 2;s.workers=3; s.deliveries=1;});
    exp("110 3w d3 p end4", 1,1,0, |s| {s.workers = 3; s.deliveries = 3;s.put_back=true; s.end=4});
    exp("001 3w", 0,0,1, |s| {s.workers = 3; s.deliveries = 3;});
    exp("101 3w d2", 1,0,1, |s| {s.workers = 3; s.deliveries = 2;});
    exp("100 slow2", 1,0,0, |s| {s.network = setup::Network::SlowBothWays;});
    exp("100 slow2 end4", 1,0,0, |s| {s.network = setup::Network::SlowBothWays;s.end=4;});
    exp("111 end4", 1,1,1, |s| s.end=4);
    exp("111 ret1", 1,1,1, |s| {s.retention=1; s.end=4});
    exp("110 ret1", 1,1,0, |s| {s.retention=1; });
    exp("110 skewed", 1,1,0, |s| {s.skewed_stamps=true; });
    exp("030", 0,3,0, |_| ());
}
