#!/usr/bin/env python3
"""Runs the mutants that cargo-mutants lists, from one build: docs/mutants.md.

    python3 scripts/mutants.py [-- ARGUMENTS OF `cargo mutants --list`]

cargo-mutants builds once per mutant. Here each function with mutants becomes a `match` over
`HEADWAY_MUTANT` whose arms are the function's mutants and whose last arm is what stands in the
source, so that everything is built once, and a mutant costs no more than its tests: the one that
killed the last mutants of its file first, then the quick ones, then the slow ones. It needs nothing
but Python and cargo-mutants. Outcomes: target/mutants/outcomes.txt.
"""

import argparse
import collections
import json
import os
import pathlib
import resource
import selectors
import subprocess
import sys
import time

PACKAGE = "headway-shared"
SOURCES = "shared/src/"
LIB = "shared/src/lib.rs"
CHOICE = """
/// Which mutant is active: 0, none.
pub(crate) fn mutant() -> u32 {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| {
        std::env::var("HEADWAY_MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0)
    })
}
"""


def offset(starts, place):
    return starts[place["line"] - 1] + place["column"] - 1


def line_starts(text):
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def schema(text, mutants):
    """The source with every mutant in it, and the lines where each stands."""
    starts = line_starts(text)
    functions = collections.defaultdict(list)
    for mutant in mutants:
        span = mutant["function"]["span"]
        key = (offset(starts, span["start"]), offset(starts, span["end"]))
        functions[key].append(mutant)
    out, lines, at, line = [], {}, 0, 1

    def emit(piece):
        nonlocal line
        out.append(piece)
        line += piece.count("\n")

    for (begin, end), inside in sorted(functions.items()):
        whole = text[begin:end]
        opens, closes = whole.index("{"), len(whole) - 1
        assert whole[closes] == "}", whole
        head = whole[:opens].replace("const fn", "fn")
        returns = inside[0]["function"]["return_type"].removeprefix("->").strip()
        boxed = returns.startswith("impl Iterator")
        as_type = returns.replace("impl", "Box<dyn", 1) + " + '_>"
        emit(text[at:begin] + head + "{ match crate::mutant() {\n")
        body = whole[opens : closes + 1]
        arms = [(m, offset(starts, m["span"]["start"]) - begin - opens,
                 offset(starts, m["span"]["end"]) - begin - opens) for m in inside]
        for mutant, first, last in arms + [(None, 0, 0)]:
            was = line
            new = body
            if mutant:
                new = body[:first] + mutant["replacement"] + " /* mutated */ " + body[last:]
            new = f"Box::new({new}) as {as_type}" if boxed else new
            emit(f"{mutant['id'] if mutant else '_'} => {new},\n")
            if mutant:
                lines[mutant["id"]] = (was, line - 1)
        emit("} }")
        at = end
    emit(text[at:])
    return "".join(out), lines


class Tree:
    """A copy of the repository with every mutant in it."""

    def __init__(self, folder, mutants):
        self.folder, self.mutants = folder, mutants
        files = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE)
        for name in files.stdout.decode().split("\0"):
            if name and os.path.exists(name):
                self.write(name, pathlib.Path(name).read_bytes())

    def write(self, name, content):
        """Only what has changed, so that little is built again."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)

    def build(self, env):
        """Test binaries; mutants that the compiler refuses are dropped."""
        unviable = set()
        while True:
            where = {}
            by_file = collections.defaultdict(list)
            for mutant in self.mutants:
                if mutant["id"] not in unviable:
                    by_file[mutant["file"]].append(mutant)
            for name in {mutant["file"] for mutant in self.mutants}:
                text = pathlib.Path(name).read_text()
                text, where[name] = schema(text, by_file[name])
                self.write(name, text.encode())
            self.write(LIB, (pathlib.Path(LIB).read_text() + CHOICE).encode())
            command = ["cargo", "test", "-p", PACKAGE, "--lib", "--test", "all", "--no-run",
                       "--locked", "--message-format", "json"]
            built = subprocess.run(command, cwd=self.folder, env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
            messages = [json.loads(line) for line in built.stdout.splitlines()
                        if line.startswith("{")]
            if built.returncode == 0:
                return unviable, [m["executable"] for m in messages if m.get("executable")]
            refused = set()
            for message in messages:
                message = message.get("message", {})
                if not isinstance(message, dict) or message.get("level") != "error":
                    continue
                for span in message["spans"]:
                    for id, (first, last) in where.get(span["file_name"], {}).items():
                        if first <= span["line_start"] <= last:
                            refused.add(id)
            print(f"the compiler refuses {len(refused)} mutants", flush=True)
            if not refused:
                sys.exit(built.stderr + "".join(
                    m["message"]["rendered"] for m in messages
                    if isinstance(m.get("message"), dict) and m["message"].get("level") == "error"))
            unviable |= refused


class Judge:
    """The tests, quick ones first."""

    def __init__(self, binaries, folder, env, known):
        self.folder, self.env = folder, env
        # Which test killed the last mutants of each file: likely to kill the next one.
        self.killers = collections.defaultdict(list)
        tests = []
        for binary in sorted(binaries):
            listed = subprocess.run([binary, "--list", "--format", "terse"], check=True,
                                    stdout=subprocess.PIPE, text=True, cwd=folder)
            tests += [(binary, line.removesuffix(": test"))
                      for line in listed.stdout.splitlines() if line.endswith(": test")]
        times = json.loads(known.read_text()) if known.exists() else {}
        for test in tests:
            if test[1] not in times:
                began = time.monotonic()
                verdict, _ = self.run(0, [test], 600)
                if verdict != "missed":
                    sys.exit(f"{test[1]} fails without a mutant")
                times[test[1]] = time.monotonic() - began
        known.write_text(json.dumps(times))
        self.quick = [t for t in tests if times[t[1]] < 0.5]
        self.slow = sorted((t for t in tests if times[t[1]] >= 0.5), key=lambda t: times[t[1]])
        print(f"{len(self.quick)} quick tests, {len(self.slow)} slow ones of "
              f"{sum(times[t[1]] for t in self.slow):.0f} s", flush=True)
        began = time.monotonic()
        for batch in self.batches():
            self.run(0, batch, 900)
        # The longest batch takes a good part of it; a mutant that hangs is one that is found.
        self.limit = 20 + 3 * (time.monotonic() - began)

    def batches(self):
        by_binary = collections.defaultdict(list)
        for test in self.quick:
            by_binary[test[0]].append(test)
        yield from by_binary.values()
        for at in range(0, len(self.slow), 4):
            yield self.slow[at : at + 4]

    def judge(self, mutant):
        file = mutant["file"]
        recent = self.killers[file]
        for batch in [[test] for test in recent[:3]] + list(self.batches()):
            verdict, killer = self.run(mutant["id"], batch, self.limit)
            if verdict != "missed":
                if killer in recent:
                    recent.remove(killer)
                if killer:
                    recent.insert(0, killer)
                return verdict, killer[1] if killer else ""
        return "missed", ""

    def run(self, id, batch, limit):
        """All of a batch stand in one binary, or each is run by itself."""
        by_binary = collections.defaultdict(list)
        for binary, name in batch:
            by_binary[binary].append(name)
        for binary, names in by_binary.items():
            verdict, killer = self.run_binary(id, binary, names, limit)
            if verdict != "missed":
                return verdict, (binary, killer) if killer else None
        return "missed", None

    def run_binary(self, id, binary, names, limit):
        env = {**self.env, "HEADWAY_MUTANT": str(id), "RUST_BACKTRACE": "0"}
        process = subprocess.Popen(
            [binary, "--exact", *names], cwd=self.folder / "shared", env=env,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)))
        ends = time.monotonic() + limit
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0, ends - time.monotonic())):
                    process.kill()
                    process.wait()
                    return "timeout", names[0] if len(names) == 1 else None
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    line = line.decode(errors="replace")
                    if line.startswith("test ") and line.endswith("... FAILED"):
                        process.kill()
                        process.wait()
                        return "caught", line.removeprefix("test ").removesuffix(" ... FAILED")
        # A test that ends its process has failed too.
        return ("missed", None) if process.wait() == 0 else ("caught", None)


def listed(arguments):
    command = ["cargo", "mutants", "--list", "--json", "--package", PACKAGE, *arguments]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    mutants = json.loads(text)
    for id, mutant in enumerate(mutants, 1):
        mutant["id"] = id
    return mutants


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="target/mutants", type=pathlib.Path)
    parser.add_argument("rest", nargs="*", help="arguments of `cargo mutants --list`")
    options = parser.parse_args()
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    mutants = listed(options.rest)
    print(f"{len(mutants)} mutants", flush=True)
    # Its own: cargo would take the core with the mutants for the one of the working tree.
    env = {**os.environ, "CARGO_TARGET_DIR": str(out / "target")}
    tree = Tree(out / "tree", mutants)
    unviable, binaries = tree.build(env)
    print(f"built, {len(unviable)} unviable", flush=True)
    judge = Judge(binaries, tree.folder, env, out / "times.json")
    outcomes = (out / "outcomes.txt").open("w")
    counts = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        began = time.monotonic()
        verdict, killer = "unviable", ""
        if mutant["id"] not in unviable:
            verdict, killer = judge.judge(mutant)
        counts[mutant["file"]][verdict] += 1
        print(f"{verdict}\t{mutant['name']}\t{killer}\t{time.monotonic() - began:.1f}",
              file=outcomes, flush=True)
        if verdict == "missed":
            print(f"missed: {mutant['name']}", flush=True)
    for file, count in sorted(counts.items()):
        print(f"{file.removeprefix(SOURCES)}: {dict(count)}")
    sys.exit(any(count["missed"] for count in counts.values()))


if __name__ == "__main__":
    main()
