//! `records watch`

use std::{collections::BTreeMap, num::NonZeroUsize, process::ExitCode, time::Duration};

use clap::{Args, ValueEnum as _};
use lambda_idempotency_core::clock::{Clock as _, SystemClock};
use serde_json::json;

use super::{connect::Table, print, print_line, scan, state::State, time, view};
use crate::{failure::Failure, terminal::Reader};

/// Show how the states of keys change, until Ctrl-C
///
/// Reads the table again and again: each time costs what `list` costs.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only keys of this operation: the part of a key before `#`
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,

    /// How long to wait between two readings
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = crate::arguments::time_to_work)]
    every: Duration,

    /// Read at most so many items each time
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    limit: NonZeroUsize,

    /// Stop after so many readings
    #[arg(long, value_name = "NUMBER")]
    rounds: Option<u64>,
}

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    eprintln!("each time: {}", scan::cost(table, arguments.limit).await?);
    let mut before: Option<BTreeMap<String, State>> = None;
    let mut round = 0u64;
    loop {
        round = round.saturating_add(1);
        let read = scan::read(table, arguments.limit, None, None).await?;
        let now = table.now();
        let operation = arguments.operation.as_deref();
        let wanted = |entry: &&view::Entry| operation.is_none_or(|name| entry.operation() == name);
        let states = read.entries.iter().filter(wanted);
        let states: BTreeMap<_, _> =
            states.map(|entry| (entry.key.as_str().to_owned(), entry.state(now))).collect();
        if read.next.is_some() {
            match &mut before {
                None => eprintln!(
                    "note: the table has more than {} items, and the others are not watched: raise --limit",
                    arguments.limit
                ),
                // A new item may have pushed out what is not among the first any more: it is not gone.
                Some(before) => before.retain(|key, _| states.contains_key(key)),
            }
        }
        let reader = tell(before.as_ref(), &states, &time::instant(now), as_json)?;
        let is_last = arguments.rounds.is_some_and(|rounds| round >= rounds);
        // To go on after `| head` would cost reads that nobody sees.
        if is_last || reader == Reader::Gone {
            return Ok(ExitCode::SUCCESS);
        }
        before = Some(states);
        SystemClock.sleep(arguments.every).await;
    }
}

/// Prints what has changed since the reading before; of the first reading, a summary.
fn tell(
    before: Option<&BTreeMap<String, State>>,
    states: &BTreeMap<String, State>,
    at: &str,
    as_json: bool,
) -> Result<Reader, Failure> {
    let Some(before) = before else {
        let first = format!("{at} {}", summary(states));
        return Ok(if as_json { Reader::Listens } else { print(&first)? });
    };
    for (key, was, is) in changes(before, states) {
        let reader = if as_json {
            let (was, is) = (was.map(State::name), is.map(State::name));
            print_line(&json!({ "at": at, "key": key, "was": was, "is": is }))?
        } else {
            let words = |state: Option<State>| state.map_or("no record", State::words);
            print(&format!("{at} {key}: {} -> {}", words(was), words(is)))?
        };
        if reader == Reader::Gone {
            return Ok(Reader::Gone);
        }
    }
    Ok(Reader::Listens)
}

fn summary(states: &BTreeMap<String, State>) -> String {
    let counts = State::value_variants().iter().filter_map(|state| {
        let count = states.values().filter(|found| *found == state).count();
        (count > 0).then(|| format!("{count} {}", state.words()))
    });
    let counts: Vec<_> = counts.collect();
    if counts.is_empty() { "no records".to_owned() } else { counts.join(", ") }
}

type Changed<'m> = (&'m str, Option<State>, Option<State>);

fn changes<'m>(
    before: &'m BTreeMap<String, State>,
    after: &'m BTreeMap<String, State>,
) -> Vec<Changed<'m>> {
    let now = after.iter().map(|(key, is)| (key.as_str(), before.get(key).copied(), Some(*is)));
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    let gone = gone.map(|(key, was)| (key.as_str(), Some(*was), None));
    now.chain(gone).filter(|(_, was, is)| was != is).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_and_changed_is_told() {
        let map = |states: &[(&str, State)]| {
            states
                .iter()
                .map(|(key, state)| ((*key).to_owned(), *state))
                .collect::<BTreeMap<_, _>>()
        };
        let before =
            map(&[("a", State::InProgress), ("b", State::Completed), ("c", State::Failed)]);
        let after =
            map(&[("a", State::Completed), ("b", State::Completed), ("d", State::InProgress)]);
        assert_eq!(
            changes(&before, &after),
            [
                ("a", Some(State::InProgress), Some(State::Completed)),
                ("d", None, Some(State::InProgress)),
                ("c", Some(State::Failed), None),
            ]
        );
        assert_eq!(summary(&after), "1 in progress, 2 completed");
    }
}
