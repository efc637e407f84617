//! Finds fallbacks: values that many records share, taken where a record lacks a field.

use super::{
    jmespath::{ast::Node, presence::Presence, value::Value},
    known::{Known, Variety},
    reach::known,
};

/// Whether its value can be, or contain, a value that many records share where others have one of
/// their own: ``id || 'none'``, `not_null(id, 'none')`, ``merge({id: 'none'}, @)``.
pub(super) fn is_in(node: &Node) -> bool {
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let falls_back = match node {
            Node::Or(left, right) => are_mixed(&[left, right]),
            Node::Call { name: "not_null", arguments, .. } => {
                are_mixed(&arguments.iter().collect::<Vec<_>>())
            }
            Node::Call { name: "merge", arguments, .. } => has_default(arguments),
            _ => false,
        };
        if falls_back {
            return true;
        }
        open.extend(node.sources());
    }
    false
}

/// Whether some of the alternatives are shared by many records, and others are not.
fn are_mixed(alternatives: &[&Node]) -> bool {
    let is_shared = |node: &&Node| {
        let known = known(node);
        let is_own = node.can_hold_data(true) && matches!(known.variety(), Variety::Unknown);
        if is_own { None } else { Some(is_there(&known)) }
    };
    let shared: Vec<Option<bool>> = alternatives.iter().map(is_shared).collect();
    shared.contains(&None) && shared.contains(&Some(true))
}

/// Whether an object before others has a member that is a constant, which the others may lack.
fn has_default(objects: &[Node]) -> bool {
    let is_open = |object: &Node| {
        !matches!(known(object), Known::Hash(_) | Known::Constant(_) | Known::ConstantIfThere(_))
    };
    let Some(last_open) = objects.iter().rposition(is_open) else { return false };
    objects.iter().take(last_open).any(|object| match known(object) {
        Known::Constant(Value::Object(members)) => {
            members.iter().any(|(_, member)| Presence::of(member).is_present())
        }
        Known::Hash(members) => members
            .iter()
            .any(|(_, member)| !matches!(member.variety(), Variety::Unknown) && is_there(member)),
        _ => false,
    })
}

fn is_there(known: &Known<'_>) -> bool {
    match known {
        Known::Constant(value) | Known::ConstantIfThere(value) => Presence::of(value).is_present(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::Expression;

    fn has_fallback(text: &str) -> bool {
        Expression::compile(text).unwrap().has_fallback()
    }

    #[test]
    fn a_constant_in_place_of_a_field_is_found_wherever_it_becomes_part_of_the_value() {
        for text in [
            "id || 'none'",
            "id || `0`",
            "id || `false`",
            "id || `[1]`",
            "a || b || 'none'",
            "a || 'none' || b",
            "(id || 'none') | @",
            "order.id || order.['none'] | @",
            "[tenant, id || 'none']",
            "{id: id || 'none', tenant: tenant}",
            "[tenant, [id || 'none']]",
            "[tenant, 'none' || id]",
            "not_null(id, 'none')",
            "not_null(a, b, 'none')",
            "[tenant, not_null(id, 'none')]",
            "join('-', [tenant, id || 'none'])",
            "to_string(id || 'none')",
            "to_array(not_null(id, 'none'))[0]",
            "json(body || '{\"id\":1}').id",
            "items[*].[id || 'none']",
            "items[].{id: id || 'none'}",
            "items[?paid].[id || 'none']",
            "map(&(id || 'none'), items)",
            "sort_by(items, &n)[0].[id || 'none']",
            "paid && (id || 'none')",
            "id || (a == b)",
            "(paid == `true`) || id",
            "(vip && 'vip') || id",
            "[tenant, id || length(items)]",
            "merge({id: 'none'}, @).id",
            "merge(`{\"id\":\"none\"}`, order).id",
            "[tenant, merge({id: type(x)}, @).id]",
        ] {
            assert!(has_fallback(text), "{text}");
        }
    }

    #[test]
    fn constants_beside_fields_and_in_conditions_are_not_fallbacks() {
        for text in [
            "id",
            "['orders', id]",
            "{kind: 'order', id: id}",
            "a || b",
            "not_null(a, b)",
            "id || `null`",
            "id || ''",
            "not_null(id, `null`)",
            "[id, (amount > `100` && 'large') || 'small']",
            "(type == 'a' && a) || b",
            "items[?(status || 'open') == 'open'].id",
            "items[?contains(tags || `[]`, 'a')].id",
            "sort_by(items, &(n || `0`))[0].id",
            "(status || 'open') == 'open' && id",
            "merge({v: 'x'}, {id: id})",
            "merge(@, {v: 'x'})",
            "merge({note: ''}, @).[id, note]",
            "[id, length(items)]",
            "join('-', ['orders', id])",
        ] {
            assert!(!has_fallback(text), "{text}");
        }
    }
}
