"""Random key expressions for `DOCUMENT` of `record.py`."""

NAMES = """id n f neg big zero no yes empty nil list floats texts mixed nested objects lists body bad b64 b64t gz two emoji num hex
missing k v w b c d a user amount tags A""".split()
SPACES = ["", "", "", "", " ", "\n"]
DECODED = {"powertools_json": "body bad", "powertools_base64": "b64 b64t gz bad", "powertools_base64_gzip": "gz b64"}


def bracket(rng):
    return "[*]" if rng.random() < 0.4 else f"[{rng.choice([0, 0, 1, 2, -1, -2, 3, 9, -9])}]"


def parts(rng, depth):
    if rng.random() < 0.6:
        return "[" + ", ".join(expression(rng, depth - 1) for _ in range(rng.choice([1, 2, 3]))) + "]"
    names = rng.sample(["x", "y", "X", '"10"', '"9"', '"é"', "a"], rng.choice([1, 2, 3]))
    return "{" + ", ".join(f"{name}: {expression(rng, depth - 1)}" for name in names) + "}"


def primary(rng, depth):
    kind = rng.random()
    if depth <= 0 or kind < 0.5:
        return rng.choice(NAMES) if rng.random() < 0.85 else rng.choice(["@", '"10"', '"we ird"', '"\\u0069d"'])
    if kind < 0.65:
        name = rng.choice(list(DECODED))
        return f"{name}({rng.choice(DECODED[name].split()) if rng.random() < 0.7 else expression(rng, depth - 1)})"
    if kind < 0.75:
        return "not_null(" + ", ".join(expression(rng, depth - 1) for _ in range(rng.choice([1, 2, 3]))) + ")"
    if kind < 0.95:
        return parts(rng, depth)
    return bracket(rng)


def expression(rng, depth):
    text = primary(rng, depth)
    while rng.random() < 0.5 and len(text) < 150:
        kind = rng.random()
        space = rng.choice(SPACES)
        if kind < 0.45:
            text += f"{space}.{space}{rng.choice(NAMES) if rng.random() < 0.8 else parts(rng, 1)}"
        elif kind < 0.8:
            text += space + bracket(rng)
        else:
            text += f"{space}|{space}{expression(rng, depth - 1)}"
    return text


def random_expression(rng):
    return expression(rng, 3)
