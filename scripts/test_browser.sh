#!/usr/bin/env bash
# A Chromium for the tests of pages: the one of this machine, or Debian's, which root installs. Playwright, which drives it, comes
# by test_packages.sh.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
echo "test_browser.sh: installing Debian's Chromium" >&2
become=()
[ "$(id -u)" -eq 0 ] || become=(sudo -n)
install() { "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --no-install-recommends --yes chromium >/dev/null; }
install || { "${become[@]}" apt-get update --quiet=2 && install; } ||
  { echo "test_browser.sh: install a Chromium: the tests of pages need one" >&2; exit 1; }
