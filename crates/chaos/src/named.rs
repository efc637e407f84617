//! Enums whose variants have names, which arguments and reports use.

/// An enum with `ALL`, `as_str`, `Display`, `FromStr` and `Serialize` by the names of its variants. The text before it
/// says what it is, for errors.
macro_rules! named {
    (
        $what:literal;
        $(#[$attribute:meta])*
        pub enum $Name:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $Name { $($(#[$of])* $variant,)* }

        impl $Name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|one| one.as_str() == name).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|one| one.as_str()).collect();
                    format!("`{name}` is not {}: use {}", $what, names.join(", "))
                })
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use named;
