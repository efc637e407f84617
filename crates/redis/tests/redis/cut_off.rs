//! Primaries that are cut off from their cluster, and not from the function.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use lambda_idempotency_core::{
    key::Key,
    store::{Guard, Store as _, Write},
};
use lambda_idempotency_redis::RedisStore;

use crate::writes::{claimed, in_secs, one, written};

/// A server of a cluster, as far as the store asks.
#[derive(Clone)]
struct Puppet {
    /// The ports of the servers that have the thirds of the slots.
    thirds: [u16; 3],
    /// The answer to a claim.
    claim: String,
    /// Whether it says that it is one of a cluster.
    is_in_cluster: bool,
    /// How far away it is.
    delay: Duration,
}

impl Puppet {
    fn serve(self, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            let puppet = self.clone();
            thread::spawn(move || puppet.answer(stream));
        }
    }

    fn answer(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let words = command(&mut stream)?;
            let [first, second, third] =
                self.thirds.map(|port| format!("*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n"));
            let answer = match &*words[0] {
                "SCRIPT" => bulk(&"0".repeat(40)),
                "INFO" => bulk(&format!(
                    "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:{}\r\n",
                    u8::from(self.is_in_cluster)
                )),
                "CLUSTER" => {
                    thread::sleep(self.delay);
                    format!(
                        "*3\r\n*3\r\n:0\r\n:5999\r\n{first}*3\r\n:6000\r\n:11999\r\n{second}\
                         *3\r\n:12000\r\n:16383\r\n{third}"
                    )
                }
                _ => self.claim.clone(),
            };
            stream.get_mut().write_all(answer.as_bytes()).ok()?;
        }
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The words of the next command.
fn command(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(stream)? {
        let mut word = vec![0; number(stream)? + 2];
        stream.read_exact(&mut word).ok()?;
        words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
    }
    Some(words)
}

fn number(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    line.get(1..)?.trim_end().parse().ok()
}

/// They still take themselves for the primaries of their slots, and they are nearer than the others, which have given these
/// away.
#[tokio::test]
async fn who_has_the_slots_is_not_asked_of_servers_that_do_not_know() {
    for near in [1, 2] {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = [0, 1, 2].map(|n| listeners[n].local_addr().unwrap().port());
        let far = ports[2];
        let before = [ports[0], if near == 2 { ports[1] } else { far }, far];
        for (listener, port) in listeners.into_iter().zip(ports) {
            let puppet = if port == far {
                Puppet {
                    thirds: [far; 3],
                    claim: "$-1\r\n".to_owned(),
                    delay: Duration::from_millis(100),
                    is_in_cluster: true,
                }
            } else {
                let claim = "-CLUSTERDOWN The cluster is down\r\n".to_owned();
                Puppet { thirds: before, claim, delay: Duration::ZERO, is_in_cluster: true }
            };
            thread::spawn(move || puppet.serve(&listener));
        }
        let store =
            RedisStore::builder(&format!("redis://127.0.0.1:{}", ports[0])).build().unwrap();
        // About a third of sixty keys are in the slots of each server.
        let claims = (0..60).map(|n| Key::from_text(format!("op#{n}")));
        let claims = claims.map(|key| Write::new(key, Guard::Absent, Some(claimed(1))));
        let verdicts = store.write(&claims.collect::<Vec<_>>(), in_secs(5)).await;
        verdicts.iter().for_each(written);
    }
}

/// As where ElastiCache turns the cluster mode on: the server of the URL sends on what another one has now.
#[tokio::test]
async fn a_server_that_has_become_one_of_a_cluster_is_asked_who_has_which_keys() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, other] = [0, 1].map(|n| listeners[n].local_addr().unwrap().port());
    let claims = [format!("-MOVED 0 127.0.0.1:{other}\r\n"), "$-1\r\n".to_owned()];
    for ((listener, claim), is_in_cluster) in listeners.into_iter().zip(claims).zip([false, true]) {
        let puppet = Puppet { thirds: [other; 3], claim, delay: Duration::ZERO, is_in_cluster };
        thread::spawn(move || puppet.serve(&listener));
    }
    let store = RedisStore::builder(&format!("redis://127.0.0.1:{first}")).build().unwrap();
    let claim = Write::new(Key::from_text("op#1"), Guard::Absent, Some(claimed(1)));
    written(&one(&store, claim, in_secs(60)).await);
}
