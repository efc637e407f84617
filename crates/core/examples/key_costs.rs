//! Makes keys over and over, for `benches/instructions` to count: `key_costs CASE TIMES`.

#![allow(clippy::unwrap_used, reason = "an example")]

#[path = "../benches/cases/mod.rs"]
mod cases;

use std::hint::black_box;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().and_then(|number| number.parse::<usize>().ok());
    let (Some(case), Some(times)) = (next(), next()) else {
        let yardstick = ["yardstick: serde_json parses the record twice"].into_iter();
        let names = yardstick.chain(cases::CASES.iter().map(|(name, ..)| *name));
        names.enumerate().for_each(|(case, name)| println!("{case} {name}"));
        return;
    };
    match case.checked_sub(1).and_then(|case| cases::CASES.get(case)) {
        Some((_, text, expressions)) => {
            let prepared = cases::prepare(expressions);
            (0..times).for_each(|_| drop(black_box(cases::extract(black_box(text), &prepared))));
        }
        None => (0..times).for_each(|_| drop(black_box(cases::parse_twice()))),
    }
}
