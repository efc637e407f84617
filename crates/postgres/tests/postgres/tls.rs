//! Connections are encrypted, and the server's certificate and name are checked.

use std::fs;

use lambda_idempotency_core::store::StoreErrorKind;
use lambda_idempotency_postgres::{PostgresConfigError, PostgresStore};

use crate::{
    servers::{Server, new_directory, owned},
    table::{name_of, new_table},
    writes::{claim, error_of, in_secs, one, unknown, wrote},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_by_its_certificate_and_name() {
    let directory = new_directory("certificate");
    let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
    let request = directory.join("request");
    fs::write(
        &request,
        "[req]\ndistinguished_name = name\nx509_extensions = more\nprompt = no\n[name]\nCN = localhost\n\
         [more]\nsubjectAltName = DNS:localhost\nbasicConstraints = CA:FALSE\n",
    )
    .unwrap();
    let made = owned(&directory, "openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-config"])
        .arg(&request)
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .expect("openssl is installed with PostgreSQL");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = Server::postgres(&[
        "fsync=off",
        "ssl=on",
        &format!("ssl_cert_file={}", certificate.display()),
        &format!("ssl_key_file={}", key.display()),
    ]);
    let pem = fs::read(&certificate).unwrap();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    let encrypted = |host: &str| {
        let url = server.url().replace("?sslmode=disable", "").replace("127.0.0.1", host);
        PostgresStore::builder(&url).table(&name)
    };
    let trusted = encrypted("localhost").root_certificates(pem.clone()).build().unwrap();
    wrote(&trusted, claim("a", 1)).await;
    let other_name = encrypted("127.0.0.1").root_certificates(pem).build().unwrap();
    unknown(one(&other_name, claim("b", 1), in_secs(1)).await, StoreErrorKind::Unavailable, false);
    match encrypted("localhost").build() {
        Ok(untrusted) => {
            let error = error_of(one(&untrusted, claim("b", 1), in_secs(1)).await);
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        }
        Err(none) => assert!(matches!(none, PostgresConfigError::NoCertificates), "{none}"),
    }
    let unfit = encrypted("localhost").root_certificates("-----BEGIN").build();
    assert!(matches!(unfit.unwrap_err(), PostgresConfigError::UnfitCertificates));
    fs::remove_dir_all(directory).unwrap();
}

/// A client that asks for encryption does not get a plain connection instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused() {
    let server = Server::shared_postgres();
    let url = server.url().replace("?sslmode=disable", "?sslmode=prefer");
    let Ok(store) = PostgresStore::builder(&url).build() else { return };
    let error =
        unknown(one(&store, claim("a", 1), in_secs(5)).await, StoreErrorKind::Unavailable, false);
    assert!(error.to_string().contains("?sslmode=disable"), "{error}");
}
