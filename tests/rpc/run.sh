#!/usr/bin/env bash
# A session driven by a Python program over `hardpan rpc`. HARDPAN_BIN names the binary; without it a debug build is made.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${HARDPAN_BIN:-}" ]; then
  cargo build --quiet --package hardpan-cli
  HARDPAN_BIN=target/debug/hardpan
fi
HARDPAN_BIN=$(realpath "$HARDPAN_BIN")
export HARDPAN_BIN PYTHONDONTWRITEBYTECODE=1
exec python3 -m unittest discover --start-directory tests/rpc --verbose
