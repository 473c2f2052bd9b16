# `make test` is the whole truth; the others are its parts and helpers.

.PHONY: test lint doc unit same-bytes test-torch live live-results bless bench

test: lint doc unit same-bytes

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Unit, integration and documentation tests.
unit:
	cargo test --workspace --locked

# Debug and release, one thread and two, twice: identical bytes.
same-bytes:
	scripts/same_bytes.sh

# The policy in libtorch: fetches the library where it is missing, then lints and tests what uses it.
test-torch:
	scripts/libtorch.sh
	cargo clippy -p headway-runtime -p headway --features torch --all-targets --locked -- -D warnings
	cargo test -p headway-runtime --features torch --lib --tests --locked

# A policy learns a task with a tool, live, in a few minutes: docs/live.md. It fetches what is missing.
live:
	scripts/live.sh

# The nine runs whose tables and plots are committed under results/live.
live-results:
	scripts/libtorch.sh
	cargo build --release --features torch --locked
	scripts/live_results.sh

# Rewrites what tests compare with: generated pages, golden digests, the README's outputs.
# Read the difference before you commit it.
bless:
	HEADWAY_BLESS=1 cargo test --workspace --locked

bench:
	cargo bench --workspace --locked
