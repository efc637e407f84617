//! The guide's page about large fleets, and that of the simulation, are made from the recorded figures of the simulation: its tables, and each figure in its
//! sentences. `WRITE_PAGE=1` writes them; without it, the test fails if they are not those of the file.

use std::{collections::BTreeMap, env, fs};

use crate::{performance::tables::grouped, read, root};

const FIGURES: &str = "crates/lambda/src/guide/measured/fleet.tsv";
const PAGES: [&str; 2] = ["crates/lambda/src/guide/at_scale.md", "docs/fleet.md"];
const LOAD: f64 = 1e9 / 86_400.0;
/// The quota of a table, in write units a second, of which a new record takes two.
const QUOTA: f64 = 40_000.0;
/// The faults, as the page describes them.
const FAULTS: [(&str, &str); 6] = [
    ("outage", "no answer, a third of the writes applied all the same"),
    ("throttling", "a third of the write units"),
    ("hot-keys", "a fifth of the records under four keys"),
    ("slow-table", "each request 0.7 to 1.2 s longer"),
    ("crashes", "one of twenty invocations killed"),
    ("failing-handlers", "handlers take ten times as long, and fail"),
];
/// The runs with another limit: the name, and what the limit is.
const LIMITS: [(&str, &str); 3] = [
    ("outage, what the load needs", "what the load needs"),
    ("outage", "what the table serves"),
    ("outage, the most", "the most that can be set"),
];

struct Figures {
    about: String,
    values: BTreeMap<(String, String), f64>,
}

impl Figures {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let about = lines.next().and_then(|line| line.strip_prefix("# ")).expect("a comment");
        let about = about.to_owned();
        let values = lines.skip(1).map(|line| match *line.split('\t').collect::<Vec<_>>() {
            [run, figure, value] => ((run.into(), figure.into()), value.parse().expect("a figure")),
            _ => panic!("{line}: not three cells"),
        });
        Self { about, values: values.collect() }
    }

    fn find(&self, run: &str, figure: &str) -> Option<f64> {
        self.values.get(&(run.to_owned(), figure.to_owned())).copied()
    }

    fn get(&self, run: &str, figure: &str) -> f64 {
        self.find(run, figure).unwrap_or_else(|| panic!("no figure `{figure}` of `{run}`"))
    }

    fn whole(&self, run: &str, figure: &str) -> String {
        whole(self.get(run, figure))
    }

    /// The batches of ten at once for so many records a second, in tens.
    fn batches(&self, records: f64) -> f64 {
        records / 10.0 * self.get("steady", "full_batch_s") / 10.0
    }

    fn limit(&self) -> f64 {
        self.batches(QUOTA / 2.0).round() * 10.0
    }
}

fn whole(value: f64) -> String {
    grouped(&format!("{value:.0}"))
}

/// Each block of the page.
fn blocks(figures: &Figures) -> Vec<(&'static str, String)> {
    vec![
        ("about", format!("Simulated by {}.\n", figures.about)),
        ("capacity", capacity(figures)),
        ("limits", limits(figures)),
        ("hot", hot(figures)),
        (
            "whole",
            faults(figures, &[("whole outage", "outage"), ("whole throttling", "throttling")]),
        ),
        ("whole-sums", whole_sums(figures)),
        ("faults", faults(figures, &FAULTS.map(|(name, _)| (name, name)))),
        ("effects", effects(figures)),
    ]
}

/// Each figure in a sentence of the page.
fn values(figures: &Figures) -> Vec<(&'static str, String)> {
    let needs = LIMITS[0].0;
    assert!(figures.find(needs, "outage: no_backlog_s").is_none(), "the backlog is gone");
    // The fault began after a minute.
    let afterwards = figures.get(needs, "sent_s") - 60.0 - figures.get(needs, "outage: lasts_s");
    assert!((afterwards - 600.0).abs() < 1.0, "the page says ten minutes");
    let (ended, left) = (figures.get(needs, "outage: backlog"), figures.get(needs, "backlog_left"));
    assert!(left >= ended, "the page says that it has not shrunk");
    let limit = figures.limit();
    let returned = figures.get("new table", "unavailable");
    let throttled = |run| figures.get(run, "hot-keys: throttled");
    assert_eq!(throttled("hot-keys") + throttled("hot-keys without memory"), 0.0, "say so");
    vec![
        ("fastest", figures.whole("whole outage", "fastest")),
        (
            "steady",
            format!(
                "{:.3} write units and {:.3} read units, in {:.2} requests",
                figures.get("steady", "write_units"),
                figures.get("steady", "read_units"),
                figures.get("steady", "requests")
            ),
        ),
        ("batch", format!("{:.2}", figures.get("steady", "full_batch_s"))),
        ("limit", format!("`MaximumConcurrency: {limit}`")),
        ("ended", whole(ended)),
        ("left", whole(left)),
        (
            "new-table",
            format!(
                "{:.1} requests and {:.1} throttled writes",
                figures.get("new table", "requests"),
                figures.get("new table", "throttled")
            ),
        ),
        (
            "returned",
            format!("{} of {}", whole(returned), figures.whole("new table", "deliveries")),
        ),
        ("quota", figures.whole("outage", "outage: back_s")),
        ("no-quota", figures.whole("outage without the quota of the queue", "outage: back_s")),
        ("start", figures.whole("start", "backlog_until_s")),
        (
            "third",
            whole(
                100.0 * figures.get("throttling", "throttling: during")
                    / figures.get("throttling", "throttling: before"),
            ),
        ),
    ]
}

fn capacity(figures: &Figures) -> String {
    let dg = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide";
    let scaling = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html";
    let quotas = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html";
    let units = whole((2.0 * LOAD).floor());
    let partitions = (2.0 * LOAD / 1000.0).ceil();
    let batches = figures.batches(LOAD).ceil() * 10.0;
    let took = figures.get("steady", "full_batch_s");
    format!(
        "| | needed | what there is without a request to AWS |
|---|--:|---|
| write units a second | {units} | [4,000 in a new table on demand, 40,000 at most]({dg}/on-demand-capacity-mode.html) |
| partitions of the table, each with [1,000 write units a second]({dg}/warm-throughput-scenarios.html) | {partitions} | 4 in a new table |
| batches at once, at {took:.2} s a batch of ten | {batches} | [1,250; 5 in the beginning, and 300 more each minute]({scaling}) (older editions of that page: 1,000) |
| records in flight, after two minutes without the table | all that are received | [120,000 in a queue]({quotas}) |
"
    )
}

fn limits(figures: &Figures) -> String {
    let mut table = String::from(
        "| `MaximumConcurrency` | for a whole fleet | throughput back after | backlog at most | gone after | left ten minutes after the outage | writes throttled for each record |
|---|--:|--:|--:|--:|--:|--:|
",
    );
    for (run, what) in LIMITS {
        let limit = whole(figures.get(run, "functions") * 10.0);
        let back = figures.whole(run, "outage: back_s");
        let gone = figures.find(run, "outage: no_backlog_s");
        let (gone, left) = match gone {
            Some(gone) => (format!("{} s", whole(gone)), "none".into()),
            None => ("not in this time".into(), figures.whole(run, "backlog_left")),
        };
        let most = figures.whole(run, "backlog");
        let throttled = figures.get(run, "throttled");
        table.push_str(&format!(
            "| {what} | {limit} | {back} s | {most} | {gone} | {left} | {throttled:.3} |\n"
        ));
    }
    table
}

fn hot(figures: &Figures) -> String {
    let mut table = String::from(
        "| processes | records a second, before and during | writes for each delivery | writes throttled | backlog when it ended |
|---|--:|--:|--:|--:|
",
    );
    for (run, what) in [
        ("whole, one hot key", "remember completed keys (the default)"),
        ("whole, one hot key without memory", "remember none (`Cache::off()`)"),
    ] {
        let of = |figure: &str| figures.get(run, &format!("hot-keys: {figure}"));
        let (before, during) = (whole(of("before")), whole(of("during")));
        let backlog = match of("backlog") {
            some if some > 2.0 * LOAD => whole(some),
            _ => "none".into(),
        };
        table.push_str(&format!(
            "| {what} | {before}, {during} | {:.2} | {} | {backlog} |\n",
            of("writes"),
            whole(of("throttled"))
        ));
    }
    table
}

/// A row for each run and its fault.
fn faults(figures: &Figures, runs: &[(&str, &str)]) -> String {
    let mut table = String::from(
        "| fault | records a second, before and during | throughput back after | backlog gone after | requests and writes for each delivery | writes throttled |
|---|--:|--:|--:|--:|--:|
",
    );
    for (run, fault) in runs {
        let of = |figure: &str| figures.get(run, &format!("{fault}: {figure}"));
        let about = FAULTS.iter().find(|(name, _)| name == run);
        let about = about.map(|(_, about)| format!(": {about}")).unwrap_or_default();
        table.push_str(&format!(
            "| `{fault}`{about} | {}, {} | {} s | {} s | {:.2}, {:.2} | {} |\n",
            whole(of("before")),
            whole(of("during")),
            whole(of("back_s")),
            whole(of("no_backlog_s")),
            of("requests"),
            of("writes"),
            whole(of("throttled"))
        ));
    }
    table
}

fn whole_sums(figures: &Figures) -> String {
    let of = |figure| figures.get("whole outage", figure);
    assert!(of("doubled") < 0.5, "effects were doubled: say why");
    format!(
        "When the outage ended, {} records were sent and not yet processed; later at most {}, while the quota of messages in\n\
         flight held the queue back. In the end all {} came through; {} of them, whose handlers always fail, into the\n\
         dead-letter queue. No effect was doubled. {} completions could not be stored. A record cost {:.2} requests, {:.2} write\n\
         units and {:.3} read units, over all of the run.\n",
        whole(of("outage: backlog")),
        whole(of("backlog")),
        whole(of("records")),
        whole(of("dead")),
        whole(of("completion_lost")),
        of("requests"),
        of("write_units"),
        of("read_units"),
    )
}

fn effects(figures: &Figures) -> String {
    let sum = |figure| FAULTS.iter().map(|(run, _)| figures.get(run, figure)).sum::<f64>();
    let of_crashes = figures.get("crashes", "doubled");
    assert!(sum("doubled") - of_crashes < 0.5, "others were doubled: say why");
    assert!(figures.get("outage", "completion_lost") > sum("completion_lost") - 0.5, "say where");
    let records = figures.whole("outage", "records");
    let dead = figures.whole("outage", "dead");
    format!(
        "In each of these runs all {records} records came through, except {dead} whose handlers always fail and that ended in the\n\
         dead-letter queue. No handler ran while another had its key. `crashes` doubled {} effects: their processes were killed\n\
         after the effect, and before it was recorded as completed. No other fault doubled one. In the outage, {} handlers had\n\
         returned, and their completions could not be stored until the end of the invocation\n\
         ([`Outcome::CompletionLost`](../crates/lambda/src/guide/failure_modes.md)): a duplicate of those would have run again.\n",
        whole(of_crashes),
        figures.whole("outage", "completion_lost"),
    )
}

/// The page with these figures, of which it may have some.
fn made(page: &str, figures: &Figures) -> String {
    let mut page = page.to_owned();
    for (name, text) in blocks(figures) {
        page = between(
            &page,
            &format!("<!-- fleet: {name} -->\n"),
            "<!-- end -->\n",
            &format!("\n{text}\n"),
        );
    }
    for (name, text) in values(figures) {
        page = between(&page, &format!("<!--f {name}-->"), "<!--f-->", &text);
    }
    page
}

fn between(page: &str, begin: &str, end: &str, text: &str) -> String {
    let Some((before, rest)) = page.split_once(begin) else { return page.to_owned() };
    let (_, after) = rest.split_once(end).expect("an end");
    format!("{before}{begin}{text}{end}{after}")
}

fn figures() -> Figures {
    Figures::parse(&read(FIGURES))
}

#[test]
fn the_pages_are_those_of_the_recorded_runs() {
    for name in PAGES {
        let page = made(&read(name), &figures());
        if env::var_os("WRITE_PAGE").is_some() {
            fs::write(root().join(name), &page).expect("a file");
        }
        assert!(read(name) == page, "{name} is not made from {FIGURES}: see tests/run fleet");
    }
}

#[test]
fn nothing_of_the_pages_is_left_out() {
    let page = PAGES.map(read).concat();
    let (blocks, values) = (blocks(&figures()), values(&figures()));
    let begins = blocks.iter().map(|(name, _)| format!("<!-- fleet: {name} -->\n"));
    let all: Vec<_> =
        begins.chain(values.iter().map(|(name, _)| format!("<!--f {name}-->"))).collect();
    let missing: Vec<_> = all.iter().filter(|begin| !page.contains(*begin)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(page.matches("<!-- fleet: ").count() + page.matches("<!--f ").count(), all.len());
    // Markdown takes a comment at the beginning of a line for a block, and shows the rest of that line as it is.
    assert!(!page.lines().any(|line| line.trim_start().starts_with("<!--f")));
}

/// The runs have the limit that the page recommends, and what the load needs is what the page says.
#[test]
fn the_limit_is_that_of_the_runs() {
    let figures = figures();
    assert_eq!(figures.limit(), 10.0 * figures.get("outage", "functions"));
    assert_eq!(figures.limit(), figures.get("whole outage", "functions"));
    let needed = figures.batches(LOAD).ceil() * 10.0;
    assert_eq!(needed, 10.0 * figures.get(LIMITS[0].0, "functions"));
}
