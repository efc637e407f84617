//! Signals to a process of the function: what an operating system can do to it.

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGSTOP`: it stands still, with all its connections open, until it is told to go on.
    Stop,
    /// `SIGCONT`: it goes on where it stood.
    Continue,
    /// `SIGKILL`: it is gone.
    Kill,
}

/// Sends a signal; false if there is no such process, or no such thing on this system.
#[cfg(unix)]
pub(crate) fn send(pid: u32, signal: Signal) -> bool {
    use rustix::process::{Pid, kill_process};
    let signal = match signal {
        Signal::Stop => rustix::process::Signal::STOP,
        Signal::Continue => rustix::process::Signal::CONT,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Sends a signal; false if there is no such process, or no such thing on this system.
#[cfg(not(unix))]
pub(crate) fn send(_pid: u32, _signal: Signal) -> bool {
    false
}
