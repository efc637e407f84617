//! A real process, from start to end: responses, errors, deadlines, crashes and kills.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{LONG, is_running, local, scripted};
use lambda_idempotency_local::{FunctionConfig, InvocationResult, Local, Outcome, Signal};
use serde_json::json;
use tokio::{sync::mpsc::UnboundedReceiver, task::block_in_place};

#[tokio::test]
async fn a_response_is_returned_with_the_logged_records() {
    let local = local(scripted().await).await;
    let invocation = local.invoke(&json!({ "do": "succeed" })).await.unwrap();
    let response = invocation.response().unwrap();
    assert_eq!(response["batchItemFailures"], json!([]));
    assert!(response["deadline"].as_u64().unwrap() > 0);
    assert_eq!(invocation.records.len(), 1);
    assert_eq!(invocation.records[0].outcome, Outcome::Executed);
    assert_eq!(invocation.records[0].request_id.as_deref(), Some(invocation.request_id.as_str()));
    local.shutdown().await;
}

/// The log is read from a pipe and the response from a socket, so the response may arrive first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_lines_of_an_invocation_are_read_before_its_response() {
    let local = local(scripted().await).await;
    for number in 0..200 {
        let invocation = local.invoke(&json!({ "do": "succeed" })).await.unwrap();
        assert_eq!(invocation.records.len(), 1, "invocation {number}");
    }
}

/// A function whose line `started` is read only when that is released. Tells when the line has come, and whether it is read.
async fn held_back() -> (Local, UnboundedReceiver<()>, mpsc::Sender<()>, Arc<AtomicBool>) {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let read = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&read);
    let builder = Local::builder(scripted().await).on_output(move |line| {
        if line.text == "started" {
            tell.send(()).unwrap();
            // Timers and sockets need another thread meanwhile.
            block_in_place(|| released.lock().unwrap().recv().unwrap());
            mark.store(true, Ordering::SeqCst);
        }
    });
    (builder.start().await.unwrap(), told, release, read)
}

/// What one process has written may still be on its way when another answers from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_output_of_a_running_process_can_be_awaited() {
    let (local, mut told, release, read) = held_back().await;
    let event = json!({ "do": "sleep" });
    let mut invocation = pin!(local.invoke(&event));
    tokio::select! {
        _ = &mut invocation => panic!("it sleeps"),
        Some(()) = told.recv() => {}
    }
    let mut reading = pin!(local.read_output());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut reading).await;
    assert!(early.is_err(), "the line is not read yet");
    release.send(()).unwrap();
    reading.await;
    assert!(read.load(Ordering::SeqCst));
}

/// However long that takes on a busy machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_output_of_a_process_that_has_ended_is_read_before_its_invocation_ends() {
    let (local, mut told, release, read) = held_back().await;
    let event = json!({ "do": "abort" });
    let mut invocation = pin!(local.invoke(&event));
    tokio::select! {
        _ = &mut invocation => panic!("its output is not read"),
        Some(()) = told.recv() => {}
    }
    let early = tokio::time::timeout(Duration::from_millis(1500), &mut invocation).await;
    release.send(()).unwrap();
    assert!(early.is_err(), "the line is not read yet");
    let ended = invocation.await.unwrap();
    assert!(matches!(ended.result, InvocationResult::Exited { .. }), "{}", ended.result);
    assert!(read.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_warm_process_is_used_again() {
    let local = local(scripted().await).await;
    let first = local.invoke(&json!({})).await.unwrap();
    let failed = local.invoke(&json!({ "do": "fail" })).await.unwrap();
    let last = local.invoke(&json!({})).await.unwrap();
    assert_eq!((first.pid, first.pid), (failed.pid, last.pid));
    let InvocationResult::FunctionError { message, .. } = failed.result else {
        panic!("{}", failed.result)
    };
    assert_eq!(message, "told to fail");
}

#[tokio::test]
async fn an_answer_that_is_too_large_for_lambda_is_an_error_and_the_process_goes_on() {
    let local = local(scripted().await).await;
    let large = local.invoke(&json!({ "do": "overflow" })).await.unwrap();
    let InvocationResult::FunctionError { kind, .. } = large.result else {
        panic!("{}", large.result)
    };
    assert_eq!(kind, "Function.ResponseSizeTooLarge");
    let next = local.invoke(&json!({ "do": "succeed" })).await.unwrap();
    assert_eq!((next.result.is_response(), next.pid), (true, large.pid));
}

#[tokio::test]
async fn a_process_that_misses_its_deadline_is_replaced() {
    let local = local(scripted().await.timeout(Duration::from_millis(200))).await;
    let late = local.invoke(&json!({ "do": "sleep" })).await.unwrap();
    assert_eq!(late.result, InvocationResult::TimedOut);
    assert!(late.duration >= Duration::from_millis(200));
    assert!(!common::is_running(late.pid), "the process was not killed");
}

#[tokio::test]
async fn a_process_that_outlives_its_deadline_runs_on_beside_the_next() {
    let function = scripted().await.timeout(Duration::from_millis(200)).outlives_timeout(true);
    let local = local(function).await;
    let late = local.invoke(&json!({ "do": "sleep" })).await.unwrap();
    assert_eq!(late.result, InvocationResult::TimedOut);
    assert!(common::is_running(late.pid), "the process was killed");
    local.shutdown().await;
    assert!(!common::is_running(late.pid), "the process outlived the shutdown");
}

#[tokio::test]
async fn a_stopped_process_misses_its_deadline_and_can_continue() {
    let function = scripted().await.timeout(Duration::from_secs(1)).outlives_timeout(true);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let builder = Local::builder(function).on_output(move |line| {
        if line.text == "sleeping" {
            tell.send(()).unwrap();
        }
    });
    let local = builder.start().await.unwrap();
    let pid = local.invoke(&json!({})).await.unwrap().pid;
    assert!(!local.signal(pid, Signal::Stop), "the process has no invocation");
    let stop = async {
        told.recv().await.unwrap();
        assert!(local.signal(pid, Signal::Stop));
    };
    let event = json!({ "do": "sleep" });
    let (invocation, ()) = tokio::join!(local.invoke(&event), stop);
    let invocation = invocation.unwrap();
    assert_eq!((invocation.result, invocation.pid), (InvocationResult::TimedOut, pid));
    assert!(local.is_left_running(pid));
    common::reaches_state(pid, 'T').await;
    assert!(local.signal(pid, Signal::Continue));
    common::reaches_state(pid, 'S').await;
    assert!(local.signal(pid, Signal::Kill));
    common::reaches_state(pid, 'Z').await;
    // The next process that is left running removes those that have ended.
    let next = local.invoke(&event).await.unwrap().pid;
    assert_eq!((local.is_left_running(pid), local.is_left_running(next)), (false, true));
    assert!(!local.signal(pid, Signal::Kill), "another process may have this id now");
}

#[tokio::test]
async fn a_crash_costs_one_invocation() {
    let local = local(scripted().await).await;
    let crash = local.invoke(&json!({ "do": "abort" })).await.unwrap();
    assert!(matches!(crash.result, InvocationResult::Exited { .. }), "{}", crash.result);
    let next = local.invoke(&json!({})).await.unwrap();
    assert!(next.result.is_response());
    assert_ne!(crash.pid, next.pid);
}

#[tokio::test]
async fn a_function_that_does_not_start_gives_the_reason() {
    let local = local(scripted().await.env("FAIL_TO_START", "told not to start")).await;
    let invocation = local.invoke(&json!({})).await.unwrap();
    assert!(!invocation.result.is_response(), "{}", invocation.result);
    let missing =
        Local::builder(lambda_idempotency_local::FunctionConfig::new("/no/such/function"));
    let error = missing.start().await.unwrap().invoke(&json!({})).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/function"), "{error}");
}

#[tokio::test]
async fn two_sandboxes_run_concurrently_and_can_be_killed() {
    let function = scripted().await.timeout(LONG);
    let local = Local::builder(function).sandboxes(2).start().await.unwrap();
    let sleeping = json!({ "do": "sleep" });
    let both = async {
        while local.in_flight().len() < 2 {
            tokio::task::yield_now().await;
        }
        let pids: Vec<u32> = local.in_flight().iter().map(|running| running.pid).collect();
        assert_ne!(pids[0], pids[1]);
        assert_eq!(local.kill_in_flight(), 2);
    };
    let (first, second, ()) = tokio::join!(local.invoke(&sleeping), local.invoke(&sleeping), both);
    for killed in [first.unwrap(), second.unwrap()] {
        assert_eq!(killed.result, InvocationResult::Exited { code: None, signal: Some(9) });
    }
    assert!(local.in_flight().is_empty());
}

#[tokio::test]
async fn dropping_a_local_run_kills_its_processes() {
    let local = local(scripted().await).await;
    let pid = local.invoke(&json!({})).await.unwrap().pid;
    drop(local);
    while common::is_running(pid) {
        tokio::task::yield_now().await;
    }
}

/// As in a sandbox of Lambda.
#[cfg(unix)]
#[tokio::test]
async fn what_a_process_has_started_ends_with_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let script = concat!(env!("CARGO_TARGET_TMPDIR"), "/starts-another");
    std::fs::write(script, "#!/bin/sh\nsleep 600 &\necho $!\nwait\n").unwrap();
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let function = FunctionConfig::new(script).init_timeout(LONG);
    let builder = Local::builder(function)
        .on_output(move |line| tell.send(line.text.parse::<u32>().unwrap()).unwrap());
    let local = builder.start().await.unwrap();
    let started = tokio::select! {
        ready = local.warm() => panic!("{ready:?}"),
        started = told.recv() => started.unwrap(),
    };
    drop(local);
    // It sleeps for minutes, so it ends because its process has.
    while is_running(started) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
