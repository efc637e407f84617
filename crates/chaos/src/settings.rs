//! The settings of a run.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use lambda_idempotency_local::Table;

use crate::{
    error::Error,
    kinds::{FaultKind, Mode},
    template::Template,
};

/// The settings of a run. Two runs with the same settings have the same schedule.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The function, built: `scripted_orders` of the tests package, or any function if there is a
    /// [`template`](Self::template).
    pub binary: PathBuf,
    /// How many messages are sent. Each is delivered at least once.
    pub deliveries: usize,
    /// The seed of all random choices in the schedule.
    pub seed: u64,
    /// How many processes serve the queue at a time, besides those left running after their deadline.
    pub processes: usize,
    /// How effects and completions are kept together. With another mode than [`Mode::Claim`], the function is
    /// `scripted_orders`.
    pub mode: Mode,
    /// The kinds of faults to inject.
    pub faults: BTreeSet<FaultKind>,
    /// The function's timeout: short, because a lease lasts one second longer.
    pub timeout: Duration,
    /// How long a received message stays invisible: shorter than the timeout, which AWS would not
    /// allow, so that messages are delivered again while a process still handles them.
    pub visibility: Duration,
    /// If no message is acknowledged or dead-lettered for this long, the remaining ones are stuck. The run does not end
    /// before the first invocation has.
    pub patience: Duration,
    /// Further environment variables of the function.
    pub env: Vec<(String, String)>,
    /// Further tables of the function.
    pub tables: Vec<Table>,
    /// The message of a function that follows no scripts. Such a function reports its effects with
    /// `lambda_idempotency::testing::effect`, and gets only the faults of [`FaultKind::FOR_ANY_FUNCTION`].
    pub template: Option<Template>,
}

impl Settings {
    /// Two thousand deliveries to four processes, with every fault of claim and complete.
    #[must_use]
    pub fn new(binary: impl AsRef<Path>) -> Self {
        Self {
            binary: binary.as_ref().to_path_buf(),
            deliveries: 2000,
            seed: 1,
            processes: 4,
            mode: Mode::Claim,
            faults: Mode::Claim.faults().collect(),
            timeout: Duration::from_secs(2),
            visibility: Duration::from_millis(1500),
            patience: Duration::from_secs(120),
            env: Vec::new(),
            tables: Vec::new(),
            template: None,
        }
    }

    /// The same with every fault of this mode.
    #[must_use]
    pub fn with_mode(binary: impl AsRef<Path>, mode: Mode) -> Self {
        Self { mode, faults: mode.faults().collect(), ..Self::new(binary) }
    }

    /// The same with a user's function, which gets messages of this template, and every fault that any function can get.
    #[must_use]
    pub fn for_any_function(binary: impl AsRef<Path>, template: Template) -> Self {
        Self {
            faults: FaultKind::FOR_ANY_FUNCTION.iter().copied().collect(),
            template: Some(template),
            ..Self::new(binary)
        }
    }

    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.faults.contains(&kind)
    }

    pub(crate) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Settings {
    /// Whether these settings fit together. [`run`](crate::run) checks it as well; a program that builds the function
    /// first can say it before.
    ///
    /// # Errors
    /// Which setting does not fit, and what to do.
    pub fn check(&self) -> Result<(), Error> {
        problem(self).map_or(Ok(()), |problem| Err(Error::Settings(problem)))
    }
}

fn problem(settings: &Settings) -> Option<String> {
    let fault = |is_wrong: &dyn Fn(FaultKind) -> bool| {
        settings.faults.iter().copied().find(|kind| is_wrong(*kind))
    };
    if settings.template.is_some() {
        if let Some(kind) = fault(&|kind| !FaultKind::FOR_ANY_FUNCTION.contains(&kind)) {
            return Some(format!(
                "the fault `{kind}` needs a function that follows scripts: leave it out for your own function"
            ));
        }
        if settings.mode != Mode::Claim {
            let text = "modes other than `claim` are those of the scripted orders function: leave them out for your own \
                        function";
            return Some(text.to_owned());
        }
    }
    let kind = fault(&|kind| !settings.mode.has(kind))?;
    Some(format!(
        "the fault `{kind}` needs transactions: leave it out, or use the mode `transaction` or `optimistic`"
    ))
}
