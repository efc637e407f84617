#!/usr/bin/env python3
"""Records the results of `jmespath.py`, the reference, for many expressions and documents.

    python3 -m venv venv && venv/bin/pip install jmespath==1.1.0
    venv/bin/python record.py

The test needs neither; it reads the recording in `cases.json`. Where the reference departs
from the specification, or rounds, `Exact` and `set_right` correct it first: it
orders strings and raises for a string and a number, treats 1 as true inside of lists, searches strings
for values that are not strings, computes in doubles, reads `1_000` as a number, and keeps an order of
members. The test explains the differences of its parser. To record more cases, which the test then
reads instead:

    export REFERENCE_CASES=/tmp/cases.json
    CASES=100000 venv/bin/python record.py SEED
    cargo test -p lambda-idempotency-keys --test keys reference
"""

import json
import os
import random
import sys
import warnings
from fractions import Fraction

import jmespath
from jmespath import functions, lexer, visitor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "..", "powertools", "tests", "powertools"))
from expressions import random_expression  # noqa: E402

CASES = int(os.environ.get("CASES", "300"))
# As many documents, of which each serves for as many expressions.
DOCUMENTS = max(20, CASES // 500)
NUMBERS = "0 1 -1 2 3 7 1.0 2.0 0.5 1.5 2.5 -3 10 1e2 0.1 0.2 0.3 4503599627370496 4503599627370497".split()
NUMBERS += "9007199254740992 9007199254740993 9007199254740994 -9007199254740993 18446744073709551615".split()
TEXTS = ["", "a", "b", "A-1", "é", "😀b", "10", "12", "1.50", "z", "null", "[1]"]


class Sorted(dict):
    """An object whose members are sorted by name."""

    def __iter__(self):
        return iter(sorted(dict.keys(self)))

    def keys(self):
        return list(self)

    def values(self):
        return [self[name] for name in self]

    def items(self):
        return [(name, self[name]) for name in self]


def equal(one, other):
    """Equality of JMESPath, also inside of lists and objects."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    return one == other


def text(value):
    """JSON text; fractions as decimals, if they are finite."""
    if isinstance(value, Fraction):
        digits, denominator = 0, value.denominator
        while value * 10**digits % 1:
            digits += 1
            if digits > 60:
                raise ValueError("it does not end")
        return "%de-%d" % (value * 10**digits, digits) if digits else "%d.0" % value
    if isinstance(value, list):
        return "[" + ",".join(map(text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(name, ensure_ascii=False) + ":" + text(value[name]) for name in value) + "}"
    return json.dumps(value, ensure_ascii=False)


def exactly(json_text):
    return json.loads(json_text, object_pairs_hook=Sorted, parse_float=Fraction)


class Exact(functions.Functions):
    @functions.signature({"types": ["object"], "variadic": True})
    def _func_merge(self, *arguments):
        merged = Sorted()
        for argument in arguments:
            merged.update(argument)
        return merged

    @functions.signature({"types": ["array", "string"]}, {"types": []})
    def _func_contains(self, subject, search):
        if isinstance(subject, str):
            return isinstance(search, str) and search in subject
        return any(equal(item, search) for item in subject)

    @functions.signature({"types": []})
    def _func_type(self, value):
        return functions.TYPES_MAP[type(value).__name__]

    @functions.signature({"types": []})
    def _func_to_number(self, value):
        if isinstance(value, str):
            try:
                value = exactly(value)
            except ValueError:
                return None
        return value if visitor._is_actual_number(value) else None

    @functions.signature({"types": []})
    def _func_to_string(self, value):
        if isinstance(value, Fraction):
            return repr(float(value))
        if isinstance(value, (list, dict)):
            plain = lambda one: float(one) if isinstance(one, Fraction) else [*map(plain, one)] if isinstance(one, list) else {name: plain(one[name]) for name in one} if isinstance(one, dict) else one  # noqa: E731
            return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)
        return value if isinstance(value, str) else text(value)

    @functions.signature({"types": ["array-number"]})
    def _func_sum(self, numbers):
        return Fraction(sum(numbers))

    @functions.signature({"types": ["array-number"]})
    def _func_avg(self, numbers):
        return Fraction(sum(numbers)) / len(numbers) if numbers else None

    @functions.signature({"types": ["number"]})
    def _func_abs(self, number):
        return Fraction(abs(number))

    @functions.signature({"types": ["number"]})
    def _func_ceil(self, number):
        return Fraction(number.__ceil__())

    @functions.signature({"types": ["number"]})
    def _func_floor(self, number):
        return Fraction(number.__floor__())


def set_right():
    visitor._is_comparable = visitor._is_actual_number
    visitor.TreeInterpreter.COMPARATOR_FUNC.update(eq=equal, ne=lambda one, other: not equal(one, other))
    lexer.loads = exactly
    functions.TYPES_MAP.update(Fraction="number", Sorted="object")
    functions.REVERSE_TYPES_MAP["number"] += ("Fraction",)
    functions.REVERSE_TYPES_MAP["object"] += ("Sorted",)


def scalar(rng):
    kind = rng.random()
    if kind < 0.5:
        return json.loads(rng.choice(NUMBERS))
    if kind < 0.85:
        return rng.choice(TEXTS)
    return rng.choice([True, False, None])


def value(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return scalar(rng)
    if kind < 0.8:
        items = range(rng.choice([0, 1, 2, 3, 4]))
        return [numbers(rng) if rng.random() < 0.3 else value(rng, depth - 1) for _ in items]
    return {name: value(rng, depth - 1) for name in rng.sample("a b c d k v w 9 10".split(), rng.choice([0, 1, 2, 3]))}


def numbers(rng):
    return [json.loads(rng.choice(NUMBERS)) for _ in range(rng.choice([0, 1, 2, 3, 5]))]


def document(rng):
    """A document with the names that the expressions use, and mostly values of the expected types."""
    made = {name: value(rng, 2) for name in "id nil no yes empty mixed nested two a b c d k v w emoji".split()}
    made |= {name: json.loads(rng.choice(NUMBERS)) for name in "n f neg big zero amount".split()}
    made |= {"list": numbers(rng), "floats": numbers(rng), "num": rng.choice(TEXTS)}
    made["texts"] = [rng.choice(TEXTS) for _ in range(rng.choice([0, 1, 3]))]
    made["objects"] = [{"k": rng.choice(TEXTS), "v": json.loads(rng.choice(NUMBERS)), "w": scalar(rng)} for _ in range(rng.choice([0, 1, 2, 3]))]
    made["lists"] = [numbers(rng) for _ in range(rng.choice([0, 1, 3]))]
    return made


def outcome(document, expression):
    options = jmespath.Options(dict_cls=Sorted, custom_functions=Exact())
    try:
        return {"result": text(jmespath.compile(expression).search(document, options))}
    except Exception as error:
        return {"error": type(error).__name__}


def main():
    warnings.simplefilter("ignore")
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    documents = [json.dumps(document(rng), ensure_ascii=False) for _ in range(DOCUMENTS)]
    read = [exactly(one) for one in documents]
    cases = []
    set_right()
    while len(cases) < CASES:
        expression = random_expression(rng)
        # The reference does not have the functions of Powertools.
        if "powertools" not in expression:
            at = rng.randrange(DOCUMENTS)
            cases.append({"document": at, "expression": expression, **outcome(read[at], expression)})
    with open(os.environ.get("REFERENCE_CASES", os.path.join(HERE, "cases.json")), "w") as out:
        lines = ["[%s]" % ",\n".join(json.dumps(one, ensure_ascii=False) for one in part) for part in (documents, cases)]
        out.write('{"documents": %s,\n"cases": %s}\n' % tuple(lines))
    print(len(cases), "cases,", sum("error" in case for case in cases), "errors")


main()
