# shellcheck shell=bash
# The steps that run the tests of the workspace. tests/run reads this file.

# Compiles the tests, and the programs that they start. The examples of which no test runs are not linked: Clippy
# has checked them.
step_build() {
    cargo test --workspace --locked --tests --no-run
}

# Twice as many tests at once as there are processors: those of whole functions mostly wait, for leases to end for
# example, and would leave the processors idle for a minute.
step_tests() {
    local -x RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(getconf _NPROCESSORS_ONLN)))}
    cargo test --workspace --locked --tests
    cargo test --workspace --locked --doc
}

# The tests that a change to keys, engine or sources breaks first. They use the features of the whole
# workspace, so that `tests` can use the same compiled files.
step_units() {
    cargo test --workspace --locked --lib --test keys --test engine --test behaviour --test http
}

# Features of serde_json change how it reads numbers and objects, and a user's other crates can turn
# them on. Keys must not depend on them. Objects and numbers are two types of it, and `arbitrary_precision` replaces
# what `float_roundtrip` changes, so that two builds have all. The tests that read megabytes do it in the step `tests`.
step_numbers() {
    local numbers
    for numbers in float_roundtrip arbitrary_precision; do
        cargo test --quiet --locked -p lambda-idempotency-keys --lib --test keys \
            --features "serde_json/preserve_order,serde_json/$numbers" \
            -- --skip bounds::megabytes --skip bounds::beyond_eight_mebibytes --skip bounds::decompressed_texts \
            --skip powertools::hostile
    done
}

# Follows README and guide in a fresh clone, word for word: their commands, and the crate that they make.
step_readme() {
    after build
    python_tools lint-venv tests/lint-requirements.txt # the SAM CLI
    python3 tests/readme
}
