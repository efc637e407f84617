# shellcheck shell=bash
# The step that changes the code, to see which tests notice. tests/run reads this file.

# Changes one expression or function at a time, and runs the tests that should notice.
# MUTANTS selects areas: `MUTANTS="admission keys" bash tests/run mutants`. Each takes from
# many minutes to hours, and leaves its lists in target/mutants.
step_mutants() {
    local area version="27.1.0"
    if [[ $(cargo mutants --version 2>/dev/null) != "cargo-mutants $version" ]]; then
        echo "This needs cargo-mutants: cargo install cargo-mutants --version $version --locked" >&2
        return 1
    fi
    for area in ${MUTANTS:-admission dynamodb engine keys}; do
        mkdir -p "target/mutants/$area"
        "mutants_$area"
    done
}

# Exit status 2 says that mutants were missed: CONTRIBUTING.md says which may be, and people compare.
mutants() { # AREA ARGUMENT...
    local area=$1 status=0
    shift
    CARGO_TARGET_DIR=$PWD/target/mutants/build cargo mutants --no-shuffle --output "target/mutants/$area" "$@" ||
        status=$?
    cat "target/mutants/$area/mutants.out/missed.txt"
    ((status == 0 || status == 2))
}

mutants_admission() {
    mutants admission --file 'crates/core/src/admission/**' -- --lib
}

# Not the conformance suite, which takes minutes for each mutant.
mutants_dynamodb() {
    mutants dynamodb --file 'crates/dynamodb/src/**' \
        -- --lib --test dynamodb -- --skip conformance
}

# Not the random scenarios, nor those of large batches: they take most of the time.
mutants_engine() {
    mutants engine --file 'crates/engine/src/driver.rs' \
        --file 'crates/engine/src/{machine,running}/**' \
        -- --lib --test engine -- --skip fuzz:: --skip large::
}

mutants_keys() {
    mutants keys --file 'crates/keys/src/{make_key,selection}.rs' -- --lib --test keys
}
