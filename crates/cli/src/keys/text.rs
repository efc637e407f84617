//! The report for people: as wide as the terminal, or 100 columns.

use std::fmt::Write as _;

use comfy_table::{
    Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, TableStyle, Width,
};
use lambda_idempotency::keys::inspect::{Record, RecordKey, View};

use super::{
    arguments::{Arguments, UNNAMED},
    report::{File, Numbered, Report, Shared},
};
use crate::terminal::{plural, printable};

/// The width without a terminal, and the least width in a narrow one.
const WIDTH: u16 = 100;
const NARROWEST: u16 = 60;
/// How many characters of a text are shown.
const SHOWN: usize = 240;

pub(crate) fn page(report: &Report, arguments: &Arguments) -> String {
    let mut page = String::new();
    for file in &report.files {
        block(&mut page, &heading(file));
        for record in &file.records {
            block(&mut page, &self::record(record));
        }
    }
    for [source, parts, catches, misses] in report.defaults() {
        let mut rows = Rows::under(&format!("Without a key expression, {source} is known by"));
        rows.add("made of", parts).add("recognises", catches).add("misses", misses);
        block(&mut page, &rows.finish());
    }
    for warning in &report.warnings {
        let mut rows = Rows::new();
        rows.coloured("warning", warning, Color::Yellow);
        block(&mut page, &rows.finish());
    }
    if !report.shared.is_empty() {
        let mut rows = Rows::under("Records with the same key");
        for shared in &report.shared {
            rows.add(&numbers(&shared.records), &what_happens(shared));
            if !shared.mismatched.is_empty() {
                rows.coloured(&numbers(&shared.mismatched), MISMATCH, Color::Red);
            }
        }
        block(&mut page, &rows.finish());
    }
    if arguments.keys.operation.is_none() && report.totals().keys > 0 {
        let mut rows = Rows::new();
        let note = format!(
            "Every key contains the operation's name. None was given, so these are the keys of \
             `{UNNAMED}`. Name the operation with --operation."
        );
        rows.add("note", &note);
        block(&mut page, &rows.finish());
    }
    block(&mut page, &summary(report));
    page.trim_end().to_owned()
}

const MISMATCH: &str = "the same key with another fingerprint: refused as a mismatch";

fn block(page: &mut String, text: &str) {
    page.push_str(text.trim_end());
    page.push_str("\n\n");
}

fn heading(file: &File) -> String {
    let records = match file.records.len() {
        0 => "no records".to_owned(),
        count => plural(count, "record", "records"),
    };
    let against = if file.is_other { ", to compare with" } else { "" };
    let mut rows = Rows::new();
    rows.whole(&format!("{}: {records}{against}", file.path.display()));
    rows.table.trim_fmt()
}

fn record(Numbered { number, record }: &Numbered) -> String {
    let mut rows = Rows::under(&format!("#{number} {}", record.source));
    rows.add("record", if record.id.is_empty() { "has no id" } else { &record.id });
    match &record.identity {
        Ok(parts) => rows.add("identity", &parts.join(" | ")),
        Err(_) => rows.add("identity", "none"),
    };
    let is_known = |arn: &str| record.identity.iter().flatten().any(|part| part == arn);
    if let Some(arn) = record.arn.as_deref().filter(|arn| !arn.is_empty() && !is_known(arn)) {
        rows.add("from", arn);
    }
    if let Some(group) = &record.group {
        rows.add("order group", group);
    }
    let Some(key) = &record.key else { return rows.finish() };
    rows.add("view", &describe_view(key));
    rows.add("it holds", &cut(&in_a_line(seen(record))));
    let selected: Vec<_> =
        key.parts.iter().map(|(part, value)| cut(&format!("{part} = {value}"))).collect();
    if !selected.is_empty() {
        rows.add("selected", &selected.join("\n"));
    }
    if let Some(canonical) = &key.selected {
        rows.add("canonical", &cut(canonical));
    }
    match &key.key {
        Ok(key) => rows.coloured("key", key.as_str(), Color::Green),
        Err(problem) => rows.coloured("no key", &problem.to_string(), Color::Red),
    };
    if let Some(fingerprint) = &key.fingerprint {
        rows.add("fingerprint", fingerprint.as_str());
    }
    rows.finish()
}

pub(crate) fn view(record: &Record) -> &'static str {
    match record.key.as_ref().and_then(|key| key.path.as_ref()).map(|path| path.view) {
        None => "identity",
        Some(View::Payload) => "payload",
        Some(View::Record) => "record",
    }
}

fn describe_view(key: &RecordKey) -> String {
    let Some(path) = &key.path else {
        return "none: the identity is the key (the payload is for the handler)".to_owned();
    };
    let expression = &path.expression;
    match path.view {
        View::Payload => format!("the payload, by {expression}"),
        View::Record => format!("the raw record, by {expression}"),
    }
}

/// The text to which the expression is applied.
fn seen(record: &Record) -> &str {
    match (view(record), &record.payload) {
        ("record", _) | (_, Err(_)) => &record.raw,
        (_, Ok(payload)) => payload,
    }
}

/// A text of several lines on one line.
fn in_a_line(text: &str) -> String {
    if text.contains('\n') {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text.to_owned()
    }
}

fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{head}… ({length} characters; --json shows all)")
}

fn numbers(records: &[usize]) -> String {
    records.iter().map(|number| format!("#{number}")).collect::<Vec<_>>().join(" ")
}

fn what_happens(shared: &Shared) -> String {
    let Shared { records, payloads_differ, key, .. } = shared;
    let what = match (records.as_slice(), payloads_differ) {
        ([_], _) => "is handled",
        (_, false) => "one is handled, the others are answered without",
        (_, true) => {
            "one is handled, the others are answered without; \
             BUT THEIR PAYLOADS DIFFER: are they the same work?"
        }
    };
    format!("{what}\n{key}")
}

fn summary(report: &Report) -> String {
    let totals = report.totals();
    format!(
        "{}: {}, {}, {}, {} without a key",
        plural(totals.records, "record", "records"),
        plural(totals.keys, "key", "keys"),
        plural(totals.duplicates, "duplicate", "duplicates"),
        plural(totals.mismatches, "mismatch", "mismatches"),
        totals.without_key
    )
}

/// Labels and texts, a row each.
struct Rows {
    title: String,
    table: Table,
}

impl Rows {
    fn new() -> Self {
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        table.set_content_arrangement(ContentArrangement::Dynamic);
        let width = table.width().filter(|width| *width >= NARROWEST).unwrap_or(WIDTH);
        table.set_width(width);
        Self { title: String::new(), table }
    }

    fn under(title: &str) -> Self {
        Self { title: printable(title), ..Self::new() }
    }

    fn add(&mut self, label: &str, text: &str) -> &mut Self {
        self.table.add_row(vec![Cell::new(label), Cell::new(printable(text))]);
        self
    }

    /// A text without a label.
    fn whole(&mut self, text: &str) {
        self.table.add_row(vec![Cell::new(printable(text)).add_attribute(Attribute::Bold)]);
        if let Some(column) = self.table.column_mut(0) {
            column.set_padding((0, 1));
        }
    }

    fn coloured(&mut self, label: &str, text: &str, colour: Color) -> &mut Self {
        let label = Cell::new(label).add_attribute(Attribute::Bold).fg(colour);
        self.table.add_row(vec![label, Cell::new(printable(text))]);
        self
    }

    fn finish(mut self) -> String {
        if let Some(labels) = self.table.column_mut(0) {
            labels.set_padding((2, 1));
            labels.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(14)));
        }
        if let Some(texts) = self.table.column_mut(1) {
            texts.set_padding((0, 0));
        }
        let mut text = String::new();
        if !self.title.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", self.title);
        }
        text.push_str(&self.table.trim_fmt());
        text
    }
}
