//! The tables that both models compare with their runs: those of `docs/model.md`, and the recorded figures.

/// Tests of one call each: a world in which the properties hold, or a mistake that breaks one of them.
macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident: $call:expr;)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            $call;
        }
    )*};
}

/// Defines `Flaw`, a property that a single step can break, with the property's name, and `Flaws`, a set of them.
macro_rules! flaws {
    ($($flaw:ident: $property:expr,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Flaw {
            $($flaw,)*
        }

        impl Flaw {
            /// The property that it breaks.
            #[allow(dead_code, reason = "only one of the models loses properties")]
            pub(crate) const fn property(self) -> &'static str {
                match self {
                    $(Self::$flaw => $property,)*
                }
            }
        }

        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub(crate) struct Flaws(u32);

        impl Flaws {
            pub(crate) const fn add(&mut self, flaw: Flaw) {
                self.0 |= 1 << flaw as u32;
            }

            pub(crate) const fn any(self) -> bool {
                self.0 != 0
            }

            const fn contains(self, flaw: Flaw) -> bool {
                self.0 & (1 << flaw as u32) != 0
            }
        }

        /// That no step has broken one of these properties.
        fn without_flaws() -> Vec<Property<Explorer>> {
            vec![$(Property::always($property, |_, world: &World| {
                !world.flaws().contains(Flaw::$flaw)
            })),*]
        }
    };
}

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

pub(crate) static PAGE: LazyLock<String> = LazyLock::new(|| read("../../docs/model.md"));

/// The text of a file of this package.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The rows of the table under a heading of a text, without those of the column names.
pub(crate) fn rows(text: &'static str, heading: &str) -> impl Iterator<Item = &'static str> {
    let (_, section) = text.split_once(heading).expect("the heading");
    let section = section.split("\n##").next().unwrap_or_default();
    section.lines().filter(|line| line.starts_with("| ")).skip(1)
}

/// The first cells of rows.
pub(crate) fn names(rows: impl Iterator<Item = &'static str>) -> BTreeSet<&'static str> {
    rows.filter_map(|row| row.split('|').nth(1)).map(|name| name.trim().trim_matches('`')).collect()
}

/// Formats 1234567 as 1,234,567.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
