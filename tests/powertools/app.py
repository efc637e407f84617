"""Idempotent functions of the real Powertools for Python, called by the tests of `tests/tests/with_powertools`.

A call is a line of JSON on standard input, its outcome a line on standard output. The names of this module and of its
functions are a part of their keys, as in a Lambda function.
"""

import json
import os
import sys
import warnings

import boto3
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent,
    idempotent_function,
)


# What the tests call an option, and what Powertools does.
CONFIG = {
    "key": "event_key_jmespath",
    "validation": "payload_validation_jmespath",
    "hash": "hash_function",
    "expires": "expires_after_seconds",
}


class Context:
    """Lambda's context, as far as Powertools reads it."""

    def __init__(self, remaining):
        self.remaining = remaining

    def get_remaining_time_in_millis(self):
        return self.remaining


def say(answer):
    print(json.dumps(answer), flush=True)


class Work:
    """What the functions do when they are called, and how often they were."""

    def __init__(self, call):
        self.call = call
        self.executed = 0

    def do(self):
        self.executed += 1
        if self.call.get("holds"):
            say({"holds": True})
            sys.stdin.readline()
        if self.call.get("fails"):
            raise RuntimeError("the work failed")
        return json.loads(self.call["result"])


work = None


def process(order):
    return work.do()


def process_record(record):
    return work.do()


def handler(event, context):
    return work.do()


def outcome(call, client):
    global work
    work = Work(call)
    event, context = json.loads(call["event"]), Context(call["remaining"])
    given = {option: call[name] for name, option in CONFIG.items() if name in call}
    config = IdempotencyConfig(lambda_context=context, **given)
    store = DynamoDBPersistenceLayer(table_name=call["table"], sort_key_attr=call.get("sort_key"), boto3_client=client)
    settings = {"persistence_store": store, "config": config, "key_prefix": call.get("prefix")}
    try:
        if call["form"] == "function":
            result = idempotent_function(process, data_keyword_argument="order", **settings)(order=event)
        elif call["form"] == "handler":
            result = idempotent(handler, **settings)(event, context)
        else:
            record_handler = idempotent_function(process_record, data_keyword_argument="record", **settings)
            batch = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
            result = process_partial_response(event, record_handler, batch, context)
        answer = {"result": result}
    except Exception as error:
        answer = {"error": type(error).__name__}
    return {"executed": work.executed, **answer}


def serve():
    warnings.simplefilter("ignore")
    client = boto3.client(
        "dynamodb",
        endpoint_url=os.environ["ENDPOINT"],
        region_name="eu-west-1",
        aws_access_key_id="id",
        aws_secret_access_key="secret",
    )
    for line in sys.stdin:
        call = json.loads(line)
        say(outcome(call, client))
