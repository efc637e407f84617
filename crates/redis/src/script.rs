//! What the server runs: a script for a write, and one for a read.
//!
//! A script is atomic, it has one key, and its text never changes, so a cluster and a server that restarts know it by
//! the same hash. Each connection loads the scripts before anything else (see [`connection`](crate::connection)).
//!
//! The first line of a script says what the server checks before it runs. Without `no-writes`, a replica refuses it:
//! therefore reads are scripts too, and never answered by a server that has become a replica. With `allow-oom` it
//! also runs while the server has used up its memory. Claims do not run then. Completions, renewals and releases do,
//! because refusing them would let work run again that was done, and a deletion frees memory.
//!
//! <https://redis.io/docs/latest/develop/programmability/eval-intro/#eval-flags>

/// The guard, the expiry, and then the fields of the record. Without those the record is deleted. Answers 1, or the
/// record that was found instead.
///
/// A record is replaced field by field, and never deleted first: while its slot moves to another server, a script that
/// has deleted its key may not make it again, and ends there.
const WRITE: &str = "
local key, guard, at, holds = KEYS[1], ARGV[1], 2, false
local exists = redis.call('EXISTS', key) == 1
if guard == 'absent' then
  holds = not exists
elseif guard == 'owned' then
  local found = redis.call('HMGET', key, 'status', 'owner')
  holds = found[1] == 'INPROGRESS' and found[2] == ARGV[2]
  at = 3
else
  local found = redis.call('HMGET', key, 'status', 'owner', 'last_owner', 'lease_until', 'expires_at')
  holds = exists
  for i = 1, 5 do holds = holds and (found[i] or '') == ARGV[i + 1] end
  at = 7
end
if not ARGV[at] and not exists then return 1 end
if not holds then return redis.call('HGETALL', key) end
if not ARGV[at] then
  redis.call('DEL', key)
  return 1
end
redis.call('HSET', key, unpack(ARGV, at + 1))
if exists then
  local kept = {}
  for i = at + 1, #ARGV, 2 do kept[ARGV[i]] = true end
  for _, name in ipairs(redis.call('HKEYS', key)) do
    if not kept[name] then redis.call('HDEL', key, name) end
  end
end
redis.call('PEXPIREAT', key, ARGV[at])
return 1
";

const READ: &str = "#!lua flags=allow-oom
return redis.call('HGETALL', KEYS[1])
";

/// A script, and the hash by which it is called.
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) hash: String,
}

impl Script {
    fn new(text: String) -> Self {
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}

/// The scripts of a store.
pub(crate) struct Scripts {
    /// Writes that need memory.
    pub(crate) claim: Script,
    /// Writes that have to succeed also if there is no memory left.
    pub(crate) settle: Script,
    pub(crate) read: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            claim: Script::new(format!("#!lua{WRITE}")),
            settle: Script::new(format!("#!lua flags=allow-oom{WRITE}")),
            read: Script::new(READ.to_owned()),
        }
    }

    pub(crate) fn all(&self) -> [&Script; 3] {
        [&self.claim, &self.settle, &self.read]
    }
}
