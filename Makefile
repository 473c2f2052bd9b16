# `make test` is the whole truth; the others are its parts and helpers.

.PHONY: test lint doc unit same-bytes test-torch test-cuda bless bench

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

# The same tests of model, engine and trainer on a GPU, where libtorch finds one.
test-cuda:
	scripts/libtorch.sh
	scripts/test_cuda.sh

# Rewrites what tests compare with: generated pages, golden digests, the README's outputs.
# Read the difference before you commit it.
bless:
	HEADWAY_BLESS=1 cargo test --workspace --locked

bench:
	cargo bench --workspace --locked
