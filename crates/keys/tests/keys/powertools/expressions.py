"""Random JMESPath expressions for `DOCUMENT` of `record.py`: most are valid, with all forms of the syntax and all functions."""

import re

NAMES = """id n f neg big zero no yes empty nil list floats texts mixed nested objects lists body bad b64 b64t gz two emoji num hex
missing k v w b c d a user amount tags A""".split()
LITERALS = ["`1`", "`2`", "`7`", "`7.0`", "`-3`", "`\"a\"`", "`true`", "`false`", "`null`", "`[]`", "`{}`", "`[3,1,2]`", "`{\"b\":1,\"a\":[1.0,1e2]}`",
            "`[[1],[2,[3]]]`", "'a'", "''", "'A-1'", "'it\\'s \\'x\\''", "'\\\\'", "`\"\\`\\`\"`", "` [1] `", "`foo`", "``", "`\"😀\"`", "`[1, null, \"b\"]`", "`9007199254740993`"]
SCALARS = "id n f neg zero no empty nil num hex emoji missing".split()
ONE = "abs avg ceil floor keys length max min reverse sort sum to_array to_number to_string type values powertools_json powertools_base64 powertools_base64_gzip".split()
SORTED = "max_by min_by sort_by".split()
SPACES = ["", "", "", "", " ", "\n"]


def index(rng):
    return str(rng.choice([0, 0, 1, 2, -1, -2, 3, 9, -9, -0]))


def bracket(rng, depth):
    kind = rng.random()
    if kind < 0.3:
        return f"[{index(rng)}]"
    if kind < 0.5:
        parts = [rng.choice(["", index(rng)]) for _ in range(rng.choice([2, 2, 3]))]
        return "[" + ":".join(parts) + "]"
    if kind < 0.65:
        return "[*]"
    if kind < 0.8:
        return "[]"
    return f"[?{expression(rng, depth - 1)}]"


def primary(rng, depth):
    kind = rng.random()
    if depth <= 0 or kind < 0.4:
        return rng.choice(NAMES) if rng.random() < 0.85 else rng.choice(["@", "*", '"10"', '"we ird"', '"\\u0069d"', '""', "__proto__"])
    if kind < 0.5:
        return rng.choice(LITERALS)
    if kind < 0.75:
        return function(rng, depth - 1)
    if kind < 0.82:
        return "[" + ", ".join(expression(rng, depth - 1) for _ in range(rng.choice([1, 2, 3]))) + "]"
    if kind < 0.88:
        names = rng.sample(["x", "y", "X", '"10"', '"9"', '"é"', "a"], rng.choice([1, 2, 3]))
        return "{" + ", ".join(f"{name}: {expression(rng, depth - 1)}" for name in names) + "}"
    if kind < 0.93:
        return "!" + primary(rng, depth - 1)
    if kind < 0.97:
        return "(" + expression(rng, depth - 1) + ")"
    return bracket(rng, depth)


def function(rng, depth):
    kind = rng.random()
    if kind < 0.6:
        name = rng.choice(ONE)
        likely = {
            "abs": "n f neg big", "ceil": "f n neg", "floor": "f neg", "avg": "list floats", "sum": "list floats", "keys": "two nested", "values": "two nested",
            "max": "list texts floats mixed", "min": "list texts floats mixed", "sort": "list floats mixed", "reverse": "id list emoji texts",
            "to_number": "num hex id n", "length": "id list two emoji", "powertools_json": "body bad", "powertools_base64": "b64 b64t gz bad",
            "powertools_base64_gzip": "gz b64",
        }.get(name)
        argument = rng.choice(likely.split()) if likely and rng.random() < 0.6 else expression(rng, depth)
        return f"{name}({argument})"
    if kind < 0.75:
        name = rng.choice(SORTED)
        return f"{name}({rng.choice(['objects', 'list', 'texts', 'lists[*][0]', expression(rng, depth)])}, &{rng.choice(['k', 'v', 'w', '@', 'to_string(@)', expression(rng, depth)])})"
    if kind < 0.82:
        return f"map(&{expression(rng, depth)}, {rng.choice(['objects', 'list', 'mixed', 'lists', expression(rng, depth)])})"
    if kind < 0.9:
        return f"contains({rng.choice(['id', 'list', 'texts', 'mixed', 'objects', 'lists', 'emoji', expression(rng, depth)])}, {expression(rng, depth)})"
    name = rng.choice(["join", "merge", "not_null", "starts_with", "ends_with"])
    arguments = {
        "join": ["'-'", rng.choice(["texts", "keys(two)", expression(rng, depth)])],
        "merge": [rng.choice(["two", "nested"])] + [rng.choice(["two", "nested", "`{\"a\":5,\"1\":1}`", "list", expression(rng, depth)]) for _ in range(rng.choice([0, 1, 2]))],
        "not_null": [expression(rng, depth) for _ in range(rng.choice([1, 2, 3]))],
    }.get(name, [rng.choice(["id", "emoji", expression(rng, depth)]), rng.choice(["'A'", "'1'", "''", expression(rng, depth)])])
    return f"{name}({', '.join(arguments)})"


def expression(rng, depth):
    text = primary(rng, depth)
    while rng.random() < 0.55:
        kind = rng.random()
        space = rng.choice(SPACES)
        if kind < 0.35:
            step = rng.choice(NAMES + ["*", '"10"']) if rng.random() < 0.8 else rng.choice(["[k, v]", "{a: k, b: @}", "to_string(@)", "length(@)"])
            text += f"{space}.{space}{step}"
        elif kind < 0.7:
            text += space + bracket(rng, depth)
        elif kind < 0.8:
            text += f"{space}|{space}{expression(rng, depth - 1)}"
        else:
            operator = rng.choice(["==", "!=", "<", "<=", ">", ">=", "||", "&&"])
            text += f"{space}{operator}{space}{primary(rng, depth - 1)}"
        if len(text) > 150:
            break
    return text


def broken(rng):
    """Tokens in any order, or an expression with a character removed or inserted."""
    if rng.random() < 0.4:
        tokens = NAMES[:6] + ["[", "]", "(", ")", "{", "}", "*", "@", ".", ",", ":", "&", "|", "||", "&&", "!", "==", "<", "0", "-1", "[]", "[?", "[*]", "'a'", "`1`", "length(", "a:"]
        return "".join(rng.choice(tokens) + rng.choice(["", " "]) for _ in range(rng.choice([1, 2, 3, 4, 5, 6])))
    text = expression(rng, 2)
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(["", ".", "[", "]", ",", " ", "'", "`", "\\", "-", "0", "😀", "\"", "&", "*"]) + text[at + rng.choice([0, 1]):]


def random_expression(rng):
    while True:
        text = broken(rng) if rng.random() < 0.2 else expression(rng, 3)
        # Not an empty text, which means no expression at all, and no `&` outside of arguments.
        if text and not re.search(r"(^|[^(,& ])\s*&(?!&)", text):
            return text
