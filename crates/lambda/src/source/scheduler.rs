//! EventBridge Scheduler: an asynchronous invocation with the schedule's `Input`.
//!
//! The input has to contain the schedule and the time, so that its events can be recognised:
//!
//! ```json
//! { "scheduleArn": "<aws.scheduler.schedule-arn>", "scheduledTime": "<aws.scheduler.scheduled-time>" }
//! ```
//!
//! These two are the identity. `<aws.scheduler.execution-id>` is not, because AWS documents it as
//! unique for each *attempted* invocation.
//!
//! <https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html>

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_engine::call::RecordId;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{Record, id},
    settings::{Settings, source},
};
use crate::rejection::Rejection;

source! {
    /// Invocations by EventBridge Scheduler. The payload is the whole input, which has to contain the schedule
    /// (`scheduleArn`) and the time (`scheduledTime`), by Scheduler's keywords.
    Scheduler => SchedulerEvents;
}

/// # Which records
impl Scheduler {
    /// Takes only invocations by this schedule, by its name or ARN. Default: all schedules.
    pub fn schedule(mut self, schedule: impl Into<String>) -> Self {
        self.0.only_from(Kind::Schedule, schedule.into());
        self
    }
}

const NAME: &str = "scheduler";

impl EventSource for SchedulerEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "scheduleArn, scheduledTime",
            catches: "retries by Lambda and by Scheduler, and invocations that it makes twice",
            misses: "another schedule with the same input",
            volatile: &[],
            is_cause_of_invocation: true,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        let (Some(schedule), Some(_)) = (id(event.outside.schedule), id(event.outside.scheduled))
        else {
            return false;
        };
        schedule.split(':').nth(2) == Some("scheduler")
            && settings.takes(&[(Kind::Schedule, Some(&schedule))])
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        let [schedule, time] = [event.outside.schedule, event.outside.scheduled].map(id);
        let record = RecordId::new(NAME, time.as_deref().unwrap_or_default());
        let record = record.with_arn(schedule.as_deref().map(Arc::from));
        let is_time = is_time(&record.id);
        let record = if is_time { record } else { record.hidden() };
        let identity = match (schedule, time) {
            // Scheduler leaves a keyword that it does not know as it is: all occurrences would be one.
            (Some(_), Some(_)) if !is_time => Err(Rejection::NoMember("scheduledTime")),
            (Some(schedule), Some(time)) => Ok(vec![Cow::Borrowed(NAME), schedule, time]),
            _ => Err(Rejection::PartOfIdentity(&["scheduleArn", "scheduledTime"])),
        };
        let payload = Ok(Cow::Borrowed(event.raw.get()));
        vec![Record { identity, ..Record::new(record, event.raw, payload) }]
    }
}

/// Whether a text is a time in Scheduler's format. The schedule's input can contain any other text
/// there, which logs must not show.
fn is_time(text: &str) -> bool {
    text.len() > "2026-01-01T".len()
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            10 => byte == b'T',
            0..10 => byte.is_ascii_digit(),
            _ => byte.is_ascii_digit() || b"-:.Z+".contains(&byte),
        })
}
