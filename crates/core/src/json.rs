//! A JSON text of an idempotency record, and what a store around another notes with it.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

/// A JSON text: what a handler returned, or its permanent failure. It may hold personal data, so
/// `Debug` shows only its length; as a `&str` it is available in full.
///
/// A store around another, which stores texts in another form, notes that form with the text. A write that carries the
/// text on then leaves it as it is stored. Equal texts are equal, whatever is noted.
///
/// ```
/// use lambda_idempotency_core::record::Json;
///
/// let text = Json::from("{}");
/// let carried_on = text.clone();
/// text.note("compressed");
/// assert_eq!(carried_on.noted::<&str>(), Some(&"compressed"));
/// assert!(text.is_noted() && !text.without_note().is_noted());
/// ```
#[derive(Clone)]
pub struct Json(Arc<Noted>);

/// Behind one pointer: a record has room for five, and most have none.
struct Noted {
    text: Arc<str>,
    note: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Json {
    /// What was noted with the text, if it is of this type.
    #[must_use]
    pub fn noted<T: Any>(&self) -> Option<&T> {
        self.0.note.get()?.downcast_ref()
    }

    /// Whether something was noted.
    #[must_use]
    pub fn is_noted(&self) -> bool {
        self.0.note.get().is_some()
    }

    /// Notes something with the text and its clones. The first note stays.
    pub fn note<T: Any + Send + Sync>(&self, note: T) {
        drop(self.0.note.set(Box::new(note)));
    }

    /// The same text, without what was noted.
    #[must_use]
    pub fn without_note(&self) -> Self {
        Arc::clone(&self.0.text).into()
    }
}

impl std::ops::Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl<T: Into<Arc<str>>> From<T> for Json {
    fn from(text: T) -> Self {
        Self(Arc::new(Noted { text: text.into(), note: OnceLock::new() }))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.text.len())
    }
}
