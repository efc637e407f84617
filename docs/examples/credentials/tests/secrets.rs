//! Passwords from Secrets Manager are kept for a while, and never shown.

use aws_sdk_secretsmanager::{Client, operation::get_secret_value::GetSecretValueOutput};
use aws_smithy_mocks::{mock, mock_client};
use credentials::Secret;

fn client(secret: &'static str) -> (Client, aws_smithy_mocks::Rule) {
    let rule = mock!(Client::get_secret_value)
        .match_requests(|request| request.secret_id() == Some("orders/database"))
        .then_output(move || GetSecretValueOutput::builder().secret_string(secret).build());
    (mock_client!(aws_sdk_secretsmanager, [&rule]), rule)
}

#[tokio::test]
async fn a_password_is_the_secret_or_a_field_of_it_and_is_kept() {
    for text in ["s3cr3t", r#"{"username":"orders","password":"s3cr3t","port":5432}"#] {
        let (client, rule) = client(text);
        let secret = Secret::new(client, "orders/database");
        for _ in 0..3 {
            assert_eq!(secret.password().await.unwrap(), "s3cr3t");
        }
        assert_eq!(rule.num_calls(), 1);
        assert!(!format!("{secret:?}").contains("s3cr3t"));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_not_shown() {
    for text in [r#"{"password":["s3cr3t"]}"#, r#"{"passwort":"s3cr3t"}"#, r#"{"s3cr3t"#] {
        let secret = Secret::new(client(text).0, "orders/database");
        let error = secret.password().await.unwrap_err();
        assert!(error.to_string().contains("`password`"), "{error}");
        assert!(!format!("{error} {error:?} {secret:?}").contains("s3cr3t"));
    }
}
