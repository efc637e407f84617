//! The engine makes few allocations for a record, and none for what a handler does not use. A test binary of its
//! own, because the allocator that counts is the one of the whole process.

#![allow(missing_docs, reason = "a test")]

mod cases;

use cases::{CASES, SIZES};

/// The allocations of a batch, for each of [`CASES`] with each of [`SIZES`].
const RECORDED: [(&str, [usize; 4]); 4] = [
    ("fresh", [37, 96, 561, 5199]),
    ("copy", [37, 57, 156, 1066]),
    ("duplicate, stored", [20, 30, 123, 1088]),
    ("duplicate, remembered", [12, 13, 16, 30]),
];

/// How many more there may be, in percent: another version of the standard library grows a map at another time.
const MARGIN: usize = 2;

#[test]
fn a_batch_makes_no_more_allocations_than_were_recorded() {
    let counted = CASES.map(|case| {
        // Another thread of this process may allocate meanwhile, but not each time.
        let least = |records| (0..5).map(|_| case.count(records)).min();
        (case.name, SIZES.map(|records| least(records).unwrap_or_default()))
    });
    let within = |(count, recorded): (&usize, usize)| *count <= recorded + recorded * MARGIN / 100;
    let all = counted.iter().zip(RECORDED);
    let are_within =
        all.map(|((_, counts), (_, recorded))| counts.iter().zip(recorded).all(within));
    assert!(
        are_within.min() == Some(true),
        "batches of {SIZES:?} made {counted:#?} allocations. More than {MARGIN} % above what was recorded is too many: \
         make a thing when it is first used, or once for the batch. If they are needed, record these counts"
    );
}
