//! The memory store conforms, and every scenario is in the list, so that every store is tested with all of them.

use std::collections::BTreeSet;

use lambda_idempotency_core::memory::MemoryStore;
use lambda_idempotency_testkit::conformance::{
    SCENARIOS, browsing::BROWSING_SCENARIOS, effects::EFFECTS_SCENARIOS,
};

lambda_idempotency_testkit::store_conformance!(|| async { MemoryStore::new() });

macro_rules! sources {
    ($($module:literal)+) => {
        [$(($module, include_str!(concat!("../../src/conformance/", $module, ".rs")))),+]
    };
}

#[test]
fn every_public_function_of_the_suites_is_listed() {
    let sources = sources! {
        "claiming" "fencing" "ambiguity" "boundaries" "batches" "fields" "contention" "capabilities" "browsing" "effects"
    };
    let mut written = BTreeSet::new();
    for (module, source) in sources {
        let functions = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        written.extend(functions.map(|rest| (module, rest.split('(').next().unwrap())));
    }
    let browsing = BROWSING_SCENARIOS.iter().map(|(name, _)| ("browsing", *name));
    let effects = EFFECTS_SCENARIOS.iter().map(|(name, _)| ("effects", *name));
    let all = || SCENARIOS.iter().map(|scenario| (scenario.module, scenario.name));
    let listed: Vec<_> = all().chain(browsing).chain(effects).collect();
    assert_eq!(BTreeSet::from_iter(listed.iter().copied()), written);
    assert_eq!(listed.len(), written.len(), "a scenario is listed twice");
    let modules = include_str!("../../src/conformance/mod.rs").lines();
    let public = modules.filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert_eq!(
        public.collect::<BTreeSet<_>>(),
        written.iter().map(|(module, _)| *module).collect()
    );
    let names: BTreeSet<_> = all().map(|(_, name)| name).collect();
    assert_eq!(names.len(), SCENARIOS.len(), "all scenarios become tests in one module");
}
