//! Which server of a cluster has a key.
//!
//! A cluster divides the keys into 16384 slots, and each primary has some ranges of them.
//!
//! <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>

use redis::Value;

use crate::config::Address;

const SLOTS: u16 = 16384;

/// The slot of a key: of the part in its first braces, if there is one.
pub(crate) fn slot(name: &str) -> u16 {
    let tag = name
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag)
        .filter(|tag| !tag.is_empty());
    crc16(tag.unwrap_or(name).as_bytes()) % SLOTS
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// A range of slots, and the primary that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) primary: Address,
}

/// Reads the answer of `CLUSTER SLOTS`, in the order of the slots. `at` is the server that answered, which may leave
/// out its own host.
pub(crate) fn ranges(answer: Value, at: &Address) -> Option<Vec<Range>> {
    let Value::Array(rows) = answer else { return None };
    let mut ranges = rows.iter().map(|row| range(row, at)).collect::<Option<Vec<_>>>()?;
    ranges.sort_unstable_by_key(|range| range.first);
    Some(ranges)
}

/// First slot, last slot, the primary, and then the replicas, each as host, port, and more.
fn range(row: &Value, at: &Address) -> Option<Range> {
    let Value::Array(row) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = row.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) if !host.is_empty() && host != b"?" => {
            std::str::from_utf8(host).ok()?.into()
        }
        Value::BulkString(_) | Value::Nil => at.host.clone(),
        _ => return None,
    };
    let primary = Address { host, port: u16::try_from(*port).ok()? };
    Some(Range { first: u16::try_from(*first).ok()?, last: u16::try_from(*last).ok()?, primary })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification.
    #[test]
    fn a_slot_is_that_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot("foo"), 12182);
        assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
        assert_eq!(slot("foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
        assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
        assert_eq!(slot("foo{bar"), crc16(b"foo{bar") % SLOTS);
    }

    #[test]
    fn ranges_are_read_in_order_with_the_host_that_was_left_out() {
        let at = Address { host: "seed".into(), port: 1 };
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), Value::Nil]);
        let row = |first, last, node| Value::Array(vec![Value::Int(first), Value::Int(last), node]);
        let named = Value::BulkString(b"b".to_vec());
        let answer =
            Value::Array(vec![row(8192, 16383, node(named, 2)), row(0, 8191, node(Value::Nil, 3))]);
        let read = ranges(answer, &at).unwrap();
        let primaries: Vec<_> = read.iter().map(|range| range.primary.to_string()).collect();
        assert_eq!(primaries, ["seed:3", "b:2"]);
        assert_eq!((read[0].first, read[0].last, read[1].first), (0, 8191, 8192));
        assert_eq!(ranges(Value::Nil, &at), None);
        assert_eq!(ranges(Value::Array(vec![Value::Nil]), &at), None);
    }
}
