# shellcheck shell=bash
# The steps that run the tests of the workspace. tests/run reads this file.

# README's second command: what anyone can run who has a Rust toolchain and a C compiler.
step_test() {
    cargo test
}

# The tests of the other packages. With `--workspace`, because without it Cargo would choose other features and compile the
# AWS SDK once more; the unit tests that `test` has run take seconds.
step_others() {
    after compiler # which installs one; the other steps in the background that compile wait for this one
    cargo test --workspace --locked --lib --test model --test results --test testkit
}

# The tests that a change to keys, engine or sources breaks first. They use the features of the whole
# workspace, so that `test` can use the same compiled files.
step_units() {
    cargo test --workspace --locked --lib --test keys --test engine --test behaviour --test http
}

# The examples in the documentation of all crates. `test` runs those of the crates that it tests.
step_doctests() {
    cargo test --workspace --locked --doc
}

# Features of serde_json change how it reads numbers and objects, and a user's other crates can turn them on. Keys must not
# depend on them. Objects and numbers are two types of it, and `arbitrary_precision` replaces what `float_roundtrip`
# changes, so that two builds have all. The tests that read megabytes do it in the step `test`.
step_numbers() {
    local numbers
    for numbers in float_roundtrip arbitrary_precision; do
        cargo test --quiet --locked -p lambda-idempotency-keys --lib --test keys \
            --features "serde_json/preserve_order,serde_json/$numbers" \
            -- --skip bounds::megabytes --skip bounds::beyond_eight_mebibytes --skip bounds::decompressed_texts \
            --skip powertools::hostile
    done
}

# Follows README, quick start and the command line's README in a fresh clone, word for word.
step_readme() {
    python_tools lint-venv tests/lint-requirements.txt # the SAM CLI
    python3 tests/readme
}
