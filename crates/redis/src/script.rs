//! The commands that the server runs: `SET .. NX GET` for a claim of a new key, and scripts for other writes and for reads.
//!
//! A script is atomic, it has one key, and its text never changes, so a cluster and a server that restarts know it by
//! the same hash. Each connection loads the scripts before anything else (see [`connection`](crate::connection)).
//!
//! The first line of a script says what the server checks before it runs. Without `no-writes`, a replica refuses it:
//! therefore reads are scripts too, and never answered by a server that has become a replica. With `allow-oom` it
//! also runs while the server has used up its memory. Claims do not run then. Every other write does: refusing
//! completions, renewals, results of steps or marks that messages are sent would let work run again that was done, and a
//! release or a deletion frees its key.
//!
//! <https://redis.io/docs/latest/develop/programmability/eval-intro/#eval-flags>

use redis::Cmd;

/// Its arguments: the beginning of the record, the new record, when the server may remove it, and the fields that the new one has or
/// lacks; without these, the record is deleted. Answers 1 if it was written, and nothing if there is no record. If the record is
/// another one, or its fields [cannot be read](WITHOUT), it is the answer, and nothing was changed.
///
/// No beginning means that there may be no record: the range ends at -1 then, and is all of what is there.
///
/// Only the beginning of a record is read unless it differs, or [keeps](KEEP) the rest.
///
/// A record is replaced, and never deleted first: while its slot moves to another server, a script that has deleted
/// its key may not make it again, and ends there.
const WRITE: &str = "
local key, start, record = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GETRANGE', key, 0, #start - 1) ~= start then
  return redis.call('GET', key) or not record and 1
end
if record then
  local kept = rest()
  if not kept then return redis.call('GET', key) end
  redis.call('SET', key, record .. kept, 'PXAT', ARGV[3])
else
  redis.call('DEL', key)
end
return 1
";

/// A claim makes a new record.
const REPLACE: &str = "
local function rest() return '' end";

/// Any other write leaves the fields as they are stored that it does not name: another version may have written them.
const KEEP: &str = "
local function rest()
  local names = {}
  for n = 4, #ARGV do
    names[ARGV[n]] = true
  end
  local text = redis.call('GET', KEYS[1])
  local kept = not text and '' or without(text, names)
  return kept and string.sub(kept, (string.find(kept, '\\n', 1, true) or 0) + 1)
end";

const READ: &str = "#!lua flags=allow-oom
return redis.call('GET', KEYS[1])
";

/// Answers with the text of a record without some of its fields; `nil` if its fields cannot be read. Then [`decode`](crate::item::decode)
/// refuses the text as well, so that the caller is told that it is corrupt.
const WITHOUT: &str = "
local function without(text, names)
  local at = string.find(text, '\\n', 1, true)
  if not at then return nil end
  local kept = {string.sub(text, 1, at)}
  at = at + 1
  while at <= #text do
    local name, length, start = string.match(text, '^(%S+) (%d+) ()', at)
    local behind = name and start + tonumber(length) + 1
    if not name or string.byte(text, behind - 1) ~= 10 then return nil end
    if not names[name] then
      kept[#kept + 1] = string.sub(text, at, behind - 1)
    end
    at = behind
  end
  return table.concat(kept)
end
";

/// Reads a record without these fields, of which nobody sees the megabytes.
const PEEK: &str = "
local text = redis.call('GET', KEYS[1])
if not text then
  return text
end
local names = {}
for _, name in ipairs(ARGV) do
  names[name] = true
end
return without(text, names) or text
";

/// Its arguments: the beginning of the record, and the field to remove. The rest of its text stays as it is, and so does its removal.
const FORGET: &str = "
local text = redis.call('GET', KEYS[1])
if not text or string.sub(text, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
local less = without(text, {[ARGV[2]] = true})
if not less then return text end
redis.call('SET', KEYS[1], less, 'KEEPTTL')
return 1
";

/// A script, and the hash by which it is called.
pub(crate) struct Script {
    pub(crate) text: String,
    hash: String,
}

impl Script {
    fn new(text: String) -> Self {
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// Runs it for the record of this name, with the arguments that are added.
    pub(crate) fn command(&self, name: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(1).arg(name);
        command
    }
}

/// The scripts of a store.
pub(crate) struct Scripts {
    /// Claims of keys that had a record. They are refused if there is no memory left.
    pub(crate) claim: Script,
    /// All other writes. They have to succeed also if there is no memory left.
    pub(crate) settle: Script,
    pub(crate) read: Script,
    /// Reads parts of a record.
    pub(crate) peek: Script,
    /// Removes a field of a record.
    pub(crate) forget: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            claim: Script::new(format!("#!lua{REPLACE}{WRITE}")),
            settle: Script::new(format!("#!lua flags=allow-oom{WITHOUT}{KEEP}{WRITE}")),
            read: Script::new(READ.to_owned()),
            peek: Script::new(format!("#!lua flags=allow-oom{WITHOUT}{PEEK}")),
            forget: Script::new(format!("#!lua flags=allow-oom{WITHOUT}{FORGET}")),
        }
    }

    pub(crate) fn all(&self) -> [&Script; 5] {
        [&self.claim, &self.settle, &self.read, &self.peek, &self.forget]
    }
}
