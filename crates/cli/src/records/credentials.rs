//! Credentials, looked for before the first request: an error then names its cause and what to do, while requests
//! would repeat the search, and end with another error.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, SharedCredentialsProvider, future},
};

use crate::failure::Failure;

/// How long the search may take: a role of an instance that is not there is looked for on the network.
const PATIENCE: Duration = Duration::from_secs(10);

/// Provides first what was found already, so that a program that asks for a code is not called twice.
#[derive(Debug)]
pub(crate) struct Found {
    first: Mutex<Option<Credentials>>,
    provider: SharedCredentialsProvider,
}

impl Found {
    pub(crate) async fn by(provider: SharedCredentialsProvider) -> Result<Self, Failure> {
        let found = tokio::time::timeout(PATIENCE, provider.provide_credentials()).await;
        let first = match found {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(error)) => return Err(Failure::from(error).remedy(REMEDY)),
            Err(_) => {
                let text = format!("no AWS credentials were found within {} s", PATIENCE.as_secs());
                return Err(Failure::from(text).remedy(REMEDY));
            }
        };
        Ok(Self { first: Mutex::new(Some(first)), provider })
    }
}

impl ProvideCredentials for Found {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        match self.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(credentials) => future::ProvideCredentials::ready(Ok(credentials)),
            None => self.provider.provide_credentials(),
        }
    }
}

pub(crate) const REMEDY: &str = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile that has keys or a role. With IAM
  Identity Center (SSO): eval \"$(aws configure export-credentials --format env)\"";
