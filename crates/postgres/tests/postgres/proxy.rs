//! A proxy before the server that loses, delays or cuts off what is sent.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{sleep, spawn},
    time::Duration,
};

/// The message with which a client sends `COMMIT`.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// What becomes of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Nothing passes, and nobody is told: a network that is gone, or a process that is frozen.
    Silent,
    /// The server gets everything, and its answers are lost.
    LoseAnswers,
    /// The answers after a `COMMIT` that is sent by itself are lost.
    LoseCommits,
    /// Answers come so much later.
    Delay(Duration),
}

/// A running proxy. It ends with the test.
#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    mode: Arc<Mutex<Mode>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    connections: Arc<AtomicU32>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            mode: Arc::new(Mutex::new(Mode::Pass)),
            open: Arc::default(),
            connections: Arc::default(),
        };
        let running = proxy.clone();
        spawn(move || {
            for client in listener.incoming().flatten() {
                running.connections.fetch_add(1, Ordering::Relaxed);
                // The server is down: so is the proxy.
                let Ok(server) = TcpStream::connect(server) else { continue };
                running
                    .open
                    .lock()
                    .unwrap()
                    .extend([&client, &server].map(|s| s.try_clone().unwrap()));
                let (from_client, to_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (requests, answers) = (running.clone(), running.clone());
                let is_lost = Arc::new(AtomicBool::new(false));
                let lost = Arc::clone(&is_lost);
                spawn(move || requests.copy(from_client, to_server, false, &lost));
                spawn(move || answers.copy(server, client, true, &is_lost));
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        crate::server::url(self.address)
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    /// Closes all connections, to both sides.
    pub(crate) fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, is_answer: bool, is_lost: &AtomicBool) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let mode = *self.mode.lock().unwrap();
            match mode {
                Mode::Silent => continue,
                Mode::LoseAnswers if is_answer => continue,
                Mode::LoseCommits if is_answer && is_lost.load(Ordering::Relaxed) => continue,
                Mode::LoseCommits if bytes[..count] == *COMMIT => {
                    is_lost.store(true, Ordering::Relaxed)
                }
                Mode::Delay(delay) if is_answer => sleep(delay),
                _ => {}
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
