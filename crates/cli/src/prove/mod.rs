//! `lambda-idempotency prove`: runs orders through a stack in an AWS account, and audits what it did.
//!
//! | file | contents |
//! |---|---|
//! | `stack`, `clients` | which stack, and how its services are reached |
//! | `orders`, `send` | the orders, which ask for faults, and their messages |
//! | `collect`, `logs` | what is found in the account |
//! | `evidence` | that, in the order of time, for the audit of `chaos` |
//! | `proof`, `cost` | the result, and what it cost |

mod arguments;
mod clients;
mod collect;
mod cost;
mod evidence;
mod logs;
mod orders;
mod proof;
mod send;
mod stack;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use lambda_idempotency_chaos::EvidenceMessage;
use lambda_idempotency_core::clock::{Clock as _, SystemClock};

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::Fault,
    clients::Clients,
    collect::Collected,
    cost::{Bill, Counted},
    evidence::Whole,
    orders::{Orders, To},
    proof::Proof,
    stack::Stack,
};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::records;
use crate::terminal::{print, printable};

/// How often the account is looked at.
const POLL: Duration = Duration::from_secs(3);
/// How far this machine's clock may be ahead of Lambda's.
const CLOCK_MS: i64 = 15 * 60 * 1000;

/// Runs the command: 0 if there is no violation, 1 if there is one or the table has a problem.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    crate::report::check(arguments.report.as_deref())?;
    let clients = Clients::from_env().await?;
    let stack = Stack::find(&clients, &arguments.stack).await?;
    let problems = records::table_problems(&clients.dynamodb, &stack.table).await?;
    if !problems.is_empty() {
        let problems: String =
            problems.iter().map(|problem| format!("problem: {problem}\n")).collect();
        print(&printable(&problems))?;
        return Ok(ExitCode::FAILURE);
    }
    let faults = arguments.faults.clone().unwrap_or_else(|| Fault::value_variants().to_vec());
    let now = SystemClock.now().as_millis();
    let orders = Orders::new(format!("{now:x}"), arguments.orders, &faults);
    print(&printable(&intention(&stack, &clients, &orders)))?;
    if !arguments.yes {
        print("\nNothing was sent. Add --yes to begin.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if let queued @ 1.. = collect::queued(&clients, &stack).await? {
        let failure = Failure::from(format!("{queued} messages are in the queues of the stack"));
        return Err(failure.remedy(
            "Wait until the run that sent them has ended: two at a time cannot be told apart.",
        ));
    }
    let began = Instant::now();
    let before = collect::records(&clients, &stack).await?;
    let since = i64::try_from(now).unwrap_or(i64::MAX) - CLOCK_MS;
    let (clients, stack, orders) = (&clients, &stack, &orders);
    let mut carried = Carried {
        clients,
        stack,
        orders,
        patience: arguments.patience,
        collected: Collected::new(orders.run.clone(), since),
        messages: Vec::new(),
        given_up: false,
        bar: Progress::new(orders.messages.len() as u64, "messages"),
    };
    carried.carry_out().await?;
    let Carried { collected, messages, given_up, .. } = carried;
    let ledger = collect::ledger(clients, stack, &orders.run).await?;
    if ledger.is_empty() {
        let failure =
            Failure::from("the function wrote nothing to its ledger, so there is nothing to audit");
        return Err(failure.remedy(format!("Does it start? Look at its log: {}.", stack.logs)));
    }
    let mut records = collect::records(clients, stack).await?;
    records.retain(|key, _| !before.contains_key(key));
    let whole = Whole::new(orders, &messages, &collected, ledger, records.into_iter().collect());
    let proof = proof(clients, stack, orders, &collected, &whole, began.elapsed(), given_up);
    print(&printable(&proof.to_string()))?;
    if let Some(path) = &arguments.report {
        let story = whole.story();
        crate::report::write(&proof.page(&story), path).await?;
    }
    Ok(if proof.violations() == 0 && !given_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the command will do, and what that costs.
fn intention(stack: &Stack, clients: &Clients, orders: &Orders) -> String {
    let acts: Vec<String> =
        orders.counts().iter().map(|(act, count)| format!("{count} {act}")).collect();
    let hangs: u64 = orders.counts().iter().filter(|(act, _)| is_late(act)).map(|(_, n)| n).sum();
    let bill = cost::most(sent(orders), orders.messages.len() as f64, hangs as f64);
    format!(
        "In stack {} (Region {}): {} messages of {} orders are sent to its queues, its topic and its event bus, its \
         own messages are taken from its dead-letter queues, and its tables and its log are read. Nothing else is called.\n\
         The orders ask for: {}.\n\
         This takes minutes (a message that always fails is received twenty times) and costs at most about ${:.2}.",
        stack.name,
        clients.region,
        orders.messages.len(),
        orders.len(),
        acts.join(", "),
        (bill.dollars() * 100.0).ceil() / 100.0
    )
}

/// Whether an order that asks for this takes a whole invocation.
fn is_late(act: &str) -> bool {
    act.starts_with("hang") || act.starts_with("block")
}

/// How many messages go where.
fn sent(orders: &Orders) -> Counted {
    let count = |to| orders.messages.iter().filter(|message| message.to == to).count() as f64;
    Counted {
        to_queue: count(To::Queue),
        to_fifo: count(To::Fifo),
        to_topic: count(To::Topic),
        to_bus: count(To::Bus),
        ..Counted::default()
    }
}

/// A run that is carried out.
struct Carried<'a> {
    clients: &'a Clients,
    stack: &'a Stack,
    orders: &'a Orders,
    patience: Duration,
    collected: Collected,
    messages: Vec<EvidenceMessage>,
    given_up: bool,
    bar: Progress,
}

impl Carried<'_> {
    async fn carry_out(&mut self) -> Result<(), Failure> {
        let bar = std::mem::replace(&mut self.bar, Progress::new(0, ""));
        bar.during(self.phases(&bar), false).await
    }

    async fn phases(&mut self, bar: &Progress) -> Result<(), Failure> {
        // First what Lambda tries three times only, before the queues exhaust the table's capacity.
        for phase in [[To::Topic, To::Bus], [To::Queue, To::Fifo]] {
            for to in phase {
                let sent = send::send(self.clients, self.stack, self.orders, to).await?;
                self.messages.extend(sent);
            }
            self.wait(bar, phase.iter().any(|to| to.is_queue())).await?;
        }
        // Lambda stores its lines some seconds later.
        tokio::time::sleep(2 * POLL).await;
        self.collected.look_at_all(self.clients, self.stack).await
    }

    /// Waits until nothing that was sent is in flight.
    async fn wait(&mut self, bar: &Progress, has_queues: bool) -> Result<(), Failure> {
        let mut moved = (Instant::now(), usize::MAX);
        while !self.given_up {
            tokio::time::sleep(POLL).await;
            self.collected.look(self.clients, self.stack).await?;
            let logged = evidence::logged(self.orders, &self.messages, &self.collected);
            let left = logged.unsettled().count();
            bar.set((self.messages.len() - left) as u64);
            let queued = match has_queues {
                true => collect::queued(self.clients, self.stack).await?,
                false => 0,
            };
            if left == 0 && queued == 0 {
                return Ok(());
            }
            if left != moved.1 {
                moved = (Instant::now(), left);
            }
            self.given_up = moved.0.elapsed() > self.patience;
        }
        Ok(())
    }
}

fn proof(
    clients: &Clients,
    stack: &Stack,
    orders: &Orders,
    collected: &Collected,
    whole: &Whole,
    took: Duration,
    given_up: bool,
) -> Proof {
    let mut to = std::collections::BTreeMap::new();
    for message in &orders.messages {
        *to.entry(message.to.name()).or_default() += 1;
    }
    let used = whole.invocations.iter().map(|one| one.billed_ms / 1000.0 * one.memory_mb / 1024.0);
    let bill = Bill::new(&Counted {
        invocations: whole.invocations.len() as f64,
        gigabyte_seconds: used.sum(),
        ledger_lines: whole.lines() as f64,
        records: whole.evidence.records.len() as f64,
        log_bytes: collected.bytes as f64,
        ..sent(orders)
    });
    Proof {
        stack: stack.name.clone(),
        region: clients.region.clone(),
        run: orders.run.clone(),
        orders: orders.len(),
        sent: to,
        acts: orders.counts(),
        ends: whole.ends(),
        outcomes: whole.evidence.outcomes(),
        dead_lettered: whole.evidence.messages.iter().filter(|one| one.dead_lettered).count()
            as u64,
        findings: whole.evidence.audit(),
        given_up,
        bill,
        seconds: took.as_secs_f64(),
    }
}
