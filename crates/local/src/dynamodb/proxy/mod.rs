//! A proxy in front of the database that counts requests and injects faults.

mod upstream;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::fault::{Action, Apply, Faults};
use super::request::{self, StoreRequest};
use super::usage::{Ledger, Usage};
use crate::error::Error;
use crate::http::{HangUp, Reply, Server};

pub(crate) use upstream::Upstream;
use upstream::{cancelled, error, reply};

/// A proxy of an embedded DynamoDB, on a loopback port. Dropping it closes it.
#[derive(Debug)]
pub struct Proxy {
    server: Server,
    own: Arc<Ledger>,
    requests: Requests,
}

/// The requests since they were last taken.
type Requests = Arc<Mutex<Vec<StoreRequest>>>;

impl Proxy {
    pub(crate) async fn start(
        upstream: Upstream,
        faults: Faults,
        total: Arc<Ledger>,
        arrivals: Weak<Arrivals>,
    ) -> Result<Self, Error> {
        let own = Arc::new(Ledger::default());
        let requests = Requests::default();
        let ledgers = [Arc::clone(&own), total];
        let proxy =
            Arc::new(Forwarding { upstream, faults, ledgers, requests: Arc::clone(&requests) });
        let server = Server::start(move |request| {
            let (proxy, arrivals) = (Arc::clone(&proxy), arrivals.upgrade());
            async move {
                let answer =
                    arrivals.ok_or(HangUp)?.spawn(async move { proxy.answer(request).await });
                answer.await.map_err(|_| HangUp)?
            }
        })
        .await?;
        Ok(Self { server, own, requests })
    }

    /// Takes the requests that have ended since the last call.
    pub fn take_requests(&self) -> Vec<StoreRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value of `AWS_ENDPOINT_URL_DYNAMODB`.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The requests that this proxy got.
    pub fn usage(&self) -> Usage {
        self.own.snapshot()
    }

    /// How many connections were opened to this proxy, those that are closed again included.
    pub fn connections(&self) -> u64 {
        self.server.connections()
    }
}

/// Requests that have arrived. They are carried out even if the process that sent them is killed
/// meanwhile and its proxy is dropped: only the end of the database ends them.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(Mutex<JoinSet<()>>);

impl Arrivals {
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, result) = oneshot::channel();
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let _ = done.send(work.await);
        });
        result
    }
}

struct Forwarding {
    upstream: Upstream,
    faults: Faults,
    ledgers: [Arc<Ledger>; 2],
    requests: Requests,
}

impl Forwarding {
    async fn answer(&self, incoming: Request<Bytes>) -> Result<Reply, HangUp> {
        let (head, body) = incoming.into_parts();
        let target = head
            .headers
            .get("x-amz-target")
            .and_then(|target| target.to_str().ok())
            .unwrap_or_default();
        let operation = request::operation(target).to_owned();
        let Ok(json) = serde_json::from_slice::<Value>(&body) else {
            return self.upstream.send(head, body).await.map(whole); // not ours to judge
        };
        let mut items = request::items(&operation, &json);
        let tables = request::tables(&json, &items);
        let action = self.faults.inject(&operation, tables.iter());
        self.enter(Usage {
            operations: [(operation.clone(), 1)].into(),
            actions: request::actions(&operation, &items)
                .into_iter()
                .map(|action| (action, 1))
                .collect(),
            faults: u64::from(action.is_some()),
            ..Usage::default()
        });
        let began = Instant::now();
        let is_read = request::is_read(&operation, &items);
        let call = Call { proxy: self, head, operation: operation.clone(), is_read, json };
        let answer = Self::carry_out(call, action).await;
        let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        let body =
            answer.as_ref().ok().and_then(|answer| serde_json::from_slice(answer.body()).ok());
        request::answered(&mut items, status, &body.unwrap_or_default());
        let took = began.elapsed();
        let request = StoreRequest { began, took, operation, items };
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        answer.map(whole)
    }

    async fn carry_out(call: Call<'_>, action: Option<Action>) -> Result<Response<Bytes>, HangUp> {
        match action {
            None => call.apply().await,
            Some(Action::Delay(delay)) => {
                tokio::time::sleep(delay).await;
                call.apply().await
            }
            Some(Action::Error { apply, status, code }) => {
                if apply == Apply::After {
                    call.apply().await?;
                }
                Ok(error(status, &code))
            }
            Some(Action::HangUp { apply }) => {
                if apply == Apply::After {
                    call.apply().await?;
                }
                Err(HangUp)
            }
            Some(Action::Hold { apply: Apply::Before, gate }) => {
                gate.pass().await;
                call.apply().await
            }
            Some(Action::Hold { apply: Apply::After, gate }) => {
                let answer = call.apply().await?;
                gate.pass().await;
                Ok(answer)
            }
            Some(Action::ThrottleMembers(members)) => call.throttle(&members).await,
            Some(Action::Cancel { member, code }) => Ok(call.cancelled(member, &code)),
        }
    }

    fn enter(&self, usage: Usage) {
        for ledger in &self.ledgers {
            ledger.enter(&usage);
        }
    }
}

/// A parsed request, before it is carried out.
struct Call<'a> {
    proxy: &'a Forwarding,
    head: hyper::http::request::Parts,
    operation: String,
    is_read: bool,
    json: Value,
}

impl Call<'_> {
    /// Lets the database carry it out, and counts the capacity used.
    async fn apply(mut self) -> Result<Response<Bytes>, HangUp> {
        if let (true, Value::Object(fields)) =
            (request::reports_capacity(&self.operation), &mut self.json)
            && fields.get("ReturnConsumedCapacity").is_none_or(|asked| asked == "NONE")
        {
            fields.insert("ReturnConsumedCapacity".to_owned(), json!("TOTAL"));
        }
        let body = serde_json::to_vec(&self.json).map_err(|_| HangUp)?;
        let answer = self.proxy.upstream.send(self.head, body.into()).await?;
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        let units = request::capacity(&body);
        let (read_units, write_units) = if self.is_read { (units, 0.0) } else { (0.0, units) };
        let refused_conditions = request::refused_conditions(&body);
        self.proxy.enter(Usage { read_units, write_units, refused_conditions, ..Usage::default() });
        Ok(answer)
    }

    /// Takes some members out of the batch, applies the rest, and puts an error where each was.
    async fn throttle(mut self, members: &[usize]) -> Result<Response<Bytes>, HangUp> {
        let statements = match self.json.get_mut("Statements").map(Value::take) {
            Some(Value::Array(statements)) => statements,
            _ => return self.apply().await,
        };
        let throttled: Vec<bool> =
            (0..statements.len()).map(|position| members.contains(&position)).collect();
        let kept = statements.into_iter().zip(&throttled).filter(|(_, throttled)| !**throttled);
        let kept: Vec<Value> = kept.map(|(statement, _)| statement).collect();
        let mut answer = if kept.is_empty() {
            json!({ "Responses": [] })
        } else {
            if let Value::Object(fields) = &mut self.json {
                fields.insert("Statements".to_owned(), Value::Array(kept));
            }
            let answer = self.apply().await?;
            if !answer.status().is_success() {
                return Ok(answer);
            }
            serde_json::from_slice(answer.body()).unwrap_or_default()
        };
        let mut rest = match answer.get_mut("Responses").map(Value::take) {
            Some(Value::Array(responses)) => responses.into_iter(),
            _ => Vec::new().into_iter(),
        };
        let error =
            json!({ "Error": { "Code": "ThrottlingError", "Message": "throttled on purpose" } });
        let responses = throttled.iter().map(|throttled| match throttled {
            true => error.clone(),
            false => rest.next().unwrap_or_default(),
        });
        let responses: Vec<Value> = responses.collect();
        if let Value::Object(answer) = &mut answer {
            answer.insert("Responses".to_owned(), Value::Array(responses));
        }
        Ok(reply(200, &answer))
    }

    fn cancelled(self, member: usize, code: &str) -> Response<Bytes> {
        let members = self.json.get("TransactItems").and_then(Value::as_array).map_or(0, Vec::len);
        cancelled(members, member, code)
    }
}

fn whole(answer: Response<Bytes>) -> Reply {
    answer.map(Full::new)
}
