//! Whether settings fit together.

use crate::{Error, FaultKind, Mode, Settings};

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
