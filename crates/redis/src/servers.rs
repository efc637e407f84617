//! The servers: one, or the primaries of a cluster; which of them has a key; and requests to all of them at once, in one
//! pipeline for each.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::{FutureExt as _, join_all, select_ok};
use lambda_idempotency_core::store::StoreErrorKind;
use redis::{Cmd, Pipeline, Value};

use crate::{
    cluster::{ranges, slot},
    config::{Address, Config},
    connection::{Link, Node},
    error::{self, Failure, First, server_failure},
    limits::{Budget, attempt},
};

pub(crate) struct Servers {
    config: Arc<Config>,
    known: Mutex<Known>,
}

struct Known {
    /// Every server that was used.
    nodes: HashMap<Address, Arc<Node>>,
    /// Which server has which keys, once that is known.
    map: Option<Map>,
    /// The map may be out of date.
    stale: bool,
    /// The server that knows better.
    ask_at: Option<Address>,
    /// The servers whose map was wrong, since it was asked for: they may be cut off from the others, and still take
    /// themselves for primaries.
    doubted: HashSet<Address>,
}

/// Which server has which keys.
#[derive(Clone)]
pub(crate) enum Map {
    One(Arc<Node>),
    /// By slots, from the first to the last one of each range, in order.
    Cluster(Arc<[(u16, u16, Arc<Node>)]>),
}

impl Map {
    /// The server of the record with this name.
    pub(crate) fn node(&self, name: &str) -> Option<Arc<Node>> {
        match self {
            Self::One(node) => Some(Arc::clone(node)),
            Self::Cluster(ranges) => {
                let slot = slot(name);
                let has = |(first, last, _): &&(u16, u16, _)| (*first..=*last).contains(&slot);
                ranges.iter().find(has).map(|(_, _, node)| Arc::clone(node))
            }
        }
    }

    /// A number for which server has which keys: another one after a failover, and after slots were moved.
    pub(crate) fn fingerprint(&self) -> u64 {
        // FNV-1a, which stays the same in each version of this crate: cursors contain it.
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        match self {
            Self::One(_) => OFFSET,
            Self::Cluster(ranges) => ranges.iter().fold(OFFSET, |sum, (first, last, node)| {
                format!("{first} {last} {}\n", node.address).bytes().fold(sum, hash)
            }),
        }
    }

    /// Every primary, once.
    pub(crate) fn primaries(&self) -> Vec<Arc<Node>> {
        match self {
            Self::One(node) => vec![Arc::clone(node)],
            Self::Cluster(ranges) => {
                let mut primaries: Vec<Arc<Node>> = Vec::new();
                for (_, _, node) in ranges.iter() {
                    if !primaries.iter().any(|other| other.address == node.address) {
                        primaries.push(Arc::clone(node));
                    }
                }
                primaries
            }
        }
    }
}

impl Servers {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let (nodes, doubted) = (HashMap::new(), HashSet::new());
        let known = Known { nodes, map: None, stale: false, ask_at: None, doubted };
        Self { config, known: Mutex::new(known) }
    }

    // A panic cannot leave it half-changed, so a poisoned lock is still sound.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn node(&self, address: &Address) -> Arc<Node> {
        let mut known = self.known();
        let node = known.nodes.entry(address.clone());
        Arc::clone(node.or_insert_with(|| Arc::new(Node::new(address.clone()))))
    }

    /// Makes the next request find out anew which server has which keys, at best from this one.
    pub(crate) fn forget_map(&self, ask_at: Option<Address>) {
        let mut known = self.known();
        known.stale = true;
        known.ask_at = ask_at.or(known.ask_at.take());
    }

    /// Makes the next request find out anew which server has which keys. It asks this server only if no other answers.
    pub(crate) fn doubt(&self, address: &Address) {
        self.forget_map(None);
        self.known().doubted.insert(address.clone());
    }

    /// Which server has which keys.
    pub(crate) async fn map(&self, budget: &Budget<'_>) -> Result<Map, Failure> {
        let (ask_at, doubted, others) = {
            let mut known = self.known();
            if let Some(map) = known.map.as_ref().filter(|_| !known.stale) {
                return Ok(map.clone());
            }
            let seed = &self.config.address;
            let others = known.nodes.keys().filter(|other| *other != seed).cloned();
            let others: Vec<_> = std::iter::once(seed.clone()).chain(others).collect();
            (known.ask_at.take(), known.doubted.clone(), others)
        };
        if let Some(address) = ask_at
            && let Ok(map) = self.ask(&address, budget).await
        {
            return Ok(self.keep(map));
        }
        // All at once: some may be gone, and who is gone answers late or never.
        let (last, first): (Vec<_>, Vec<_>) =
            others.iter().partition(|other| doubted.contains(*other));
        let mut failed = None;
        for addresses in [first, last].iter().filter(|addresses| !addresses.is_empty()) {
            let asked = addresses.iter().map(|address| self.ask(address, budget).boxed());
            match select_ok(asked).await {
                Ok((map, _)) => return Ok(self.keep(map)),
                Err(failure) => failed = Some(failure),
            }
            // No server of these answers. If this call has no time for the rest, the next one asks all at once.
            self.known().doubted.clear();
        }
        let known = self.known().map.clone();
        // The only server that is known has just not answered.
        let known = known.filter(|map| matches!(map, Map::Cluster(_)));
        known.ok_or_else(|| failed.unwrap_or_else(|| error::no_server(&self.config.address)))
    }

    pub(crate) fn keep(&self, map: Map) -> Map {
        let mut known = self.known();
        known.map = Some(map.clone());
        known.stale = false;
        known.doubted.clear();
        if let Map::Cluster(ranges) = &map {
            // Servers that have left the cluster, and whatever their names will mean later, are not asked again.
            known
                .nodes
                .retain(|address, _| ranges.iter().any(|(_, _, node)| node.address == *address));
        }
        map
    }

    async fn ask(&self, address: &Address, budget: &Budget<'_>) -> Result<Map, Failure> {
        let node = self.node(address);
        let link = node.link(&self.config, budget).await?;
        if link.facts.cluster == Some(false) {
            return Ok(Map::One(node));
        }
        if link.facts.cluster == Some(true) && self.config.database != 0 {
            let context = format!(
                "the Redis cluster of {address} has only database 0; leave it out of the URL"
            );
            return Err(error::misconfigured(context));
        }
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let answer = match node.ask(&link, command, budget).await {
            // The answer of a server that is in no cluster, if it did not say so before.
            Err(failure)
                if link.facts.cluster.is_none() && failure.kind() == StoreErrorKind::Refused =>
            {
                return Ok(Map::One(node));
            }
            answer => answer?,
        };
        let ranges = ranges(answer, address).ok_or_else(|| error::unreadable(address))?;
        if ranges.is_empty() {
            return Err(error::no_server(address));
        }
        let ranges =
            ranges.iter().map(|range| (range.first, range.last, self.node(&range.primary)));
        Ok(Map::Cluster(ranges.collect()))
    }
}

/// The most commands in a pipeline, and the most bytes. The server reads a pipeline as a whole, and others wait.
const MOST: usize = 256;
const MOST_BYTES: usize = 1024 * 1024;

/// One command about one record.
pub(crate) struct Request {
    /// The name of the record in the server.
    pub(crate) name: String,
    pub(crate) command: Cmd,
    /// About how many bytes it has, or its answer.
    pub(crate) size: usize,
    /// The server that is receiving the record.
    pub(crate) go_to: Option<Address>,
}

/// The answer to a [`Request`].
pub(crate) type Reply = Result<Value, Failure>;

/// Some requests for one server, each with its position among all.
struct Parcel {
    node: Arc<Node>,
    /// The server is receiving the records: it serves them only on demand.
    asking: bool,
    requests: Vec<(usize, Request)>,
    size: usize,
}

impl Servers {
    /// Sends each request once, and waits for the answers, which are in the same order.
    pub(crate) async fn send(&self, requests: Vec<Request>, budget: &Budget<'_>) -> Vec<Reply> {
        let count = requests.len();
        let (parcels, refused) = match self.parcels(requests, budget).await {
            Ok(parcels) => parcels,
            Err(failure) => return (0..count).map(|_| Err(failure.clone())).collect(),
        };
        let sent =
            join_all(parcels.into_iter().map(|parcel| self.send_parcel(parcel, budget))).await;
        let mut replies: Vec<_> = sent.into_iter().flatten().chain(refused).collect();
        replies.sort_unstable_by_key(|(position, _)| *position);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    /// Divides the requests among the servers. A request for which there is no server is answered.
    async fn parcels(
        &self,
        requests: Vec<Request>,
        budget: &Budget<'_>,
    ) -> Result<(Vec<Parcel>, Vec<(usize, Reply)>), Failure> {
        let map = self.map(budget).await?;
        let (mut full, mut refused) = (Vec::new(), Vec::new());
        let mut open: HashMap<(Address, bool), Parcel> = HashMap::new();
        for (position, request) in requests.into_iter().enumerate() {
            let asking = request.go_to.is_some();
            let node = match &request.go_to {
                Some(address) => Some(self.node(address)),
                None => map.node(&request.name),
            };
            let Some(node) = node else {
                self.forget_map(None);
                refused.push((position, Err(error::no_server(&self.config.address))));
                continue;
            };
            let empty = || Parcel { node: Arc::clone(&node), asking, requests: vec![], size: 0 };
            let parcel = open.entry((node.address.clone(), asking)).or_insert_with(empty);
            let size = parcel.size.saturating_add(request.size);
            if !parcel.requests.is_empty() && (parcel.requests.len() >= MOST || size > MOST_BYTES) {
                full.push(std::mem::replace(parcel, empty()));
            }
            parcel.size = parcel.size.saturating_add(request.size);
            parcel.requests.push((position, request));
        }
        full.extend(open.into_values());
        Ok((full, refused))
    }

    async fn send_parcel(&self, parcel: Parcel, budget: &Budget<'_>) -> Vec<(usize, Reply)> {
        let Parcel { node, asking, requests, .. } = parcel;
        let at = &node.address;
        let mut commands = Pipeline::with_capacity(requests.len());
        let mut positions = Vec::with_capacity(requests.len());
        for (position, request) in requests {
            if asking {
                commands.cmd("ASKING");
            }
            commands.add_command(request.command);
            positions.push(position);
        }
        let same = |failure: Failure| -> Vec<(usize, Reply)> {
            positions.iter().map(|position| (*position, Err(failure.clone()))).collect()
        };
        let link = match node.link(&self.config, budget).await {
            Ok(link) => link,
            Err(failure) => {
                self.prepare(&node, None, &failure);
                return same(failure);
            }
        };
        let failure = match attempt(budget, link.send(&commands)).await {
            Ok(Ok(answers)) if answers.len() == commands.len() => {
                let mut answers = answers.into_iter();
                let mut replies = Vec::with_capacity(positions.len());
                for position in positions {
                    if asking {
                        answers.next();
                    }
                    let answer = match answers.next() {
                        Some(Value::ServerError(error)) => Err(server_failure(at, &error)),
                        Some(answer) => Ok(answer),
                        None => Err(error::unreadable(at)),
                    };
                    if let Err(failure) = &answer {
                        self.prepare(&node, Some(&link), failure);
                    }
                    replies.push((position, answer));
                }
                return replies;
            }
            Ok(Ok(_)) => error::unreadable(at),
            Ok(Err(error)) => error::broken(at, &error),
            Err(late) => error::timed_out(at, late),
        };
        self.prepare(&node, Some(&link), &failure);
        same(failure)
    }

    /// Does what a failure says has to be done before the next request.
    fn prepare(&self, node: &Node, link: Option<&Link>, failure: &Failure) {
        let reconnect = matches!(failure.detail, First::Reconnect | First::FindServer);
        if let Some(link) = link.filter(|_| reconnect) {
            node.leave(link);
        }
        match &failure.detail {
            First::FindServer => self.doubt(&node.address),
            First::AskAt(address) => self.forget_map(Some(address.clone())),
            First::Nothing | First::Look | First::Reconnect | First::GoTo(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lambda_idempotency_core::clock::{Clock as _, SystemClock};

    use super::*;
    use crate::{limits::budget, store::RedisStore};

    /// The server reads a pipeline as a whole.
    #[tokio::test]
    async fn other_clients_wait_for_pipelines_of_a_mebibyte_at_most() {
        let store = RedisStore::builder("redis://db").build().unwrap();
        store.servers.keep(Map::One(store.servers.node(&store.config.address)));
        let budget = budget(&store.config, SystemClock.now().plus(Duration::from_secs(600)));
        for (count, size, pipelines) in
            [(4, 400 * 1024, 2), (MOST + 1, 1, 2), (1, 2 * MOST_BYTES, 1)]
        {
            let (name, command) = (String::new, Cmd::new);
            let request = |_| Request { name: name(), command: command(), size, go_to: None };
            let parcels = store.servers.parcels((0..count).map(request).collect(), &budget).await;
            let (parcels, refused) = parcels.map_err(|failure| failure.report(false)).unwrap();
            assert_eq!((parcels.len(), refused.len()), (pipelines, 0), "{count} of {size} bytes");
        }
    }

    /// Another server may be the primary by then.
    #[tokio::test]
    async fn after_a_call_that_ended_while_it_connected_the_servers_are_looked_for_again() {
        let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("redis://{}", silent.local_addr().unwrap());
        let store = RedisStore::builder(&url).build().unwrap();
        store.servers.keep(Map::One(store.servers.node(&store.config.address)));
        let budget = budget(&store.config, SystemClock.now().plus(Duration::from_millis(50)));
        let request = Request { name: String::new(), command: Cmd::new(), size: 1, go_to: None };
        let parcels = store.servers.parcels(vec![request], &budget).await;
        let (parcels, _) = parcels.map_err(|failure| failure.report(false)).unwrap();
        for parcel in parcels {
            let replies = store.servers.send_parcel(parcel, &budget).await;
            assert!(replies.iter().all(|(_, reply)| reply.is_err()), "{replies:?}");
        }
        assert!(store.servers.known().stale);
    }

    #[test]
    fn servers_that_have_left_the_cluster_are_forgotten() {
        let store = RedisStore::builder("redis://seed").build().unwrap();
        let servers = &*store.servers;
        let address = |host: &str| Address { host: host.into(), port: 6379 };
        let map = |hosts: [&str; 2]| {
            let [one, two] = hosts.map(|host| servers.node(&address(host)));
            Map::Cluster([(0, 8191, one), (8192, 16383, two)].into())
        };
        servers.node(&address("seed"));
        for hosts in [["a", "b"], ["b", "c"]] {
            servers.keep(map(hosts));
            let known = servers.known();
            let mut known: Vec<&str> = known.nodes.keys().map(|known| &*known.host).collect();
            known.sort_unstable();
            assert_eq!(known, hosts);
        }
    }
}
