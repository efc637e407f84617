"""Writes vectors.json: tokens as AWS's own signer for Python (botocore) makes them, at a fixed time and with the example
credentials of AWS's documentation. Run it with botocore installed; its version is in the file."""

import datetime
import json
import pathlib
from unittest import mock

import botocore
import botocore.auth
import botocore.session
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

AT = datetime.datetime(2026, 11, 22, 12, 0, 0, tzinfo=datetime.timezone.utc)
REGION = "eu-west-1"
KEY, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+of=a role"


def rds(host, port, user, session):
    with mock.patch("botocore.auth.get_current_datetime", lambda **_: AT):
        made = botocore.session.Session()
        made.set_credentials(KEY, SECRET, session)
        client = made.create_client("rds", region_name=REGION)
        return client.generate_db_auth_token(host, port, user, Region=REGION)


def cache(service, name, user, serverless, session):
    params = {"Action": "connect", "User": user}
    if serverless:
        params["ResourceType"] = "ServerlessCache"
    request = AWSRequest(method="GET", url=f"https://{name}/", params=params)
    with mock.patch("botocore.auth.get_current_datetime", lambda **_: AT):
        signer = botocore.auth.SigV4QueryAuth(Credentials(KEY, SECRET, session), service, REGION, expires=900)
        signer.add_auth(request)
    return request.url.removeprefix("https://")


vectors = []
for session in (None, SESSION):
    host = "orders.abc123.eu-west-1.rds.amazonaws.com"
    for user in ("orders", "orders@eu west"):
        vectors.append(
            {"service": "rds-db", "server": f"{host}:5432", "user": user, "serverless": False, "session": session,
             "token": rds(host, 5432, user, session)}
        )
    for service, serverless in (("elasticache", False), ("elasticache", True), ("memorydb", False)):
        vectors.append(
            {"service": service, "server": "orders-cache", "user": "orders", "serverless": serverless,
             "session": session, "token": cache(service, "orders-cache", "orders", serverless, session)}
        )
file = pathlib.Path(__file__).with_name("vectors.json")
known = {"botocore": botocore.__version__, "seconds": int(AT.timestamp()), "region": REGION, "key": KEY,
         "secret": SECRET, "vectors": vectors}
file.write_text(json.dumps(known, indent=2) + "\n")
