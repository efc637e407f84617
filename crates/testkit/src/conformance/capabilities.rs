//! What a store cannot do it refuses.

use lambda_idempotency_core::{
    effects::Effects,
    store::{Guard, Store, StoreErrorKind, Verdict},
};

use super::kit::{Slot, completed, explain, in_progress, token, write_all};

/// Effects of a type that no store knows.
struct Unknown;

/// A store refuses effects that it cannot commit: it has no transactions, or they are not of its type. If
/// it dropped them, the record would say that they had happened.
pub async fn effects_of_an_unknown_type_are_refused(store: &dyn Store) {
    let owner = token();
    let held = in_progress(owner);
    let slot = Slot::with(store, &held).await;
    let free = Slot::fresh(store);
    let done = completed(owner, "1");
    let plain = Slot::fresh(store);
    let writes = [
        slot.asks(Guard::OwnedBy(owner), Some(&done)).with_effects(Some(Effects::new(Unknown))),
        plain.asks(Guard::Absent, Some(&done)),
        free.asks(Guard::Absent, Some(&done)).with_effects(Some(Effects::new(Unknown))),
    ];
    let [first, second, third] =
        <[Verdict; 3]>::try_from(write_all(store, &writes).await).expect("`write_all` counted");
    for verdict in [first, third] {
        match verdict {
            Verdict::Unknown(error)
                if error.kind() == StoreErrorKind::Refused && !error.may_have_applied() => {}
            Verdict::Unknown(error) => panic!(
                "effects that a store cannot commit are refused, and not in doubt; got {}",
                explain(&error)
            ),
            other => panic!("effects that a store cannot commit are refused; got {other:?}"),
        }
    }
    assert!(matches!(second, Verdict::Written), "the others are written; got {second:?}");
    slot.holds(Some(&held), "a write whose effects are refused is not applied").await;
    free.holds(None, "a write whose effects are refused is not applied").await;
}
