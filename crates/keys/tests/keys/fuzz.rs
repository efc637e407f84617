//! Runs the fuzz targets with a limit: on the corpus, and on slightly damaged copies of its files.

use std::{fs, path::Path};

use proptest::prelude::*;

use crate::{bodies, support::cases};

/// The files of a target's corpus, from which `cargo fuzz` starts, too.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 5, "{files:?}");
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Bytes overwritten, inserted, removed or doubled.
fn damage() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"\"\\{}[]:,.0e-|()@*`u$".to_vec())];
    prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), byte), 0..6)
}

fn damaged(mut bytes: Vec<u8>, damage: &[(u8, prop::sample::Index, u8)]) -> Vec<u8> {
    for (kind, at, byte) in damage {
        let at = at.index(bytes.len() + 1);
        match kind {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|old| *old = *byte),
            1 => bytes.insert(at, *byte),
            2 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..),
        }
        bytes.truncate(8192);
    }
    bytes
}

#[test]
fn every_seed() {
    corpus("event_bytes").iter().for_each(|bytes| bodies::event_bytes(bytes));
    corpus("expression_bytes").iter().for_each(|bytes| bodies::expression_bytes(bytes));
    corpus("powertools_bytes").iter().for_each(|bytes| bodies::powertools_bytes(bytes));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn events(seed in prop::sample::select(corpus("event_bytes")), damage in damage()) {
        bodies::event_bytes(&damaged(seed, &damage));
    }

    #[test]
    fn expressions(seed in prop::sample::select(corpus("expression_bytes")), damage in damage()) {
        bodies::expression_bytes(&damaged(seed, &damage));
    }

    #[test]
    fn powertools(seed in prop::sample::select(corpus("powertools_bytes")), damage in damage()) {
        bodies::powertools_bytes(&damaged(seed, &damage));
    }
}
