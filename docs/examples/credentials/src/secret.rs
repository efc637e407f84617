//! A password in AWS Secrets Manager.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use aws_sdk_secretsmanager::Client;
use lambda_idempotency::error::BoxError;
use serde::Deserialize;
use tokio::sync::Mutex;

/// How long a password is kept, so that not each connection costs a request.
const KEPT: Duration = Duration::from_secs(10);

/// The password in a secret, which the function's role may read (`secretsmanager:GetSecretValue`). The secret is the
/// password itself, or JSON with a `password`, as RDS writes it.
///
/// It is loaded again after ten seconds: after a rotation, connections with the old password are refused for no longer
/// than that. Neither the password nor the content of the secret is in its `Debug` or its errors.
#[derive(Clone)]
pub struct Secret {
    client: Client,
    id: Arc<str>,
    kept: Arc<Mutex<Option<(Instant, String)>>>,
}

/// A secret that RDS manages has more fields.
#[derive(Deserialize)]
struct Login {
    password: String,
}

impl Secret {
    /// The secret with this name or ARN.
    pub fn new(client: Client, id: impl Into<Arc<str>>) -> Self {
        Self { client, id: id.into(), kept: Arc::default() }
    }

    /// The password. Calls at the same time wait for one request.
    pub async fn password(&self) -> Result<String, BoxError> {
        let mut kept = self.kept.lock().await;
        if let Some((since, password)) = &*kept
            && since.elapsed() < KEPT
        {
            return Ok(password.clone());
        }
        let answer = self.client.get_secret_value().secret_id(&*self.id).send().await?;
        let secret = answer.secret_string().ok_or("the secret is not text")?;
        let password = if secret.trim_start().starts_with('{') {
            // The error of the parser may quote the secret.
            let login = serde_json::from_str::<Login>(secret);
            login.map_err(|_| "the secret is JSON without a `password`")?.password
        } else {
            secret.to_owned()
        };
        *kept = Some((Instant::now(), password.clone()));
        Ok(password)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("id", &self.id).finish_non_exhaustive()
    }
}
