//! Prints the public items of a crate, from what rustdoc writes about it as JSON. `bash tests/run api`
//! calls it.

use std::error::Error;

use public_api::{Builder, PublicItem};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: api FILE.json")?;
    let api = Builder::from_rustdoc_json(path).omit_blanket_impls(true).build()?;
    for item in api.items().map(PublicItem::to_string).filter(|item| says_something(item)) {
        println!("{item}");
    }
    Ok(())
}

/// Almost every type is `Send`, `Sync` and `Unpin`, which the compiler finds out by itself. Only a type that is
/// not gets a line, so that losing one of them shows. Users do not rely on the other traits of this kind.
fn says_something(item: &str) -> bool {
    const HAS: [&str; 3] =
        [" core::marker::Send ", " core::marker::Sync ", " core::marker::Unpin "];
    const NEVER: [&str; 4] = [
        "core::marker::Freeze",
        "core::marker::StructuralPartialEq",
        "core::marker::UnsafeUnpin",
        "core::panic::unwind_safe::",
    ];
    !(item.starts_with("impl") && HAS.iter().chain(&NEVER).any(|name| item.contains(name)))
}
