use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn sent(calls: &mut Calls<&'static str>, deadline: u64) {
    calls.add(CallId(7), vec!["a"], at(1_000), at(deadline), Duration::from_millis(300));
}

#[test]
fn each_try_may_take_twice_as_long_as_the_one_before() {
    let first = Duration::from_secs(1);
    let lengths = [0, 1, 2, 8, 9].map(|tries| ends(at(0), first, tries).as_millis());
    assert_eq!(lengths, [1_000, 2_000, 4_000, 256_000, 256_000]);
}

#[test]
fn a_call_that_took_half_of_its_time_was_cut_short() {
    for (answered, is_cut_short) in [(1_000, false), (1_499, false), (1_500, true), (2_000, true)] {
        let mut calls = Calls::default();
        sent(&mut calls, 2_000);
        let answered = calls.answered(CallId(7), at(answered)).unwrap();
        assert_eq!((answered.members, answered.cut_short), (vec!["a"], is_cut_short));
    }
}

#[test]
fn a_call_without_any_time_that_is_answered_at_once_was_not_cut_short() {
    let mut calls = Calls::default();
    sent(&mut calls, 1_000);
    assert!(!calls.answered(CallId(7), at(1_000)).unwrap().cut_short);
}

#[test]
fn a_call_is_on_its_way_until_it_is_answered_or_given_up() {
    let mut calls = Calls::default();
    assert!(calls.is_empty());
    sent(&mut calls, 2_000);
    assert!(!calls.is_empty());
    assert_eq!(calls.members().collect::<Vec<_>>(), [&"a"]);
    assert!(calls.answered(CallId(8), at(1_100)).is_none(), "another call");
    assert!(calls.answered(CallId(7), at(1_100)).is_some());
    assert!(calls.is_empty() && calls.answered(CallId(7), at(1_100)).is_none());
    sent(&mut calls, 2_000);
    assert_eq!(calls.abandon().collect::<Vec<_>>(), ["a"]);
    assert!(calls.is_empty());
}

#[test]
fn the_next_call_waits_for_the_last_one_a_short_while() {
    let mut calls = Calls::default();
    let next = |calls: &Calls<_>, due| calls.next(at(due), at(due));
    assert_eq!(next(&calls, 1_000), at(1_000));
    sent(&mut calls, 2_000);
    assert_eq!([next(&calls, 1_100), next(&calls, 1_400)], [at(1_300), at(1_400)]);
    assert_eq!(next(&calls, 900), at(900), "the clock has stepped back");
}
