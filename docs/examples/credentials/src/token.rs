//! Tokens of IAM authentication: a URL of the service that is signed and never requested, and sent as the password. It is
//! valid for a quarter of an hour. Both services refuse one on a connection without TLS.
//!
//! | | the role needs | the user needs |
//! |---|---|---|
//! | RDS, Aurora | `rds-db:connect` on the user of the database | `GRANT rds_iam TO orders` |
//! | ElastiCache | `elasticache:Connect` on the cache and on the user | authentication by IAM; its id is its name |
//! | MemoryDB | `memorydb:Connect` on the cluster and on the user | authentication by IAM |

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials as _, SharedCredentialsProvider},
};
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign},
    sign::v4::SigningParams,
};
use lambda_idempotency::error::BoxError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// How long a token is valid: no service allows more.
const VALID: Duration = Duration::from_secs(900);
/// What Signature Version 4 encodes in a query.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What the token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// RDS and Aurora. The server is `HOST:PORT`.
    Rds,
    /// A cache of ElastiCache with nodes. The server is the *name* of the cache (its replication group), in lower case.
    ElastiCache,
    /// A serverless cache of ElastiCache. The server is the name of the cache.
    ElastiCacheServerless,
    /// The server is the name of the cluster.
    MemoryDb,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Rds => "rds-db",
            Self::ElastiCache | Self::ElastiCacheServerless => "elasticache",
            Self::MemoryDb => "memorydb",
        }
    }

    fn query(self, user: &str) -> String {
        let user = utf8_percent_encode(user, ENCODED);
        match self {
            Self::Rds => format!("Action=connect&DBUser={user}"),
            Self::ElastiCache | Self::MemoryDb => format!("Action=connect&User={user}"),
            Self::ElastiCacheServerless => {
                format!("Action=connect&User={user}&ResourceType=ServerlessCache")
            }
        }
    }
}

/// Makes tokens with the credentials of the function's role, which the SDK renews.
#[derive(Clone, Debug)]
pub struct Tokens {
    service: Service,
    server: String,
    user: String,
    region: String,
    credentials: SharedCredentialsProvider,
}

impl Tokens {
    /// Tokens for this user of this server, with region and credentials of `config`.
    pub fn new(
        config: &SdkConfig,
        service: Service,
        server: impl Into<String>,
        user: impl Into<String>,
    ) -> Result<Self, BoxError> {
        let region = config.region().ok_or("no AWS region is configured: set AWS_REGION")?;
        let credentials =
            config.credentials_provider().ok_or("no AWS credentials are configured")?;
        let (server, user) = (server.into(), user.into());
        Ok(Self { service, server, user, region: region.to_string(), credentials })
    }

    /// A new token.
    pub async fn token(&self) -> Result<String, BoxError> {
        let credentials = self.credentials.provide_credentials().await?;
        let now = SystemTime::now();
        token(self.service, &self.server, &self.user, &self.region, credentials, now)
    }
}

/// The token that is valid from this time on.
pub fn token(
    service: Service,
    server: &str,
    user: &str,
    region: &str,
    credentials: Credentials,
    now: SystemTime,
) -> Result<String, BoxError> {
    let mut url = format!("https://{server}/?{}", service.query(user));
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(VALID);
    let identity = credentials.into();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service.name())
        .time(now)
        .settings(settings)
        .build()?;
    let request =
        SignableRequest::new("GET", url.as_str(), std::iter::empty(), SignableBody::Bytes(&[]))?;
    let (signed, _) = sign(request, &parameters.into())?.into_parts();
    for (name, value) in signed.params() {
        url.push_str(&format!("&{name}={}", utf8_percent_encode(value, ENCODED)));
    }
    Ok(url.split_off("https://".len()))
}
