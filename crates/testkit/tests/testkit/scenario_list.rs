//! Every scenario is in the list, so that every store is tested with all of them.

use std::collections::BTreeSet;

use lambda_idempotency_testkit::conformance::SCENARIOS;

macro_rules! sources {
    ($($module:literal)+) => {
        [$(($module, include_str!(concat!("../../src/conformance/", $module, ".rs")))),+]
    };
}

#[test]
fn every_public_function_of_the_suite_is_listed() {
    let sources = sources! {
        "claiming" "fencing" "ambiguity" "boundaries" "batches" "fields" "contention" "capabilities"
    };
    let mut written = BTreeSet::new();
    for (module, source) in sources {
        // A scenario of a file beside the module's own is in the list by its public name.
        let items = source.split("\npub use self::").skip(1).flat_map(|rest| {
            let (_, names) = rest.split_once('{').unwrap_or_default();
            let (names, _) = names.split_once('}').unwrap_or_default();
            names.split(',').map(str::trim).filter(|name| !name.is_empty())
        });
        written.extend(items.map(|name| (module, name)));
        let own = source.lines().filter(|line| !line.starts_with("pub use self::"));
        for line in own.filter_map(|line| line.strip_prefix("pub ")) {
            let name = line.strip_prefix("async fn ").and_then(|rest| rest.split('(').next());
            let name = name.unwrap_or_else(|| panic!("{module}: not a scenario: {line}"));
            written.insert((module, name));
        }
    }
    let listed: BTreeSet<_> = SCENARIOS.iter().map(|s| (s.module, s.name)).collect();
    assert_eq!(listed.len(), SCENARIOS.len(), "a scenario is listed twice");
    assert_eq!(listed, written);
}

#[test]
fn every_module_of_the_suite_is_listed() {
    let modules = include_str!("../../src/conformance/mod.rs");
    let public: BTreeSet<_> = modules
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    // These are not for every store, and have lists of their own: in `browse_conformance!` and
    // `effects_conformance!`.
    let own = BTreeSet::from(["browsing", "effects"]);
    let listed: BTreeSet<_> = SCENARIOS.iter().map(|s| s.module).chain(own).collect();
    assert_eq!(public, listed);
}

#[test]
fn every_scenario_of_browsing_is_listed() {
    let source = include_str!("../../src/conformance/browsing.rs");
    let (scenarios, list) = source.split_once("macro_rules!").expect("a macro");
    let names = scenarios.lines().filter_map(|line| line.strip_prefix("pub async fn "));
    let names: Vec<_> = names.filter_map(|rest| rest.split('(').next()).collect();
    assert!(names.len() >= 3 && names.iter().all(|name| list.contains(name)), "{names:?}");
}

#[test]
fn names_are_unique_in_all_modules() {
    let names: BTreeSet<_> = SCENARIOS.iter().map(|s| s.name).collect();
    assert_eq!(names.len(), SCENARIOS.len(), "all scenarios become tests in one module");
}
