//! The worlds. Each is small, and has something that the others leave out.

use std::time::Duration;

use crate::core::policy::{Lease, OnConflict, OnOutage, OnTimeout};

use crate::{
    properties::FENCES_OUTLIVE,
    run::hold,
    setup::{Message, Setup},
    world::Faults,
};

pub(crate) const NONE: Faults =
    Faults { deaths: 0, losses: 0, late: 0, refusals: 0, delays: 0, errors: 0, hangs: 0, steps: 0 };

/// Two processes, each with a copy.
pub(crate) fn together(name: &'static str) -> Setup {
    Setup::new(name, &[0, 0]).with(|world| {
        (world.processes, world.batch) = (2, 1);
        world.takes = Duration::from_millis(500);
        world.receives = 3;
    })
}

/// The same, with a short lease that ends while a call is on its way, so that the other process takes over.
pub(crate) fn overtaken(name: &'static str) -> Setup {
    let world = together(name).with(|world| {
        world.timeout = Some(Duration::from_secs(4));
        world.takes = Duration::from_millis(1_500);
    });
    world.policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(2) })
}

pub(crate) fn alone() -> Setup {
    Setup::new("one record", &[0]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
        world.fails_permanently = true;
        world.expect = &["death", "late write", "quarantined handler", "failed", "replayed"];
    })
}

/// Three processes, each with a copy.
pub(crate) fn three_processes() -> Setup {
    Setup::new("three processes", &[0, 0, 0]).with(|world| {
        (world.processes, world.batch) = (3, 1);
        world.receives = 3;
        world.faults = Faults { losses: 1, deaths: 1, ..NONE };
        world.expect = &["busy", "death", "replayed", "takeover"];
    })
}

/// A server that removes records, whose retention is shorter than the lease.
pub(crate) fn swept(name: &'static str) -> Setup {
    let world = overtaken(name).with(|world| {
        world.sweeps = true;
        world.faults = Faults { losses: 1, late: 1, ..NONE };
        world.expect = &["sweep", "renewal", "late write"];
    });
    world.policy(|policy| policy.retention = Duration::from_secs(1))
}

/// The same, while calls are in flight.
pub(crate) fn delayed() -> Setup {
    swept("records that are removed meanwhile").with(|world| {
        world.faults = Faults { delays: 4, ..NONE };
        world.receives = 2;
        world.expect = &["sweep", "completed anew"];
        world.lost = &[FENCES_OUTLIVE];
    })
}

/// The store answers so late that the lease may have ended.
pub(crate) fn late_answers() -> Setup {
    overtaken("answers that are late").with(|world| {
        (world.late_answers, world.receives) = (true, 2);
        world.faults = Faults { delays: 2, ..NONE };
        world.expect = &["takeover", "renewal", "fenced", "replayed"];
    })
}

/// Two applications whose operations have one name, so that their keys are the same.
pub(crate) fn namesakes() -> Setup {
    let world = together("two applications with one name").with(|world| {
        world.messages.push(Message { key: 0, payload: 1 });
        (world.applications, world.receives) = (true, 6);
        world.faults = Faults { deaths: 1, ..NONE };
        world.expect = &["foreign", "replayed", "takeover"];
    });
    world.policy(|policy| policy.retention = Duration::from_secs(10))
}

pub(crate) fn two_keys() -> Setup {
    Setup::new("two records of two keys", &[0, 1]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, ..NONE };
        world.expect = &["death", "quarantined handler", "replayed"];
    })
}

#[test]
fn three_records_of_two_keys() {
    hold(Setup::new("three records of two keys", &[0, 1, 0]).with(|world| {
        world.faults = Faults { deaths: 1, errors: 1, losses: 1, ..NONE };
        world.expect = &["death", "quarantined handler", "coalesced", "failed"];
    }));
}

/// Two invocations of one process, each with a copy.
pub(crate) fn one_process() -> Setup {
    Setup::new("two invocations of one process", &[0, 0]).with(|world| {
        (world.at_once, world.batch) = (2, 1);
        world.takes = Duration::from_millis(500);
        world.receives = 3;
        world.faults = Faults { losses: 1, deaths: 1, ..NONE };
        world.expect = &["busy", "replayed"];
    })
}

pub(crate) fn two_processes() -> Setup {
    together("two invocations of two processes").with(|world| {
        world.faults = Faults { losses: 1, deaths: 1, ..NONE };
        world.expect = &["busy", "death", "replayed"];
    })
}

pub(crate) fn claimed_ahead() -> Setup {
    Setup::new("killed with claims ahead", &[0, 1, 2])
        .with(|world| {
            world.faults = Faults { deaths: 1, delays: 1, ..NONE };
            world.takes = Duration::from_secs(1);
            world.expect = &["death", "quarantined handler"];
        })
        .policy(|policy| policy.concurrency = 1)
}

pub(crate) fn group() -> Setup {
    Setup::new("a FIFO group", &[0, 1]).with(|world| {
        world.ordered = true;
        world.faults = Faults { deaths: 1, errors: 1, losses: 1, ..NONE };
        world.expect = &["death", "failed", "returned"];
    })
}

/// A stream, of which two handlers run at once: a death leaves suspects whose receives are not counted.
pub(crate) fn stream() -> Setup {
    Setup::new("a stream", &[0, 1, 2])
        .with(|world| {
            world.whole = true;
            world.faults = Faults { deaths: 1, errors: 1, ..NONE };
            world.expect = &["death", "failed", "replayed", "quarantined handler"];
        })
        .policy(|policy| policy.concurrency = 2)
}

/// Two payloads under one key.
pub(crate) fn payloads() -> Setup {
    Setup::new("a fingerprint that differs", &[0, 0, 0]).with(|world| {
        world.messages[2] = Message { key: 0, payload: 1 };
        world.fingerprints = true;
        world.faults = Faults { errors: 1, losses: 1, deaths: 1, ..NONE };
        world.expect = &["mismatch", "coalesced", "failed"];
    })
}

/// A lease of two seconds in an invocation of four.
pub(crate) fn renewed() -> Setup {
    Setup::new("a short lease with renewals", &[0])
        .with(|world| {
            world.timeout = Some(Duration::from_secs(4));
            world.takes = Duration::from_millis(2_500);
            world.faults = Faults { losses: 2, delays: 2, ..NONE };
            world.expect = &["renewal", "fenced"];
        })
        .policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(2) })
}

pub(crate) fn timed_out() -> Setup {
    Setup::new("a deadline", &[0, 1]).with(|world| {
        world.faults = Faults { hangs: 1, losses: 1, refusals: 1, ..NONE };
        world.expect = &["stopped handler", "timed_out"];
    })
}

/// A handler that is stopped at its deadline fails permanently.
pub(crate) fn permanent_timeout() -> Setup {
    Setup::new("a deadline that fails permanently", &[0, 1])
        .with(|world| {
            world.faults = Faults { hangs: 1, delays: 1, losses: 1, ..NONE };
            world.expect = &["stopped handler", "timed_out"];
        })
        .policy(|policy| policy.on_timeout = OnTimeout::FailPermanently)
}

/// The first key's handler kills its process.
pub(crate) fn poison() -> Setup {
    Setup::new("a record that kills its process", &[0, 1]).with(|world| {
        world.poison = true;
        world.takes = Duration::from_millis(100);
        // A lost answer is one more receive without an attempt, and both run together once more.
        (world.harm, world.receives) = (2, 2);
        world.faults = Faults { deaths: 3, losses: 1, ..NONE };
        world.expect = &["death", "harmed handler", "quarantined handler"];
    })
}

/// The store fails, and the policy runs records unprotected.
pub(crate) fn unprotected() -> Setup {
    Setup::new("unprotected in an outage", &[0, 0])
        .with(|world| {
            world.faults = Faults { losses: 2, refusals: 1, ..NONE };
            world.expect = &["handler without a claim", "unprotected"];
        })
        .policy(|policy| policy.on_outage = OnOutage::RunUnprotected)
}

pub(crate) fn without_deadline() -> Setup {
    let world = together("no deadline").with(|world| {
        (world.timeout, world.takes) = (None, Duration::from_secs(1));
        world.faults = Faults { hangs: 1, losses: 1, ..NONE };
        world.expect = &["stopped handler", "busy"];
    });
    world.policy(|policy| policy.fallback_timeout = Duration::from_secs(3))
}

pub(crate) fn clocks() -> Setup {
    let world = together("clocks that step").with(|world| {
        (world.takes, world.receives) = (Duration::from_secs(1), 2);
        world.faults = Faults { steps: 1, hangs: 1, ..NONE };
        world.expect = &["stopped handler", "takeover"];
    });
    world.policy(|policy| policy.on_conflict = OnConflict::Wait { up_to: Duration::from_secs(5) })
}

/// A clock steps past the end of a lease that would have been renewed.
pub(crate) fn past_a_lease() -> Setup {
    let world = together("a clock that steps past a lease").with(|world| {
        (world.takes, world.receives) = (Duration::from_secs(1), 2);
        world.faults = Faults { steps: 1, ..NONE };
        world.expect = &["renewal", "busy", "fenced"];
    });
    world.policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(1) })
}

/// Renewals in two processes, whose clocks step. Only in the larger run.
#[test]
fn clocks_that_step_between_renewals() {
    if !Setup::is_large() {
        return;
    }
    let world = together("clocks that step between renewals").with(|world| {
        world.takes = Duration::from_secs(1);
        world.faults = Faults { steps: 1, hangs: 1, ..NONE };
        world.expect = &["renewal", "stopped handler", "takeover", "busy"];
    });
    hold(world.policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(2) }));
}

/// A handler that outlives its lease if that is not renewed, while another process waits for its key. Only mutants are
/// explored with this world.
pub(crate) fn outlives_its_lease() -> Setup {
    Setup::new("a handler that outlives its lease", &[0, 0])
        .with(|world| {
            (world.processes, world.batch) = (2, 1);
            world.takes = Duration::from_secs(2);
        })
        .policy(|policy| {
            policy.lease = Lease::Renewed { length: Duration::from_secs(1) };
            policy.clock_skew = Duration::from_millis(200);
            policy.on_conflict = OnConflict::Wait { up_to: Duration::from_secs(5) };
        })
}

/// A quarantined record runs while another record of its batch waits for a busy key.
pub(crate) fn beside_a_busy_key() -> Setup {
    Setup::new("quarantine beside a busy key", &[0, 1, 1])
        .with(|world| {
            (world.processes, world.batch, world.receives) = (2, 2, 2);
            world.takes = Duration::from_millis(500);
            world.faults = Faults { deaths: 1, ..NONE };
            world.expect = &["quarantined handler", "busy"];
        })
        .policy(|policy| policy.on_conflict = OnConflict::Wait { up_to: Duration::from_secs(2) })
}

/// Without a deadline, with a handler that hangs.
#[test]
fn suspects_without_a_deadline() {
    hold(
        Setup::new("suspects without a deadline", &[0, 1])
            .with(|world| {
                (world.at_once, world.batch, world.timeout) = (2, 1, None);
                world.takes = Duration::from_secs(1);
                (world.faults.deaths, world.faults.hangs) = (2, 1);
                world.expect = &["quarantined handler", "stopped handler"];
            })
            .policy(|policy| policy.fallback_timeout = Duration::from_secs(3)),
    );
}

/// An invocation with suspects holds a key for which the other one of its process waits as long as it takes.
#[test]
fn suspects_in_one_process() {
    hold(
        Setup::new("suspects in one process", &[0, 1, 1])
            .with(|world| {
                (world.at_once, world.batch) = (2, 2);
                world.takes = Duration::from_secs(1);
                world.receives = 2;
                world.faults = Faults { deaths: 2, ..NONE };
                world.expect = &["quarantined handler", "busy"];
            })
            .policy(|policy| {
                policy.on_conflict = OnConflict::Wait { up_to: Duration::from_secs(9) }
            }),
    );
}

tests! {
    three_processes_of_one_key: hold(three_processes());
    a_short_retention: hold(swept("a retention shorter than the lease"));
    removed_meanwhile: hold(delayed());
    late_answers_of_the_store: hold(late_answers());
    two_applications_with_one_name: hold(namesakes());
    one_record: hold(alone());
    two_records_of_two_keys: hold(two_keys());
    two_invocations_of_one_process: hold(one_process());
    two_invocations_of_two_processes: hold(two_processes());
    clocks_that_step: hold(clocks());
    a_clock_that_steps_past_a_lease: hold(past_a_lease());
    killed_with_claims_ahead: hold(claimed_ahead());
    a_fifo_group: hold(group());
    a_stream: hold(stream());
    a_fingerprint_that_differs: hold(payloads());
    a_short_lease_with_renewals: hold(renewed());
    a_deadline: hold(timed_out());
    a_deadline_that_fails_permanently: hold(permanent_timeout());
    a_record_that_kills_its_process: hold(poison());
    unprotected_in_an_outage: hold(unprotected());
    no_deadline: hold(without_deadline());
    quarantine_beside_a_busy_key: hold(beside_a_busy_key());
}
