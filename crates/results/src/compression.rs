//! Compression with zlib, whose checksum finds damage. Compressing a long result occupies the processor, and a completion
//! that is ready must not wait for it.

use std::{
    io::{Read as _, Write as _},
    sync::atomic::{AtomicUsize, Ordering},
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use tokio::sync::Mutex;

use crate::unreadable::Unreadable;

/// The compressed bytes; `None` if they do not become smaller.
pub(crate) fn compress(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail. If it did, the result would be stored as it is.
    encoder.write_all(content).ok()?;
    encoder.finish().ok().filter(|compressed| compressed.len() < content.len())
}

/// The bytes before their compression, at most `max_bytes` of them.
pub(crate) fn decompress(compressed: &[u8], max_bytes: usize) -> Result<Vec<u8>, Unreadable> {
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = Vec::new();
    let read = ZlibDecoder::new(compressed).take(limit).read_to_end(&mut content);
    if content.len() > max_bytes {
        return Err(Unreadable::TooLarge { max_bytes });
    }
    read.map_err(|_| Unreadable::Damaged)?;
    Ok(content)
}

/// How many bytes are compressed before what is ready is sent. A processor compresses them in about ten milliseconds.
const AT_A_TIME: usize = 256 * 1024;

/// The results of one call that are to be compressed. Short ones are compressed at once, long ones one after the other.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The bytes that were compressed since what is ready was sent.
    bytes: AtomicUsize,
    turn: Mutex<()>,
}

impl Turns {
    /// Waits until a result of so many bytes may be compressed: before a long one, all that is ready leaves the process.
    pub(crate) async fn wait(&self, bytes: usize) {
        let sum = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if sum <= AT_A_TIME {
            self.bytes.store(sum, Ordering::Relaxed);
            return;
        }
        let _turn = self.turn.lock().await;
        tokio::task::yield_now().await;
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_text_that_unpacks_to_a_huge_one_is_refused() {
        let bomb = compress(&vec![b' '; 8 * 1024 * 1024]).unwrap();
        assert!(bomb.len() < 20_000, "{}", bomb.len());
        let refused = decompress(&bomb, 1024 * 1024);
        assert_eq!(refused, Err(Unreadable::TooLarge { max_bytes: 1024 * 1024 }));
    }

    #[test]
    fn exactly_the_most_bytes_are_unpacked() {
        let packed = compress(&[7; 1000]).unwrap();
        assert_eq!(decompress(&packed, 1000), Ok(vec![7; 1000]));
        assert!(decompress(&packed, 999).is_err());
    }

    #[test]
    fn bytes_that_do_not_become_smaller_stay_as_they_are() {
        assert_eq!(compress(b"1"), None);
    }

    #[test]
    fn each_changed_byte_is_found() {
        let packed = compress(&[b'a'; 5000]).unwrap();
        for at in 2..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 1;
            assert_ne!(decompress(&changed, 5000), Ok(vec![b'a'; 5000]), "byte {at}");
        }
    }
}
