"""An idempotent function of Powertools for Python: a call a line on standard input, its outcome on standard output."""

import json
import sys
import warnings

import boto3
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function


class Context:
    def get_remaining_time_in_millis(self):
        return 30000


warnings.simplefilter("ignore")
client = boto3.client(
    "dynamodb", endpoint_url=sys.argv[1], region_name="eu-west-1", aws_access_key_id="id", aws_secret_access_key="secret"
)
config = IdempotencyConfig(event_key_jmespath="id", payload_validation_jmespath="amount", lambda_context=Context())
store = DynamoDBPersistenceLayer(table_name="idem", boto3_client=client)
executed = False


@idempotent_function(data_keyword_argument="event", persistence_store=store, config=config, key_prefix="interop")
def process(event, result):
    global executed
    executed = True
    return result


for line in sys.stdin:
    call = json.loads(line)
    executed = False
    try:
        answer = {"result": process(event=call["event"], result=call["result"])}
    except Exception as error:
        answer = {"error": type(error).__name__}
    print(json.dumps({"executed": executed, **answer}), flush=True)
