//! What Linux counts for a process: processor time, context switches, memory.

use std::collections::BTreeMap;
use std::fs;

use crate::Result;

/// The counts of a process, by thread, so that a thread that ends or starts does not spoil a difference.
#[derive(Clone, Default)]
pub(crate) struct Counts(BTreeMap<String, Thread>);

#[derive(Clone, Copy, Default)]
struct Thread {
    cpu_nanos: u64,
    switches: u64,
}

impl Counts {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut threads = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            let read = |file: &str| fs::read_to_string(task.path().join(file));
            let (Ok(schedule), Ok(status)) = (read("schedstat"), read("status")) else { continue };
            let first = schedule.split(' ').next().unwrap_or_default();
            let switches = status.lines().filter_map(|line| {
                let (name, count) = line.split_once(':')?;
                name.ends_with("_ctxt_switches").then(|| count.trim().parse::<u64>().ok())?
            });
            let thread = Thread { cpu_nanos: first.parse()?, switches: switches.sum() };
            threads.insert(task.file_name().to_string_lossy().into_owned(), thread);
        }
        Ok(Self(threads))
    }

    /// Processor time since `earlier`, in microseconds, and context switches.
    pub(crate) fn since(&self, earlier: &Self) -> (f64, f64) {
        let (mut nanos, mut switches) = (0, 0);
        for (id, thread) in &self.0 {
            let before = earlier.0.get(id).copied().unwrap_or_default();
            nanos += thread.cpu_nanos.saturating_sub(before.cpu_nanos);
            switches += thread.switches.saturating_sub(before.switches);
        }
        (nanos as f64 / 1000.0, switches as f64)
    }
}

/// A part of a process's memory, in MB: `VmHWM` is the peak, `RssAnon` what is not a page of a file now.
pub(crate) fn megabytes(pid: u32, part: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let size = lines.find_map(|(name, size)| (name == part).then_some(size)).ok_or(part)?;
    let kib = size.trim().strip_suffix(" kB").ok_or(part)?;
    Ok(kib.parse::<f64>()? * 1024.0 / 1e6)
}

/// The processes that this one has started and that have not ended.
pub(crate) fn children() -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let list = fs::read_to_string(task?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(children)
}
