//! The tables of what each store can do: the same rows in each crate, and what the store says of itself.

use lambda_idempotency::{
    DynamoDbStore, PostgresStore, RedisStore,
    clock::Timestamp,
    store::{Guard, IdempotencyRecord, Key, Status, Store, StoreErrorKind, Verdict, Write},
};

use lambda_idempotency_core::browse::Browse;

use crate::read;

const CRATES: [&str; 3] = ["dynamodb", "postgres", "redis"];

/// The rows of the table, as name and value.
fn rows(krate: &str) -> Vec<(String, String)> {
    let page = read(&format!("crates/{krate}/src/lib.rs"));
    let (_, table) = page.split_once("//! # What it can do\n").expect("the table");
    let lines = table.lines().skip_while(|line| !line.starts_with("//! |---"));
    let lines = lines.skip(1).take_while(|line| line.starts_with("//! |"));
    let row = |line: &str| {
        let (name, value) = line.strip_prefix("//! | ")?.strip_suffix(" |")?.split_once(" | ")?;
        Some((name.to_owned(), value.to_owned()))
    };
    lines.map(|line| row(line).expect("two cells")).collect()
}

fn value<'r>(rows: &'r [(String, String)], start: &str) -> &'r str {
    let row = rows.iter().find(|(name, _)| name.starts_with(start));
    &row.unwrap_or_else(|| panic!("no row {start}")).1
}

fn is_yes(value: &str) -> bool {
    assert!(value.starts_with("yes") || value.starts_with("no"), "{value}");
    value.starts_with("yes")
}

/// `400 KB` as DynamoDB counts them, or `16 MiB`.
fn bytes(size: &str) -> usize {
    let (number, unit) = size.split_once(' ').expect("a unit");
    let unit = match unit {
        "KB" => 1024,
        "MiB" => 1024 * 1024,
        _ => panic!("{unit}"),
    };
    number.parse::<usize>().expect("a number") * unit
}

fn has_pages(_: &impl Browse) -> bool {
    true
}

/// Whether the store refuses a record with a result of this size, without asking its server: no time is left for that.
async fn is_too_large(store: &impl Store, size: usize) -> bool {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.result = Some("x".repeat(size).into());
    let write = Write::new(Key::from_text("op#1"), Guard::Absent, Some(record));
    match store.write(&[write], Timestamp::EPOCH).await.pop() {
        Some(Verdict::Unknown(error)) => error.kind() == StoreErrorKind::TooLarge,
        other => panic!("{other:?}"),
    }
}

async fn compare(krate: &str, store: &impl Store, can_list: bool) {
    let rows = rows(krate);
    let capabilities = store.capabilities();
    assert_eq!(is_yes(value(&rows, "[Effects]")), capabilities.effects.is_some(), "{krate}");
    assert_eq!(is_yes(value(&rows, "The server removes")), capabilities.native_expiry, "{krate}");
    assert_eq!(is_yes(value(&rows, "[Listing records]")), can_list, "{krate}");
    let largest = value(&rows, "The largest record");
    assert!(is_too_large(store, bytes(largest) + 1).await, "{krate}: {largest}");
    assert!(!is_too_large(store, bytes(largest) - 4096).await, "{krate}: {largest}");
    let guide = read("crates/lambda/src/guide/stores.md");
    let line = guide.lines().find(|line| line.starts_with("| the largest record |"));
    assert!(line.is_some_and(|line| line.contains(&format!(" {largest} "))), "{krate}: {line:?}");
}

#[tokio::test]
async fn a_store_s_table_has_the_rows_of_the_others_and_says_what_the_store_says() {
    let [all, others @ ..] =
        CRATES.map(|krate| rows(krate).into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert!(all.len() > 9 && others.iter().all(|names| *names == all), "{all:?}, {others:?}");
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::v2026_01_12())
        .region(aws_sdk_dynamodb::config::Region::new("eu-west-1"))
        .build();
    let dynamodb = DynamoDbStore::new(aws_sdk_dynamodb::Client::from_conf(config), "orders");
    compare("dynamodb", &dynamodb, has_pages(&dynamodb)).await;
    let postgres = PostgresStore::new("postgres://orders@db/orders?sslmode=disable").unwrap();
    compare("postgres", &postgres, has_pages(&postgres)).await;
    let redis = RedisStore::new("redis://cache").unwrap();
    compare("redis", &redis, has_pages(&redis)).await;
}

/// The stores have the settings of their builders, and the sections of their front pages, in the same order.
#[test]
fn what_stores_share_is_in_one_order() {
    let setting = |line: &str| {
        let (name, rest) = line.strip_prefix("    pub fn ")?.split_once(['(', '<'])?;
        (rest.contains("mut self") || rest.contains("F, L, E")).then(|| name.to_owned())
    };
    // Code has such lines as well.
    let section = |line: &str| {
        let title = line.strip_prefix("//! # ").filter(|title| !title.contains('('))?;
        title.starts_with(char::is_uppercase).then(|| title.to_owned())
    };
    type Name = fn(&str) -> Option<String>;
    for (file, name, least) in [("builder", setting as Name, 3), ("lib", section, 5)] {
        let all = CRATES.map(|krate| {
            let text = read(&format!("crates/{krate}/src/{file}.rs"));
            text.lines().filter_map(name).collect::<Vec<_>>()
        });
        for (these, those) in [(0, 1), (1, 2), (0, 2)].map(|(one, other)| (&all[one], &all[other]))
        {
            let shared: Vec<_> = these.iter().filter(|one| those.contains(one)).collect();
            assert!(shared.len() >= least, "{file}: {these:?}");
            assert!(
                shared
                    .iter()
                    .eq(&those.iter().filter(|one| these.contains(one)).collect::<Vec<_>>()),
                "{file}: {these:?}, {those:?}"
            );
        }
    }
}
