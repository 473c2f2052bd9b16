#!/usr/bin/env bash
# Puts libtorch 2.11.0 under target/libtorch, where the feature `torch` looks for it
# (.cargo/config.toml). A Python that has this PyTorch lends its own, GPU libraries included;
# otherwise the parts that the CPU needs are taken out of PyTorch's wheel: 530 MB are downloaded,
# 490 MB stay.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.11.0
root=target/libtorch

if [ "$(cat "$root/build-version" 2>/dev/null)" = "$version" ] && [ -e "$root/lib/libtorch_cpu.so" ]; then
  exit 0
fi
python=$(command -v python3 || command -v python) ||
  { echo "libtorch.sh needs a Python 3 with pip: install python3 and python3-pip" >&2; exit 1; }

rm -rf "$root" "$root.part"
mkdir -p "$root.part/lib"

installed=$("$python" -c 'import os, torch; print(torch.__version__.split("+")[0], os.path.dirname(torch.__file__))' 2>/dev/null || true)
if [ "${installed%% *}" = "$version" ]; then
  rmdir "$root.part/lib"
  ln -s "${installed#* }/include" "${installed#* }/lib" "$root.part/"
else
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  echo "libtorch.sh: downloading PyTorch $version (530 MB)" >&2
  # The platform and the Python are named, so that any Python's pip fetches the same wheel.
  fetch() {
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
      --platform manylinux2014_x86_64 --dest "$wheels" "$@"
  }
  fetch "torch==$version" 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*' ||
    { echo "libtorch.sh: pip could not fetch PyTorch $version: see its message above" >&2; exit 1; }
  "$python" - "$wheels" "$root.part" <<'PYTHON'
import pathlib, shutil, sys, zipfile

wheels, root = map(pathlib.Path, sys.argv[1:])
# What libtorch_cpu.so of PyTorch's default wheel is linked with; the CUDA libraries proper
# (2 GB) are not needed.
wanted = {
    "torch": ["libtorch_cpu.so", "libc10.so", "libgomp.so.1"],
    "nvidia_cuda_runtime": ["libcudart.so.13"],
    "nvidia_cuda_cupti": ["libcupti.so.13"],
}
for package, libraries in wanted.items():
    (wheel,) = wheels.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        missing = set(libraries)
        for entry in archive.infolist():
            path = pathlib.PurePosixPath(entry.filename)
            if entry.is_dir():
                continue
            if path.name in missing:
                target = root / "lib" / path.name
                missing.remove(path.name)
            elif package == "torch" and path.parts[:2] == ("torch", "include"):
                target = root.joinpath(*path.parts[1:])
            else:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy)
        if missing:
            sys.exit(f"libtorch.sh: {wheel.name} holds no {', '.join(sorted(missing))}")
# The wheel's libtorch.so wants the CUDA libraries; all of its code is in libtorch_cpu.so.
(root / "lib" / "libtorch.so").write_text("INPUT(-ltorch_cpu)\n")
PYTHON
fi
# Read by torch-sys, which takes no other version than its own.
echo "$version" >"$root.part/build-version"
mv "$root.part" "$root"
