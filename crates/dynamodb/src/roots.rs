//! The root certificates that connections of a store from the environment trust.

use aws_smithy_http_client::tls::{TlsContext, TrustStore};

/// The roots of Amazon Trust Services, from <https://www.amazontrust.com/repository/>. They sign DynamoDB's certificates.
const AMAZON: &str = include_str!("amazon_roots.pem");

/// Variables that name root certificates.
const NAMED: [&str; 3] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE"];

/// Which root certificates a server's is checked against.
#[derive(Debug)]
pub(crate) struct Roots {
    /// Read when the connector is made.
    pub(crate) first: TlsContext,
    /// Read if the first do not know a server.
    pub(crate) others: Option<TlsContext>,
}

impl Roots {
    /// Amazon's, and the system's for other servers; or only the system's if the environment names certificates, since
    /// somebody has chosen them.
    pub(crate) fn from_env() -> Self {
        Self::new(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    }

    fn new(is_set: impl Fn(&str) -> bool) -> Self {
        let system = TlsContext::default();
        if NAMED.into_iter().any(is_set) {
            return Self { first: system, others: None };
        }
        match amazon() {
            Some(first) => Self { first, others: Some(system) },
            None => Self { first: system, others: None },
        }
    }
}

/// Trusts Amazon's roots alone.
pub(crate) fn amazon() -> Option<TlsContext> {
    let roots = TrustStore::empty().with_pem_certificate(AMAZON.as_bytes());
    TlsContext::builder().with_trust_store(roots).build().ok()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// Of Amazon Root CA 1 to 4 and Starfield Services Root Certificate Authority G2, as Amazon publishes them.
    const FINGERPRINTS: [&str; 5] = [
        "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",
        "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",
        "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",
        "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",
        "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",
    ];

    #[test]
    fn the_roots_are_those_that_amazon_publishes() {
        let certificates = AMAZON.split("-----BEGIN CERTIFICATE-----").skip(1).map(|rest| {
            let text = rest.split("-----END CERTIFICATE-----").next().unwrap();
            let der = STANDARD.decode(text.split_whitespace().collect::<String>()).unwrap();
            Sha256::digest(&der).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        assert_eq!(certificates.collect::<Vec<_>>(), FINGERPRINTS);
        assert!(amazon().is_some());
    }

    /// `TlsContext` shows whether it has the system's, and not which others.
    fn has_the_systems(tls: &TlsContext) -> bool {
        format!("{tls:?}").contains("enable_native_roots: true")
    }

    #[test]
    fn the_systems_are_for_servers_that_amazons_do_not_know() {
        let roots = Roots::new(|_| false);
        assert!(!has_the_systems(&roots.first));
        assert!(roots.others.as_ref().is_some_and(has_the_systems));
    }

    #[test]
    fn certificates_that_somebody_named_are_used_alone() {
        for name in NAMED {
            let roots = Roots::new(|set| set == name);
            assert!(has_the_systems(&roots.first), "{name}");
            assert!(roots.others.is_none(), "{name}");
        }
    }
}
