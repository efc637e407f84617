//! Something that happened to a key, and when.

/// Something that happened at a time, or during one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    pub(crate) until: Option<f64>,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// The kind of a moment, which has its own sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Claim,
    Refused,
    Handler,
    Effect,
    /// An effect after another one of the same name for the same key.
    Again,
    Completed,
    Released,
    Failed,
    Answered,
    Returned,
    Fault,
}

impl Moment {
    pub(crate) fn new(at: f64, kind: Kind, text: &str) -> Self {
        Self { at, until: None, kind, text: text.to_owned() }
    }
}

/// Makes one moment of the same fault that came again and again, as it does in an outage.
pub(super) fn merged(moments: Vec<Moment>) -> Vec<Moment> {
    let mut merged: Vec<(Moment, usize)> = Vec::new();
    for moment in moments {
        match merged.last_mut() {
            Some((last, times)) if moment.kind == Kind::Fault && last.text == moment.text => {
                (last.until, *times) = (Some(moment.at), *times + 1);
            }
            _ => merged.push((moment, 1)),
        }
    }
    let counted = merged.into_iter().map(|(mut moment, times)| {
        if times > 1 {
            moment.text = format!("{}, {times} times", moment.text);
        }
        moment
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_comes_again_and_again_is_one_moment() {
        let fault = |at, text| Moment::new(at, Kind::Fault, text);
        let moments = vec![
            Moment::new(0.0, Kind::Claim, "claimed"),
            fault(1.0, "the store failed"),
            fault(2.0, "the store failed"),
            fault(5.0, "the store failed"),
            fault(6.0, "kill"),
        ];
        let merged = merged(moments);
        let texts: Vec<_> = merged.iter().map(|moment| moment.text.as_str()).collect();
        assert_eq!(texts, ["claimed", "the store failed, 3 times", "kill"]);
        assert_eq!((merged[1].at, merged[1].until), (1.0, Some(5.0)));
    }
}
