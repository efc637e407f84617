//! The texts of values and errors, and the check that none contains the secret.

use std::{
    error::Error,
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
};

pub(crate) const SECRET: &str = "s3cr3t";

/// The texts of values and errors, with the types of the values.
#[derive(Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<String>>);

impl Shown {
    pub(crate) fn debug(&self, what: &impl Debug) {
        let mut text = self.0.lock().unwrap();
        let name = std::any::type_name_of_val(what);
        writeln!(text, "{name}: {what:?}\n{name}: {what:#?}").unwrap();
    }

    pub(crate) fn error(&self, error: &(dyn Error + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            let mut text = self.0.lock().unwrap();
            writeln!(text, "error: {error}\nerror: {error:?}\nerror: {error:#?}").unwrap();
            next = error.source();
        }
    }

    #[track_caller]
    pub(crate) fn assert_silent(&self, proof: &[&str]) {
        let text = self.0.lock().unwrap();
        for part in proof {
            assert!(text.contains(part), "no text mentions {part}:\n{text}");
        }
        let leak = text.lines().find(|line| line.contains(SECRET));
        assert_eq!(leak, None);
    }
}
