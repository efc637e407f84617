//! Tokens are those that AWS's own signer makes: see `vectors.py`.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use aws_credential_types::Credentials;
use credentials::{Service, token};
use serde_json::Value;

/// The server, and the parameters in any order.
fn parts(token: &str) -> (&str, BTreeMap<&str, &str>) {
    let (server, query) = token.split_once("/?").expect("a query");
    (server, query.split('&').map(|part| part.split_once('=').expect("a value")).collect())
}

#[test]
fn tokens_are_those_of_the_signer_of_aws() {
    let known: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(known["seconds"].as_u64().unwrap());
    let vectors = known["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 10);
    for vector in vectors {
        let service = match (vector["service"].as_str().unwrap(), &vector["serverless"]) {
            ("rds-db", _) => Service::Rds,
            ("memorydb", _) => Service::MemoryDb,
            (_, Value::Bool(true)) => Service::ElastiCacheServerless,
            _ => Service::ElastiCache,
        };
        let (key, secret) = (text(&known["key"]).unwrap(), text(&known["secret"]).unwrap());
        let credentials = Credentials::new(key, secret, text(&vector["session"]), None, "test");
        let (server, user) = (text(&vector["server"]).unwrap(), text(&vector["user"]).unwrap());
        let made =
            token(service, &server, &user, known["region"].as_str().unwrap(), credentials, now);
        assert_eq!(parts(&made.unwrap()), parts(vector["token"].as_str().unwrap()), "{vector}");
    }
}
