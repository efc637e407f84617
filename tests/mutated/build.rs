//! Copies the sources of the engine's machine, with the questions of `rules.patch` in them.

use std::{env, error::Error, fs, path::Path};

const MACHINE: &str = "../../crates/engine/src/machine";

fn main() -> Result<(), Box<dyn Error>> {
    let patch = fs::read_to_string("rules.patch")?;
    let machine = Path::new(&env::var("OUT_DIR")?).join("machine");
    println!("cargo::rerun-if-changed=rules.patch");
    println!("cargo::rerun-if-changed={MACHINE}");
    copy(Path::new(MACHINE), &machine)?;
    for file in patch.split("\n--- ").skip(1) {
        let (names, hunks) =
            file.split_once("\n@@").ok_or("rules.patch: a file without changes")?;
        let name = names.split_once("+++ ").and_then(|(_, name)| name.split_whitespace().next());
        let path = machine.join(name.ok_or("rules.patch: a file without a name")?);
        let mut source = fs::read_to_string(&path)?;
        for hunk in hunks.split("\n@@") {
            let lines = || hunk.lines().skip(1).filter(|line| !line.starts_with('\\'));
            let without = |sign: char| -> String {
                let kept = lines().filter(|line| !line.starts_with(sign));
                kept.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
            };
            let (before, after) = (without('+'), without('-'));
            let found = source.matches(&before).count();
            if found != 1 {
                let said = "rules.patch has to follow a change of the machine";
                return Err(format!("{said}: {path:?} has this {found} times:\n{before}").into());
            }
            source = source.replacen(&before, &after, 1);
        }
        fs::write(&path, source)?;
    }
    let module = format!("#[path = {:?}]\npub mod machine;\n", machine.join("mod.rs"));
    fs::write(machine.with_extension("rs"), module)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            fs::write(to, fs::read(&path)?)?;
        }
    }
    Ok(())
}
