//! Copies the sources of the engine's machine and of the core's admission, with the questions of `rules.patch` in them.

use std::{collections::BTreeMap, env, error::Error, fs, path::Path};

const COPIED: [(&str, &str); 2] =
    [("machine", "../../crates/engine/src"), ("admission", "../../crates/core/src")];
/// What reads otherwise in the copies, which find here what is not copied.
const NAMES: [(&str, &str); 4] = [
    // Their tests stay where they are.
    ("#[cfg(test)]", "#[cfg(any())]"),
    ("use crate::{", "use crate::core::{"),
    ("use crate::store", "use crate::core::store"),
    ("use lambda_idempotency_core::", "use crate::core::"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=rules.patch");
    let mut sources = BTreeMap::new();
    for (module, root) in COPIED {
        println!("cargo::rerun-if-changed={root}/{module}");
        read(Path::new(root), module, &mut sources)?;
    }
    for file in fs::read_to_string("rules.patch")?.split("\n--- ").skip(1) {
        let (name, hunks) = file.split_once('\n').ok_or("rules.patch: a file without changes")?;
        let source = sources.get_mut(name).ok_or_else(|| format!("rules.patch: no file {name}"))?;
        for hunk in hunks.split("@@\n").skip(1) {
            let without = |sign: char| -> String {
                let kept = hunk.lines().filter(|line| !line.starts_with(sign));
                kept.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
            };
            let (before, after) = (without('+'), without('-'));
            let found = source.matches(&before).count();
            if found != 1 {
                let said = "rules.patch has to follow a change of the sources";
                return Err(format!("{said}: {name} has this {found} times:\n{before}").into());
            }
            *source = source.replacen(&before, &after, 1);
        }
    }
    let to = env::var("OUT_DIR")?;
    let to = Path::new(&to);
    let mut modules = String::new();
    for (module, _) in COPIED {
        // A file that was renamed since would be compiled beside its new name.
        let _ = fs::remove_dir_all(to.join(module));
        let path = to.join(module).join("mod.rs");
        modules += &format!("#[path = {path:?}]\npub mod {module};\n");
    }
    fs::write(to.join("copied.rs"), modules)?;
    for (name, mut source) in sources {
        for (name, here) in NAMES {
            source = source.replace(name, here);
        }
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap_or(to))?;
        fs::write(path, source.replace("keeps(\"", "crate::keeps(\""))?;
    }
    Ok(())
}

fn read(
    root: &Path,
    name: &str,
    sources: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(root.join(name))? {
        let entry = entry?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(root, &name, sources)?;
        } else {
            sources.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}
