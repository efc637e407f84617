//! MiniStack with the three services, and how clients find it.

#[path = "../../../../../crates/dynamodb/tests/elsewhere/ministack.rs"]
mod process;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::Credentials;

pub(crate) use process::MiniStack;

pub(crate) fn start() -> MiniStack {
    MiniStack::start("sqs,sns,events")
}

pub(crate) async fn config(ministack: &MiniStack) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::v2026_01_12())
        .endpoint_url(ministack.url())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .load()
        .await
}
