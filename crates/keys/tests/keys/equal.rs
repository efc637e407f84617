//! Equal events have the same key, however they are written.

use proptest::prelude::*;

use crate::{
    json::json,
    support::{cases, key, selected},
};

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn order_space_and_escapes_have_no_effect(
        value in json().prop_filter("no key", |value| !value.is_empty()),
        style in any::<u64>(),
    ) {
        let plain = value.written(0);
        let other = value.written(style);
        prop_assert_eq!(selected("@", &plain), selected("@", &other));
        prop_assert_eq!(key("@", &plain), key("@", &other));
    }

    /// Nested JSON is parsed like other JSON.
    #[test]
    fn json_in_a_string_is_read_like_other_json(
        value in json().prop_filter("no key", |value| !value.is_empty()),
        style in any::<u64>(),
    ) {
        let body = crate::json::Json::Text(value.written(style)).written(style);
        let record = format!("{{\"body\":{body}}}");
        prop_assert_eq!(selected("json(body)", &record), selected("@", &value.written(0)));
    }

    /// The canonical form is itself JSON for the same value.
    #[test]
    fn the_canonical_form_is_a_fixed_point(
        value in json().prop_filter("no key", |value| !value.is_empty()),
    ) {
        let canonical = selected("@", &value.written(0)).unwrap();
        prop_assert_eq!(selected("@", &canonical).unwrap(), canonical);
    }
}
