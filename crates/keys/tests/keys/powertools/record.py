#!/usr/bin/env python3
"""Records the keys of Powertools for Python for many payloads; `record.mjs` does so for TypeScript.

    python3 -m venv venv && venv/bin/pip install aws-lambda-powertools==3.37.0 jmespath boto3
    npm install @aws-lambda-powertools/idempotency@2.35.0 @aws-lambda-powertools/jmespath@2.35.0 \
        @aws-sdk/client-dynamodb @aws-sdk/lib-dynamodb
    venv/bin/python record.py && node record.mjs

The tests need neither; they read the recordings in `vectors/`. A case is
`{json?, expression?, hash?, prefix?, key | missing | error, validation?}`: without `json` it is about
the shared document, without `prefix` its prefix is ` p `; `missing` means that the function
runs without a record, `error` that the library fails.

To record more cases, which the tests then read instead:

    export POWERTOOLS_VECTORS=/tmp/vectors && mkdir -p $POWERTOOLS_VECTORS
    CASES=20000 venv/bin/python record.py SEED && node record.mjs
    cargo test -p lambda-idempotency-keys --test keys powertools::recorded
"""

import base64
import gzip
import json
import os
import random
import struct
import sys
import warnings

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer

sys.dont_write_bytecode = True
from expressions import random_expression  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.environ.get("POWERTOOLS_VECTORS", os.path.join(HERE, "vectors"))
CASES = int(os.environ.get("CASES", "350"))

NUMBERS = """0 -0 0.0 -0.0 1 -1 1.0 1.50 42 1e0 1E5 1e+5 12e-1 1e15 1e16 1.5e16 1e17 1e20 1e21 1e22 1.25e21 1e100
123456789012345678 9007199254740991 9007199254740992 9007199254740993 -9007199254740993 9007199254740993.0
18446744073709551615 18446744073709551616 123456789012345678901234567890 -123456789012345678901234567890
0.1 0.10 0.1000000000000000055 0.30000000000000004 1e-4 1e-5 1.5e-5 1e-6 1.5e-7 1e-7 0.0001 0.00001 0.000001
5e-324 1e-999 1e999 -1e999 1.7976931348623157e308 2.2250738585072014e-308 4.35 100.0 1e2 3.14e2 0e5 -1e-7
4.9406564584124654e-324 9999999999999998.0 999999999999999.9 99999999999999990000 123456789.123456789""".split()

STRINGS = [
    r'""', r'"hello"', r'"42"', r'"1.0"', r'"true"', r'"null"', r'" "', r'"a\"b\\c\/d"', r'"\b\f\n\r\t\u0000\u001f\u007f"',
    r'"\u00e9"', '"é"', '"漢字"', r'"\ud83d\ude00"', '"😀"', r'"\ud800"', r'"\udc00x"', r'"\ud800\ud800"', r'"\udc00\ud800"',
    r'"\u2028\u2029"', '"\u2028"', '"\x7f"', r'"\uFFFF"', r'"\ufeffx"', r'"<>&\u0027"', '"İstanbul ΑΣ ß"', r'"\\ud800"', r'"\uD834\uDD1E"',
]

NAMES = [
    "a", "A", "b", "B", "z", "Z", "_", "aa", "aA", "Aa", "ab", "aB", "0", "1", "9", "10", "01", "00", "-1", "1.5", "4294967294",
    "4294967295", "4294967296", "9007199254740993", "é", "É", "ß", "ss", "İ", "i̇", "I", "ı", "Σ", "σ", "ς", "ΑΣ", "ας", "ΑΣΑ", "K", "k",
    "__proto__", "constructor", "toString", "toJSON", "length", "", " ", "id", "Id", "ID", "😀", "\uffff", "\ue000", "~", "{", "[", "Ω", "Ω",
    "ǅ", "ǆ", "Ǆ", "ẞ", "\x7f", "a\"b", "a\\b", "a\nb",
]

DOCUMENT = r'''{"id":"A-1","n":7,"f":2.5,"neg":-3,"big":9007199254740993,"zero":0,"no":false,"yes":true,"empty":"","nil":null,
"list":[3,1,2],"floats":[1.5,2,0.25],"texts":["b","a","C","é","10"],"mixed":[1,"a",null,true],"nested":{"b":{"c":[1,{"d":"x"}]},"a":2},
"objects":[{"k":"b","v":2,"w":1.0},{"k":"a","v":10,"w":2.0},{"k":"c","v":1,"w":1}],"lists":[[1,2],[],[3,[4]],5],
"body":"{\"user\":\"xyz\",\"amount\":10.50,\"big\":9007199254740993,\"tags\":[\"x\"]}","bad":"{oops","b64":"eyJ1c2VyIjoieHl6In0=",
"b64t":"w6lAZg==","gz":"GZIP","two":{"10":"ten","9":"nine","b":1,"a":2,"A":3},"emoji":"a😀b","num":"12","numf":"1.50","hex":"0x1f","spaced":" 5 ",
"under":"1_000","inf":"inf","nan":"NaN","sci":"1e3","dot":".5","plus":"+5","lead":"007","_x":1,"we ird":{"é":"ü"},"__proto__":{"p":1}}'''

EXPRESSIONS = r'''id|n|f|big|zero|no|empty|nil|missing|list|nested|two|body|@|nested.b.c|nested.b.c[1].d|nested.b.c[0]|list[0]|list[-1]|list[9]|list[-4]
[id, n]|[id, missing]|[missing, nil]|[zero, empty]|[empty, no]|{a: id, b: n}|{b: id, a: missing}|{x: missing, y: nil}
{"10": id, "9": n, z: f}|objects[*].k|objects[*].v|objects[*].missing|mixed[*]|not_null(missing, id)|not_null(zero, id)
not_null(missing, nil)|not_null(empty, id)|powertools_json(body)|powertools_json(body).user|powertools_json(body).[user, amount]
powertools_json(body).big|powertools_json(bad)|powertools_json(bad).x|[id, powertools_json(bad)]|{a: id, b: powertools_json(bad)}
powertools_base64(b64)|powertools_json(powertools_base64(b64)).user|powertools_base64(b64t)|powertools_base64(id)|powertools_base64(bad)
powertools_base64_gzip(gz)|powertools_json(powertools_base64_gzip(gz)).user|powertools_base64_gzip(b64)|powertools_json(n)|"we ird"."é"|_x
nested | a|list | [0]|two.A|@.id|[id]|[[id, n], two.a]|objects[*].[k, v]|objects[*].{v: v, k: k}|list[*]|objects[-1].k|lists[*][0]|nested.b.c[*].d'''


def raw(rng, depth):
    """A random JSON text, in forms that a serializer would not write."""
    kind = rng.random()
    if depth == 0 or kind < 0.45:
        pick = rng.random()
        if pick < 0.4:
            return rng.choice(STRINGS)
        if pick < 0.65:
            return rng.choice(NUMBERS)
        if pick < 0.85:
            double = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
            if double != double or double in (float("inf"), float("-inf")):
                double = rng.uniform(-1e6, 1e6)
            return rng.choice([repr(double), "%.3f" % rng.uniform(-1e5, 1e5), str(rng.randrange(-(10**18), 10**18)), "%.17e" % double])
        return rng.choice(["true", "false", "null"])
    space = rng.choice(["", " ", "\n\t"])
    count = rng.choice([0, 1, 2, 3, 5, 8])
    if kind < 0.65:
        return "[" + ",".join(space + raw(rng, depth - 1) for _ in range(count)) + space + "]"
    if depth == 3 and rng.random() < 0.15:
        count = rng.choice([33, 48, 70])
    names = [rng.choice(NAMES) for _ in range(count)]
    if rng.random() < 0.85:
        names = list(dict.fromkeys(names))
    if count > 8:
        names += ["".join(rng.choice("aAbB") for _ in range(3)) for _ in range(count // 2)]
        names = list(dict.fromkeys(names))
    members = [json.dumps(name, ensure_ascii=rng.random() < 0.5) + space + ":" + raw(rng, depth - 1) for name in names]
    return "{" + ("," + space).join(members) + space + "}"


def cases(seed):
    rng = random.Random(seed)
    for text in NUMBERS + STRINGS + ["true", "false", "null", "[]", "{}", "[null]", "[[]]", '{"a":null}', "[0,false,\"\"]", "NaN", '[Infinity,-Infinity]']:
        yield {"json": text}
    for text in NUMBERS[::3]:
        yield {"json": '{"id": %s}' % text, "expression": "id"}
    for hash_name in ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]:
        yield {"json": '{"id": "é"}', "expression": "id", "hash": hash_name}
    for expression in EXPRESSIONS.replace("\n", "|").replace(" | ", "\1").split("|"):
        yield {"expression": expression.replace("\1", " | ")}
    for prefix in PREFIXES:
        yield {"json": '{"id": 1}', "expression": "id", "prefix": prefix}
    for text in TEXTS:
        for function in ["powertools_json", "powertools_base64", "powertools_base64_gzip"]:
            yield {"json": json.dumps({"id": text}), "expression": function + "(id)"}
    for _ in range(CASES):
        yield {"json": raw(rng, 3)}
    for _ in range(CASES * 2):
        yield {"expression": random_expression(rng)}


PREFIXES = ["p", "a b", "é😀", "#", "a#b", "\u00a0p\u2003", "\ufeffp", "\u0085p\u0085", "\x1cp\x1f", "p\n"]


def packed(data, tail=b""):
    return base64.b64encode(gzip.compress(data, mtime=0) + tail).decode()


TEXTS = """1 -1 +1 1.5 -1.5e3 .5 5. 1_000 1__0 _1 1_ 0x1F 0X1f 0o17 0b101 0b2 0x -0x1 00012 -0 +0 1e400 -1e400 inf Infinity -Infinity +infinity INF nan NaN -nan
1e5 1E+5 1e 1e_5 1_0.0_1 0xFFFFFFFFFFFFFFFFFF 9007199254740993 123456789012345678901234567890 null true [1] {"a":1,"a":2} "x" {a} 01 NaN [Infinity] -
YQ== YQ= YQ YWI= YWJj YWJjZA== YQ==YQ== Y-_h YW+/ ==== = 77u/YQ== /w== w6k= gICA 8J+YgA== 8J+Y YWJj=""".split() + [
    "", " ", " 5 ", "\u00a05", "\u00855", "\ufeff5", "\x1c5", "1 2", "YWJ\nj", " YWJj", "YWJj ", "é", '"\ud83d\ude00"', "\ufeff1", " 1 ", "\u00a01", '"\t"',
    packed(b"x"), packed(b""), packed(b"x", b"\0\0"), packed(b"x", b"tail"), packed(b"x") + "\n", packed(b"\xff\xfe"), packed(b"\xef\xbb\xbfx"),
    packed(b"x", gzip.compress(b"y", mtime=0)), packed(b"x" * 100)[:40], packed(b"x", b"\x1f\x8b"), packed(b"x", b"\x1f"), "YQ==" * 2,
]


DOCUMENT = DOCUMENT.replace("\n", "").replace("GZIP", packed(b'{"user":"xyz"}'))


class Layer(BasePersistenceLayer):
    def _get_record(self, *_):
        raise NotImplementedError

    _put_record = _update_record = _delete_record = _get_record


def outcome(case):
    config = IdempotencyConfig(
        event_key_jmespath=case.get("expression", ""),
        payload_validation_jmespath=case.get("expression", "@"),
        hash_function=case.get("hash", "md5"),
    )
    layer = Layer()
    try:
        layer.configure(config, key_prefix=case.get("prefix", " p "))
        data = json.loads(case.get("json", DOCUMENT))
        key = layer._get_hashed_idempotency_key(data)
        return {"validation": layer._get_hashed_payload(data), **({"missing": True} if key is None else {"key": key})}
    except Exception:
        return {"error": True}


def main():
    warnings.simplefilter("ignore")
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    recorded = [{**case, **outcome(case)} for case in cases(seed)]
    with open(os.path.join(VECTORS, "python.json"), "w") as out:
        lines = ",\n".join(json.dumps(case) for case in recorded)
        out.write('{"document": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(DOCUMENT), lines))
    print(len(recorded), "cases")


main()
