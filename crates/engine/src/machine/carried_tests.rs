use std::hash::DefaultHasher;

use super::*;

fn hash(carried: &Carried<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    carried.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn what_reads_the_same_is_equal_and_has_one_hash() {
    assert!(Carried("a") == Carried("a") && Carried("a") != Carried("b"));
    assert_eq!(hash(&Carried("a")), hash(&Carried("a")));
    assert_ne!(hash(&Carried("a")), hash(&Carried("b")));
}
