//! A primary that is cut off from its cluster, and not from the function.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use lambda_idempotency_core::{
    key::Key,
    store::{Guard, Store as _, Verdict, Write},
};
use lambda_idempotency_redis::RedisStore;

use crate::server::{claimed, within};

/// A server of a cluster, as far as the store asks.
#[derive(Clone)]
struct Puppet {
    /// The ports of the servers that have the halves of the slots.
    halves: [u16; 2],
    /// The answer to a claim.
    claim: &'static str,
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
            let [first, second] =
                self.halves.map(|port| format!("*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n"));
            let answer = match &*words[0] {
                "SCRIPT" => bulk(&"0".repeat(40)),
                "INFO" => bulk(
                    "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:1\r\n",
                ),
                "CLUSTER" => {
                    thread::sleep(self.delay);
                    format!("*2\r\n*3\r\n:0\r\n:8191\r\n{first}*3\r\n:8192\r\n:16383\r\n{second}")
                }
                _ => self.claim.to_owned(),
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

/// It still takes itself for the primary of its slots, and it is nearer than the others, which have given them away.
#[tokio::test]
async fn who_has_the_slots_is_not_asked_of_a_server_that_does_not_know() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [near, far] = [0, 1].map(|n| listeners[n].local_addr().unwrap().port());
    let cut_off = Puppet {
        halves: [near, far],
        claim: "-CLUSTERDOWN The cluster is down\r\n",
        delay: Duration::ZERO,
    };
    let other = Puppet { halves: [far, far], claim: "$-1\r\n", delay: Duration::from_millis(100) };
    for (listener, puppet) in listeners.into_iter().zip([cut_off, other]) {
        thread::spawn(move || puppet.serve(&listener));
    }
    let store = RedisStore::builder(&format!("redis://127.0.0.1:{near}")).build().unwrap();
    // Of sixty keys, about half are in the slots that were given away.
    let claims = (0..60).map(|n| Key::from_text(format!("op#{n}")));
    let claims = claims.map(|key| Write::new(key, Guard::Absent, Some(claimed(1))));
    let verdicts = store.write(&claims.collect::<Vec<_>>(), within(5_000)).await;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Written)), "{verdicts:?}");
}
