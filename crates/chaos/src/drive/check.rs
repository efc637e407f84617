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
    let Settings { mode, messages, .. } = settings;
    let fault = |is_wrong: &dyn Fn(FaultKind) -> bool| {
        settings.faults.iter().copied().find(|kind| is_wrong(*kind))
    };
    let is_of_messages = |kind: FaultKind| FaultKind::OF_MESSAGES.contains(&kind);
    let for_scripts = &|kind| !FaultKind::FOR_ANY_FUNCTION.contains(&kind);
    let text = |text: &str| Some(text.to_owned());
    if settings.template.is_some() {
        if let Some(kind) = fault(for_scripts) {
            return Some(format!(
                "the fault `{kind}` needs a function that follows scripts: leave it out for your own function"
            ));
        }
        if *mode != Mode::Claim || *messages {
            return text(
                "messages, and modes other than `claim`, are those of the scripted orders function: leave them out for \
                 your own function",
            );
        }
    }
    if *messages && *mode == Mode::Optimistic {
        return text(
            "without claims no messages are published: use the mode `transaction` or `claim`",
        );
    }
    let kind = fault(&|kind| !settings.allows(kind))?;
    Some(if is_of_messages(kind) {
        format!(
            "the fault `{kind}` needs messages: leave it out, or let the orders publish messages"
        )
    } else {
        format!(
            "the fault `{kind}` needs transactions: leave it out, or use the mode `transaction` or `optimistic`"
        )
    })
}
