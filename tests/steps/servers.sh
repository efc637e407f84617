# shellcheck shell=bash
# The steps that run tests with servers and libraries of other people. tests/run reads this file.

# Tests the store on a second DynamoDB, which other people wrote than the embedded one. Weekly: it is the conformance suite
# in three more ways.
step_ministack() {
    python_tools ministack-venv tests/ministack-requirements.txt
    # With the features of the whole workspace, so that nothing is compiled again.
    some_tests cargo test --quiet --locked --workspace --test elsewhere ministack_conforms
}

# Lets the real Powertools for Python and for TypeScript share a table with this library. Node comes from PyPI, because
# not every machine has it.
step_powertools() {
    python_tools powertools-venv tests/powertools-requirements.txt
    local node=target/powertools-node bin=$PWD/target/powertools-venv/bin
    if ! cmp -s tests/powertools/package-lock.json "$node/installed"; then
        rm -rf "$node"
        mkdir -p "$node"
        cp tests/powertools/package{,-lock}.json "$node"
        PATH="$bin:$PATH" npm --prefix "$node" ci --silent --no-audit --no-fund --ignore-scripts
        cp tests/powertools/package-lock.json "$node/installed"
    fi
    grep -h '"version"' "$node"/node_modules/@aws-lambda-powertools/*/package.json | sort | uniq -c
    build_command_line
    some_tests cargo test --quiet --locked --workspace --test with_powertools --features "$ALL"
}

# With one set of features for all who call it: each build replaces the program. `cargo test` calls the one without.
ALL=lambda-idempotency-cli/all,lambda-idempotency-tests/servers
build_command_line() {
    after test
    # With tests, because their dependencies turn on features: alone, it would compile the SDK again.
    cargo build --quiet --locked --workspace --features "$ALL" --bin lambda-idempotency --test with_powertools
}

# Tests the store in PostgreSQL, and through PgBouncer, with servers that the tests start.
step_postgres() {
    if [[ ! -d /usr/lib/postgresql ]] && ! command -v initdb >/dev/null || ! PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null; then
        if ! debian_packages postgresql pgbouncer openssl; then
            echo "There is no PostgreSQL or no PgBouncer. Install the packages postgresql and pgbouncer of Debian or" >&2
            echo "Ubuntu, or put initdb, postgres and pgbouncer into the path." >&2
            return 1
        fi
    fi
    # With the features of the whole workspace, so that nothing is compiled again.
    after others
    some_tests cargo test --quiet --locked --workspace --test postgres
}

# Tests the store of Redis in servers that the tests start: Redis, and Valkey where there is a package of it.
step_redis() {
    local server package servers=()
    for server in redis-server valkey-server; do
        package=$server
        if ! command -v "$server" >/dev/null && command -v apt-get >/dev/null && ((EUID == 0)); then
            [[ -n $(apt-cache show --quiet=2 "$package" 2>/dev/null) ]] || apt-get update -qq
            if [[ -n $(apt-cache show --quiet=2 "$package" 2>/dev/null) ]]; then
                debian_packages "$package"
            fi
        fi
        if command -v "$server" >/dev/null; then
            servers+=("$server")
        fi
    done
    if ((${#servers[@]} == 0)); then
        echo "There is neither redis-server nor valkey-server. Install one of version 7 or later: the package" >&2
        echo "redis-server or valkey-server on Debian and Ubuntu, redis or valkey on Fedora, Arch and Homebrew." >&2
        return 1
    fi
    after others
    for server in "${servers[@]}"; do
        "$server" --version
        # With the features of the whole workspace, so that nothing is compiled again.
        IDEMPOTENCY_REDIS_SERVER=$server \
            some_tests cargo test --quiet --locked --workspace --test redis
    done
}

# Tests whole functions and the command line with each store, in servers that the tests start. The steps `postgres` and
# `redis` install them.
step_stores() {
    build_command_line
    some_tests cargo test --quiet --locked --workspace --test stores --test records --features "$ALL"
}
