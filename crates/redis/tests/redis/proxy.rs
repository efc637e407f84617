//! A TCP proxy before a server, which cuts connections off, swallows answers, or delays them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
};

/// What happens to the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// They arrive.
    Open,
    /// Requests arrive, answers do not.
    SwallowAnswers,
    /// The first request arrives, and then the connection is closed without its answer.
    CloseBeforeAnswer,
    /// Neither requests nor answers arrive, and nobody is told.
    Silent,
    /// Each answer comes so many milliseconds later.
    Slow(u64),
}

/// A proxy, which ends with this value.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    way: Arc<Mutex<Way>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    #[expect(
        clippy::disallowed_methods,
        reason = "ends with the proxy, or with the runtime of the test"
    )]
    pub(crate) async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let way = Arc::new(Mutex::new(Way::Open));
        let shared = Arc::clone(&way);
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server, Arc::clone(&shared), false));
                tokio::spawn(pass(from_server, to_client, Arc::clone(&shared), true));
            }
        });
        Self { port: own, way, accepting }
    }

    pub(crate) fn set(&self, way: Way) {
        *self.way.lock().unwrap() = way;
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: Arc<Mutex<Way>>,
    answers: bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return };
        let now = *way.lock().unwrap();
        match (now, answers) {
            (Way::Silent, _) | (Way::SwallowAnswers, true) => continue,
            // Both halves of the connection end.
            (Way::CloseBeforeAnswer, true) => return,
            (Way::Slow(millis), true) => tokio::time::sleep(Duration::from_millis(millis)).await,
            _ => {}
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
