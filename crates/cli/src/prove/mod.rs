//! `lambda-idempotency prove`: runs orders through a stack in an AWS account, and audits what it did.
//!
//! | file | contents |
//! |---|---|
//! | `stack` | which stack, and how its services are reached |
//! | `orders` | the orders, which ask for faults, and their messages |
//! | `collect` | what is found in the account |
//! | `evidence` | that, in the order of time, for the audit of `chaos` |
//! | `proof` | the result |

mod arguments;
mod collect;
mod evidence;
mod orders;
mod proof;
mod stack;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::ValueEnum as _;
use lambda_idempotency_chaos::{Evidence, EvidenceMessage};
use lambda_idempotency_core::clock::{Clock as _, SystemClock};

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::Fault,
    collect::{Collected, Lines},
    evidence::Whole,
    orders::{Message, Orders, To},
    proof::{Proof, unseen},
    stack::{Clients, Stack},
};
use crate::{
    audit::Progress,
    failure::Failure,
    records,
    terminal::{print, printable},
};

/// How often the account is looked at.
const POLL: Duration = Duration::from_secs(3);
/// How far this machine's clock may be ahead of Lambda's.
const CLOCK_MS: i64 = 15 * 60 * 1000;
/// How long nothing of another run may have happened: the table keeps unused capacity of five minutes.
const QUIET_MS: i64 = 5 * 60 * 1000;
/// How late Lambda's lines may be stored.
const LATE: Duration = Duration::from_secs(60);

/// Runs the command: 0 if there is no violation, 1 if there is one or the table has a problem.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let clients = Clients::from_env().await?;
    let stack = stack::find(&clients, &arguments.stack).await?;
    let problems = records::table_problems(&clients.dynamodb, &stack.table).await?;
    if !problems.is_empty() {
        let problems: String =
            problems.iter().map(|problem| format!("problem: {problem}\n")).collect();
        print(&printable(&problems))?;
        return Ok(ExitCode::FAILURE);
    }
    let faults = arguments.faults.clone().unwrap_or_else(|| Fault::value_variants().to_vec());
    let now = SystemClock.now().as_millis();
    let orders = Orders::new(format!("{now:x}"), arguments.orders.into(), &faults);
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    print(&printable(&intention(&stack, &clients, &orders)))?;
    if !arguments.yes {
        print("\nNothing was sent. Add --yes to begin.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let (clients, stack, orders) = (&clients, &stack, &orders);
    if let queued @ 1.. = collect::queued(clients, stack).await? {
        return Err(busy(format!("{queued} messages are in the queues of the stack")));
    }
    if let Some(entry) = collect::ledger(clients, stack, now - QUIET_MS).await?.first() {
        let text = format!("the function was at work for the run {} a moment ago", entry.run);
        return Err(busy(text));
    }
    let began = Instant::now();
    let before = collect::records(clients, stack).await?;
    let since = now - CLOCK_MS;
    let mut carried = Carried {
        clients,
        stack,
        orders,
        patience: arguments.patience,
        collected: Collected::new(orders.run.clone(), since),
        sent: Vec::new(),
        messages: Vec::new(),
        given_up: false,
        bar: Progress::new(orders.messages.len() as u64, "messages"),
    };
    carried.carry_out().await?;
    let whole = carried.whole(since, &before).await?;
    let proof = proof(&carried, &whole, began.elapsed());
    print(&format!("{}\n\n{}", proof.summary(), printable(&proof.advice())))?;
    Ok(if proof.is_proved() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn busy(text: String) -> Failure {
    Failure::from(text).remedy(
        "Wait until five minutes after the other run has ended: two at a time cannot be told apart, and the table needs \
         its capacity back.",
    )
}

/// The plan, in words.
fn intention(stack: &Stack, clients: &Clients, orders: &Orders) -> String {
    let acts: Vec<String> =
        orders.counts().iter().map(|(act, count)| format!("{count} {act}")).collect();
    format!(
        "In stack {} (Region {}): {} messages of {} orders are sent to its queues, its own messages are taken from its \
         dead-letter queues, and its tables and its log are read. Nothing else is called.\n\
         The orders ask for: {}.\n\
         This takes minutes (a message that always fails is received twenty times) and costs some cents; the template \
         has a budget.",
        stack.name,
        clients.region,
        orders.messages.len(),
        orders.len(),
        acts.join(", ")
    )
}

/// A run that is carried out.
struct Carried<'a> {
    clients: &'a Clients,
    stack: &'a Stack,
    orders: &'a Orders,
    patience: Duration,
    collected: Collected,
    sent: Vec<Message>,
    /// The same with their ids.
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
        let orders = self.orders;
        self.phase(bar, &orders.messages).await?;
        // Throttling has ended, so another message can complete what it has left.
        let again = Orders::again(self.logged().completions_lost());
        if !again.is_empty() {
            self.phase(bar, &again).await?;
        }
        // Lambda stores its lines some seconds later.
        tokio::time::sleep(2 * POLL).await;
        Ok(())
    }

    /// Sends the messages, and waits for their end.
    async fn phase(&mut self, bar: &Progress, messages: &[Message]) -> Result<(), Failure> {
        if self.given_up {
            return Ok(());
        }
        for to in [To::Queue, To::Fifo] {
            let sent = orders::send(self.clients, self.stack, self.orders, messages, to).await?;
            self.messages.extend(sent);
            self.sent.extend(messages.iter().filter(|message| message.to == to).cloned());
        }
        self.wait(bar).await
    }

    fn logged(&self) -> Evidence {
        evidence::logged(self.orders, &self.messages, &self.collected)
    }

    /// Everything that is found, once Lambda has reported the end of all that the ledger shows.
    async fn whole(
        &mut self,
        since: i64,
        before: &BTreeMap<String, String>,
    ) -> Result<Whole, Failure> {
        let (clients, stack, orders) = (self.clients, self.stack, self.orders);
        let began = Instant::now();
        loop {
            self.collected.look_at_all(clients, stack).await?;
            let ledger = collect::ledger(clients, stack, since).await?;
            let own = match collect::lines_of(&orders.run, ledger) {
                Lines::Own(own) => own,
                Lines::None => {
                    let text =
                        "the function wrote nothing to its ledger, so there is nothing to audit";
                    let remedy = format!("Does it start? Look at its log: {}.", stack.logs);
                    return Err(Failure::from(text).remedy(remedy));
                }
                Lines::Mixed(other) => {
                    return Err(busy(format!("the function was also at work for the run {other}")));
                }
            };
            let mut whole = Whole::new(orders, &self.messages, &self.collected, own);
            if whole.unreported() == 0 || began.elapsed() > 2 * LATE {
                let records = collect::records(clients, stack).await?.into_iter();
                whole.evidence.records =
                    records.filter(|(key, _)| !before.contains_key(key)).collect();
                return Ok(whole);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until nothing that was sent is in flight.
    async fn wait(&mut self, bar: &Progress) -> Result<(), Failure> {
        let mut moved = (Instant::now(), usize::MAX);
        while !self.given_up {
            tokio::time::sleep(POLL).await;
            // If nothing moves, a line may have been stored much later than the others.
            if moved.0.elapsed() > LATE {
                self.collected.look_at_all(self.clients, self.stack).await?;
            } else {
                self.collected.look(self.clients, self.stack).await?;
            }
            let left = self.logged().open().count();
            bar.set((self.messages.len() - left) as u64);
            let queued = collect::queued(self.clients, self.stack).await?;
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

fn proof(carried: &Carried<'_>, whole: &Whole, took: Duration) -> Proof {
    let Carried { clients, stack, orders, sent: messages, given_up, .. } = carried;
    let mut to = BTreeMap::new();
    for message in messages {
        *to.entry(message.to.name()).or_default() += 1;
    }
    let (outcomes, ends) = (whole.evidence.outcomes(), whole.ends(orders));
    Proof {
        stack: stack.name.clone(),
        region: clients.region.clone(),
        run: orders.run.clone(),
        orders: orders.len(),
        sent: to,
        acts: orders.counts(),
        unseen: unseen(&orders.counts(), &ends, &outcomes, whole.unreported()),
        ends,
        outcomes,
        dead_lettered: whole.evidence.messages.iter().filter(|one| one.dead_lettered).count()
            as u64,
        findings: whole.evidence.audit(),
        given_up: *given_up,
        seconds: took.as_secs_f64(),
    }
}
