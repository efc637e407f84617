//! The root certificates that a store from the environment trusts.

use aws_config::SdkConfig;
use aws_smithy_http_client::tls::TlsContext;

/// Those of the system.
pub(crate) fn of_system() -> TlsContext {
    TlsContext::default()
}

/// Those for DynamoDB: the system's.
#[cfg(not(feature = "amazon-roots"))]
pub(crate) fn of_dynamodb(_: &SdkConfig) -> TlsContext {
    of_system()
}

/// Those for DynamoDB: Amazon's, with which its certificates are signed, or the system's if something says that another
/// server may answer.
#[cfg(feature = "amazon-roots")]
pub(crate) fn of_dynamodb(config: &SdkConfig) -> TlsContext {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let region = config.region().map_or("", AsRef::as_ref);
    // The file that the SDK reads if no variable names another. In Lambda there is none.
    let home = std::env::var_os("HOME").unwrap_or_default();
    let has_file = std::path::Path::new(&home).join(".aws/config").exists();
    let is_amazon = config.endpoint_url().is_none() && !has_file;
    match is_amazon && amazon::answers(region, is_set) {
        true => amazon::roots().unwrap_or_else(of_system),
        false => of_system(),
    }
}

#[cfg(feature = "amazon-roots")]
mod amazon {
    use aws_smithy_http_client::tls::{TlsContext, TrustStore};

    /// The roots of Amazon Trust Services, from <https://www.amazontrust.com/repository/>.
    const PEM: &str = include_str!("amazon_roots.pem");

    /// Variables that name other root certificates, another endpoint, or a file that may name one, and proxies, which may
    /// answer with a certificate of their own.
    const OTHERS: [&str; 13] = [
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "AWS_CA_BUNDLE",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_DYNAMODB",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_PROFILE",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "HTTP_PROXY",
    ];

    /// Whether DynamoDB in this region answers with a certificate that Amazon has signed, as far as anyone has said.
    pub(super) fn answers(region: &str, is_set: impl Fn(&str) -> bool) -> bool {
        // The partitions for China, for isolated networks and for the European Sovereign Cloud may have other
        // authorities.
        let is_apart = ["cn-", "eusc-"].iter().any(|start| region.starts_with(start))
            || region.contains("-iso");
        !is_apart && !OTHERS.iter().any(|name| is_set(name))
    }

    pub(super) fn roots() -> Option<TlsContext> {
        let roots = TrustStore::empty().with_pem_certificate(PEM.as_bytes());
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
            let certificates = PEM.split("-----BEGIN CERTIFICATE-----").skip(1).map(|rest| {
                let text = rest.split("-----END CERTIFICATE-----").next().unwrap();
                let der = STANDARD.decode(text.split_whitespace().collect::<String>()).unwrap();
                Sha256::digest(&der).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
            });
            assert_eq!(certificates.collect::<Vec<_>>(), FINGERPRINTS);
            assert!(roots().is_some());
        }

        #[test]
        fn another_server_is_trusted_as_the_system_says() {
            assert!(answers("eu-west-1", |_| false));
            assert!(answers("us-gov-west-1", |_| false));
            let apart = [
                "cn-north-1",
                "us-iso-east-1",
                "us-isob-east-1",
                "eu-isoe-west-1",
                "eusc-de-east-1",
            ];
            for region in apart {
                assert!(!answers(region, |_| false), "{region}");
            }
            for name in OTHERS {
                assert!(!answers("eu-west-1", |set| set == name), "{name}");
            }
        }
    }
}
