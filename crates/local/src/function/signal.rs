//! Signals to a process of the function: what an operating system can do to it.

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGSTOP`: the process stops, with all its connections open, until it gets `SIGCONT`.
    Stop,
    /// `SIGCONT`: the stopped process continues.
    Continue,
    /// `SIGKILL`: the process ends at once.
    Kill,
}

/// Sends a signal to a process and to what it has started; false if there is no such process, or no such thing on this
/// system.
#[cfg(unix)]
pub(crate) fn send(pid: u32, signal: Signal) -> bool {
    use rustix::process::{Pid, kill_process_group};
    let signal = match signal {
        Signal::Stop => rustix::process::Signal::STOP,
        Signal::Continue => rustix::process::Signal::CONT,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process_group(pid, signal).is_ok())
}

/// Sends a signal; false if there is no such process, or no such thing on this system.
#[cfg(not(unix))]
pub(crate) fn send(_pid: u32, _signal: Signal) -> bool {
    false
}
