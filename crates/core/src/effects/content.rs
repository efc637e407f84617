//! The effects, as a value of a type that only its store knows.

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// Which effects a store commits: the type of their value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EffectsKind {
    id: TypeId,
    name: &'static str,
}

impl EffectsKind {
    /// Effects of type `T`.
    #[must_use]
    pub fn of<T: Any + Send + Sync>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// Whether these are effects of type `T`.
    #[must_use]
    pub fn is<T: Any + Send + Sync>(&self) -> bool {
        self.id == TypeId::of::<T>()
    }

    /// The name of the type, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for EffectsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Effects to be committed together with a write. Cheap to clone; clones are equal, and other values
/// are not, whatever they hold. They never change, so a store can send them again.
///
/// `Debug` shows only their type, because they hold the application's data.
///
/// ```
/// use lambda_idempotency_core::effects::Effects;
///
/// let effects = Effects::new(vec!["add 1"]);
/// assert_eq!(effects.get::<Vec<&str>>(), Some(&vec!["add 1"]));
/// assert_eq!(effects.get::<String>(), None);
/// assert_eq!(effects, effects.clone());
/// ```
#[derive(Clone)]
pub struct Effects {
    pub(super) content: Arc<dyn Any + Send + Sync>,
    pub(super) kind: EffectsKind,
}

impl Effects {
    /// Effects of a type that a store commits.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(content: T) -> Self {
        Self { content: Arc::new(content), kind: EffectsKind::of::<T>() }
    }

    /// The content, if it is of this type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.content.downcast_ref()
    }

    /// The type of the content.
    #[must_use]
    pub const fn kind(&self) -> EffectsKind {
        self.kind
    }

    fn address(&self) -> *const () {
        Arc::as_ptr(&self.content).cast()
    }
}

impl PartialEq for Effects {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.address(), other.address())
    }
}

impl Eq for Effects {}

impl Hash for Effects {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effects({})", self.kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_type_of_effects_and_nothing_of_their_content() {
        let shown = format!("{:?}", Effects::new("s3cr3t".to_owned()));
        assert_eq!(shown, "Effects(alloc::string::String)");
    }

    #[test]
    fn only_clones_are_equal() {
        let (one, other) = (Effects::new(1_u8), Effects::new(1_u8));
        assert_eq!(one, one.clone());
        assert_ne!(one, other);
    }
}
