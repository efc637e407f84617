//! Many commands at once: one pipeline for each server, and an answer for each command.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::join_all;
use redis::{Cmd, Pipeline, Value};

use crate::{
    address::Address,
    connection::Link,
    error::{self, Failure, First, server_failure},
    node::Node,
    retry::{Budget, attempt},
    store::RedisStore,
};

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

impl RedisStore {
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

    /// Divides the requests among the servers. Those for which there is no server are answered.
    async fn parcels(
        &self,
        requests: Vec<Request>,
        budget: &Budget<'_>,
    ) -> Result<(Vec<Parcel>, Vec<(usize, Reply)>), Failure> {
        let map = self.servers.map(budget).await?;
        let (mut full, mut refused) = (Vec::new(), Vec::new());
        let mut open: HashMap<(Address, bool), Parcel> = HashMap::new();
        for (position, request) in requests.into_iter().enumerate() {
            let asking = request.go_to.is_some();
            let node = match &request.go_to {
                Some(address) => Some(self.servers.node(address)),
                None => map.node(&request.name),
            };
            let Some(node) = node else {
                self.servers.forget_map(None);
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
            First::FindServer => self.servers.doubt(&node.address),
            First::AskAt(address) => self.servers.forget_map(Some(address.clone())),
            First::Nothing | First::Look | First::Reconnect | First::GoTo(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lambda_idempotency_core::clock::{Clock as _, SystemClock};

    use super::*;
    use crate::{retry::budget, servers::Map};

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
            let parcels = store.parcels((0..count).map(request).collect(), &budget).await;
            let (parcels, refused) = parcels.map_err(|failure| failure.report(false)).unwrap();
            assert_eq!((parcels.len(), refused.len()), (pipelines, 0), "{count} of {size} bytes");
        }
    }
}
