//! Simulates a fleet and prints its figures.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how it reports a wrong argument")]

use std::{
    env, fs,
    process::{Command, ExitCode},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use lambda_idempotency_fleet::{
    record,
    report::Report,
    runs,
    scenario::{Fault, FaultKind, Scenario},
    simulate,
};

const USAGE: &str = "\
lambda-idempotency-fleet [OPTION VALUE]...
  --seed N             decides everything that is random (1)
  --functions N        the most functions at once (1000)
  --records N          how many records are sent (1000000)
  --rate N             how many of them each second (11574: a billion a day)
  --batch N            the most records of a batch (10)
  --handler MS         how long half of the handlers take at most (200)
  --pollers N          how many batches are processed at once in the beginning (5)
  --warm N             the write units a second of the table in the beginning (40000)
  --quota N            the most to which it grows (40000)
  --visibility S       the visibility timeout (180)
  --receives N         the receives after which a record goes to the dead-letter queue (10)
  --in-flight N        the most records in flight (120000)
  --killers N          of so many records one kills its process (0: none)
  --fault NAME         outage, throttling, hot-keys, slow-table, crashes, failing-handlers, or all
  --from S             when it begins (a third of the time in which records are sent)
  --lasts S            how long it lasts (300)
  --trace RECORD       prints what happens to this record
  --hot-keys N         how many keys are hot (4)
  --more N             how many more batches are processed at once after each minute (300)
  --partition N        the write units a second of a partition (1000)
  --memory off         processes do not remember the keys that they saw completed
  --run NAME           a run of the guide, in place of the options before it
  --record FILE        writes the figures of all runs of the guide into a file: minutes
  --small yes          20 functions and a table that is as small, in place of the defaults above";

/// Makes all runs of the guide, as many at once as there are processors, and writes their figures into a file.
fn record_all(file: &str) -> ExitCode {
    // First: whoever waits may change files meanwhile.
    let about = format!(
        "`bash tests/run fleet`, {}, commit {}",
        said("date", &["-u", "+%F"]),
        said("git", &["describe", "--always", "--dirty", "--exclude=*"]),
    );
    let runs: Vec<_> =
        runs::all().into_iter().map(|(name, run)| (name, run, OnceLock::new())).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, run, report)) = runs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    report.get_or_init(|| simulate(run.clone()));
                    eprintln!("{name}: done");
                }
            });
        }
    });
    let report = |report: OnceLock<Report>| report.into_inner().expect("a report");
    let reports: Vec<_> = runs.into_iter().map(|(name, _, done)| (name, report(done))).collect();
    if let Some((name, report)) = reports.iter().find(|(_, report)| !report.wrong().is_empty()) {
        println!("nothing is recorded, because of `{name}`:\n{report}");
        return ExitCode::FAILURE;
    }
    fs::write(file, record::text(&about, &reports)).expect("a file that can be written");
    ExitCode::SUCCESS
}

/// What a command prints.
fn said(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().expect(command);
    assert!(output.status.success(), "{command} {arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// A run of the guide.
fn run(name: &str) -> Scenario {
    let mut all = runs::all();
    let names: Vec<String> = all.iter().map(|(name, _)| format!("`{name}`")).collect();
    let at = all.iter().position(|(other, _)| other == name);
    let at = at.unwrap_or_else(|| panic!("no run `{name}`, but {}", names.join(", ")));
    all.swap_remove(at).1
}

/// How long a fault lasts that no run of the guide has.
const LASTS: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let mut scenario = Scenario::new(1, 1000, 1_000_000, 1e9 / 86_400.0);
    let (mut faults, mut from, mut lasts) = (Vec::new(), None, LASTS);
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next();
        let Some(value) = value.filter(|_| name != "--help") else {
            println!("{USAGE}");
            return ExitCode::from(2);
        };
        let number: f64 = value.parse().unwrap_or_default();
        let (whole, seconds) = (number as usize, Duration::from_secs_f64(number));
        match &*name {
            "--seed" => scenario.seed = whole as u64,
            "--functions" => scenario.functions = whole,
            "--records" => scenario.records = whole as u32,
            "--rate" => scenario.rate = number,
            "--batch" => scenario.batch = whole,
            "--handler" => scenario.handler.0 = seconds / 1000,
            "--pollers" => scenario.pollers.first = whole,
            "--warm" => scenario.table.warm = number,
            "--quota" => scenario.table.quota = number,
            "--visibility" => scenario.visibility = seconds,
            "--receives" => scenario.max_receives = whole as u8,
            "--in-flight" => scenario.most_in_flight = whole as u32,
            "--killers" => scenario.killer_every = whole as u32,
            "--fault" => faults.push(value),
            "--from" => from = Some(seconds),
            "--trace" => scenario.trace = Some(whole as u32),
            "--hot-keys" => scenario.hot_keys = whole.max(1) as u32,
            "--more" => scenario.pollers.more_per_minute = number,
            "--partition" => scenario.table.partition = number,
            "--memory" => scenario.remembers = value != "off",
            "--record" => return record_all(&value),
            "--run" => {
                scenario = run(&value);
                (from, lasts) = (None, LASTS);
                faults.clear();
            }
            "--small" => scenario = Scenario::small(scenario.seed),
            "--lasts" => lasts = seconds,
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let mut from = from.unwrap_or(scenario.sent() / 3);
    for kind in FaultKind::ALL {
        if faults.iter().any(|fault| fault == kind.name() || fault == "all") {
            scenario.faults.push(Fault { kind, from, lasts });
            // The next one begins when the queue may be empty again.
            from += lasts * 4;
        }
    }
    let report = simulate(scenario);
    print!("{report}");
    ExitCode::from(u8::from(!report.wrong().is_empty()))
}
