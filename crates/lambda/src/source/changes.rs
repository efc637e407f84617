//! What tells the changes of one thing apart: of an item, a document, an object.
//!
//! A key that reads only what all changes of a thing have in common drops every change but the
//! first.

/// What a key has to read so that two changes never share it.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The members of a record that each name one change.
    pub(crate) alone: &'static [&'static str],
    /// Without one of those, a key has to read a member of each group, and not the same for two.
    pub(crate) together: &'static [&'static [&'static str]],
    /// What is changed, for messages.
    pub(crate) thing: &'static str,
    /// A key that tells changes apart, for messages.
    pub(crate) instead: &'static str,
    /// What that key refuses, for messages; may be empty.
    pub(crate) but: &'static str,
}

impl Changes {
    /// Whether a key of the values with these paths can tell all changes apart.
    pub(crate) fn are_told_apart_by(&self, reads: &[String]) -> bool {
        let names_one = |member: &&str| reads.iter().any(|path| meet(path, member));
        let reads: Vec<_> = reads.iter().map(String::as_str).collect();
        self.alone.iter().any(names_one) || reads_each(self.together, &reads)
    }
}

fn reads_each(groups: &[&[&str]], reads: &[&str]) -> bool {
    let Some((group, rest)) = groups.split_first() else { return true };
    reads.iter().enumerate().any(|(at, path)| {
        if group.iter().any(|member| is_inside(member, path)) {
            // It reads the whole member, which may also hold those of other groups.
            return reads_each(rest, reads);
        }
        let others = reads.iter().enumerate().filter(|(other, _)| *other != at);
        group.iter().any(|member| is_inside(path, member))
            && reads_each(rest, &others.map(|(_, path)| *path).collect::<Vec<_>>())
    })
}

/// Whether the one path is, or leads into, the other.
fn is_inside(inner: &str, outer: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    outer.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn meet(one: &str, other: &str) -> bool {
    is_inside(one, other) || is_inside(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_needs_a_path_of_its_own_unless_a_whole_member_is_read() {
        let changes = Changes {
            alone: &["eventID"],
            together: &[&["keys", "image"], &["image"]],
            thing: "item",
            instead: "",
            but: "",
        };
        let are_told_apart = |reads: &[&str]| {
            changes
                .are_told_apart_by(&reads.iter().map(|&path| path.to_owned()).collect::<Vec<_>>())
        };
        for reads in [
            &["eventID"][..],
            &["keys.id", "image.version"],
            &["image.version", "keys.id"],
            &["image.id", "image.version"],
            &["image"],
            &[""],
            &["eventID.part"],
        ] {
            assert!(are_told_apart(reads), "{reads:?}");
        }
        for reads in [
            &[][..],
            &["keys"],
            &["keys.id", "keys.range", "name"],
            &["image.id"],
            &["image.id", "name"],
            &["images.id", "keys.id"],
            &["eventIDs"],
        ] {
            assert!(!are_told_apart(reads), "{reads:?}");
        }
    }
}
