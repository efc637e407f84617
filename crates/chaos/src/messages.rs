//! The queue to which the function sends its messages. It takes each, or fails as the schedule says.
//!
//! A sender opens a connection for a message, writes a line, and gets one: `taken` or `refused`. What the queue has
//! taken is noted before it answers, so the rig knows exactly what arrived, from which process, and whether that
//! process was told.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedSender,
    task::{JoinHandle, JoinSet},
};

use crate::{
    FaultKind,
    ledger::Step,
    schedule,
    sending::{Answer, Arrival, Sending},
    store::Store,
};

/// How late the queue answers if it answers late: later than the sender of the scripted function waits.
const LATE: Duration = Duration::from_millis(600);
/// How long the queue waits for a process that is to be killed or stopped.
const HOLD: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) enum Told {
    Arrived(Arrival),
    /// The process waits at this step for its signal.
    Waits {
        order: usize,
        pid: u32,
        step: Step,
    },
}

/// The queue. Dropping it closes it.
pub(crate) struct MessageQueue {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    orders: Vec<Sending>,
    tell: UnboundedSender<Told>,
    /// Where to look whether an order is placed.
    store: OnceLock<Arc<Store>>,
    counted: Mutex<Counted>,
    /// How many arrivals are being looked up, and not told yet.
    untold: AtomicUsize,
}

#[derive(Debug, Default)]
struct Counted {
    tries: HashMap<(usize, usize), u64>,
    waited: HashSet<usize>,
    faults: BTreeMap<FaultKind, u64>,
}

impl MessageQueue {
    pub(crate) async fn start(
        orders: Vec<Sending>,
        tell: UnboundedSender<Told>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (store, counted) = (OnceLock::new(), Mutex::default());
        let untold = AtomicUsize::new(0);
        let state = Arc::new(State { orders, tell, store, counted, untold });
        let serving = Arc::clone(&state);
        // Its connections end with it.
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let state = Arc::clone(&serving);
                connections.spawn(async move {
                    // A sender whose process has died reads no answer.
                    let _ = state.serve(stream).await;
                });
            }
        });
        Ok(Self { address, state, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on each arrival says whether its order is placed.
    pub(crate) fn look_into(&self, store: &Arc<Store>) {
        let _ = self.state.store.set(Arc::clone(store));
    }

    /// Whether everything that has arrived is told.
    pub(crate) fn has_told_all(&self) -> bool {
        self.state.untold.load(Ordering::Acquire) == 0
    }

    /// How often each kind of fault was injected.
    pub(crate) fn faults(&self) -> BTreeMap<FaultKind, u64> {
        self.state.counted().faults.clone()
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some(sent) = parse(&line) else {
            return stream.write_all(b"refused\n").await;
        };
        let (order, part, pid, _) = sent;
        let sending = self.orders.get(order).copied().unwrap_or_default();
        if let Some(step) = sending.waits
            && self.counted().waited.insert(order)
        {
            let answer = if step == Step::Sent { Answer::Unanswered } else { Answer::Held };
            self.arrived(&mut stream, sent, answer).await;
            let _ = self.tell.send(Told::Waits { order, pid, step });
            let mut rest = [0];
            let closed = stream.read(&mut rest);
            return tokio::time::timeout(HOLD, closed).await.map_or(Ok(()), |read| read.map(drop));
        }
        let fault = self.fault(order, part, sending);
        let answer = match fault {
            Some(FaultKind::SendRefused) => Answer::Refused,
            Some(_) => Answer::Unanswered,
            None => Answer::Taken,
        };
        self.arrived(&mut stream, sent, answer).await;
        match fault {
            Some(FaultKind::SendRefused) => return stream.write_all(b"refused\n").await,
            Some(FaultKind::SendLost) => return Ok(()),
            Some(_) => tokio::time::sleep(LATE).await,
            None => {}
        }
        stream.write_all(b"taken\n").await
    }

    fn fault(&self, order: usize, part: usize, sending: Sending) -> Option<FaultKind> {
        let trouble = sending.trouble.filter(|trouble| trouble.part == part)?;
        let mut counted = self.counted();
        let tries = counted.tries.entry((order, part)).or_default();
        *tries += 1;
        if *tries > trouble.times {
            return None;
        }
        *counted.faults.entry(trouble.kind).or_default() += 1;
        Some(trouble.kind)
    }

    async fn arrived(
        &self,
        stream: &mut BufReader<TcpStream>,
        (order, part, pid, id): (usize, usize, u32, &str),
        answer: Answer,
    ) {
        self.untold.fetch_add(1, Ordering::AcqRel);
        let placed = match self.store.get() {
            Some(store) => Some(store.placed(order).is_ok_and(|times| times > 0)),
            None => None,
        };
        // On a slow machine its sender may have given up meanwhile, or may be dead.
        let is_untold = answer == Answer::Taken && has_gone(stream).await;
        let answer = if is_untold { Answer::Unanswered } else { answer };
        let (id, at) = (id.to_owned(), Instant::now());
        // The rig listens until its end.
        let _ = self.tell.send(Told::Arrived(Arrival { order, part, id, pid, answer, placed, at }));
        self.untold.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether the sender has closed the connection, so that it gets no answer.
async fn has_gone(stream: &mut BufReader<TcpStream>) -> bool {
    // Meanwhile the runtime looks at its sockets.
    tokio::task::yield_now().await;
    matches!(stream.read(&mut [0]).now_or_never(), Some(Ok(0) | Err(_)))
}

/// `o-17 2 4242 ID`: order, part, process and id of the message.
fn parse(line: &str) -> Option<(usize, usize, u32, &str)> {
    let mut words = line.split_whitespace();
    let order = schedule::number(words.next()?)?;
    let (part, pid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let id = words.next()?;
    words.next().is_none().then_some((order, part, pid, id))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::sending::Trouble;

    async fn send(queue: &MessageQueue, line: &str) -> String {
        let mut stream = TcpStream::connect(queue.address()).await.unwrap();
        stream.write_all(line.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn arrived(told: &mut UnboundedReceiver<Told>) -> Answer {
        match told.try_recv() {
            Ok(Told::Arrived(arrival)) => arrival.answer,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_message_is_refused_lost_or_answered_late_as_often_as_its_order_says() {
        let trouble = |kind| Trouble { part: 2, kind, times: 1 };
        let kinds = FaultKind::OF_MESSAGES.iter();
        let orders =
            kinds.map(|kind| Sending { trouble: Some(trouble(*kind)), ..Sending::default() });
        let (tell, mut told) = unbounded_channel();
        let queue = MessageQueue::start(orders.collect(), tell).await.unwrap();
        let first = [
            ("refused\n", Answer::Refused),
            ("", Answer::Unanswered),
            ("taken\n", Answer::Unanswered),
        ];
        for (order, (line, answer)) in first.into_iter().enumerate() {
            assert_eq!(send(&queue, &format!("o-{order} 1 7 a\n")).await, "taken\n");
            assert_eq!(arrived(&mut told), Answer::Taken);
            assert_eq!(send(&queue, &format!("o-{order} 2 7 b\n")).await, line);
            assert_eq!(arrived(&mut told), answer);
            assert_eq!(send(&queue, &format!("o-{order} 2 7 b\n")).await, "taken\n");
            assert_eq!(arrived(&mut told), Answer::Taken);
        }
        assert_eq!(queue.faults().len(), 3);
        assert_eq!(send(&queue, "what\n").await, "refused\n");
    }

    /// While the queue has no processor, the sender gives up.
    #[tokio::test]
    async fn a_message_whose_sender_has_gone_is_taken_without_an_answer() {
        use std::io::Write as _;
        let (tell, mut told) = unbounded_channel();
        let queue = MessageQueue::start(Vec::new(), tell).await.unwrap();
        let mut stream = std::net::TcpStream::connect(queue.address()).unwrap();
        stream.write_all(b"o-0 1 7 a\n").unwrap();
        drop(stream);
        let first = told.recv().await.unwrap();
        assert!(matches!(first, Told::Arrived(arrival) if arrival.answer == Answer::Unanswered));
    }

    #[tokio::test]
    async fn the_first_message_of_an_order_waits_for_the_end_of_its_process() {
        let waits = |step| Sending { waits: Some(step), ..Sending::default() };
        let (tell, mut told) = unbounded_channel();
        let orders = vec![waits(Step::Sending), waits(Step::Sent)];
        let queue = MessageQueue::start(orders, tell).await.unwrap();
        for (order, answer) in [Answer::Held, Answer::Unanswered].into_iter().enumerate() {
            let mut stream = TcpStream::connect(queue.address()).await.unwrap();
            stream.write_all(format!("o-{order} 1 7 a\n").as_bytes()).await.unwrap();
            let first = told.recv().await.unwrap();
            assert!(matches!(first, Told::Arrived(arrival) if arrival.answer == answer));
            assert!(matches!(told.recv().await.unwrap(), Told::Waits { pid: 7, .. }));
            drop(stream);
            assert_eq!(send(&queue, &format!("o-{order} 1 8 a\n")).await, "taken\n");
            assert_eq!(arrived(&mut told), Answer::Taken);
        }
    }
}
