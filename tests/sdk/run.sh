#!/usr/bin/env bash
# The official Python SDKs against the simulator. HARDPAN_BIN names the binary; without it a debug build is made.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=target/sdk-venv
wanted="anthropic==2.8.0 openai==3.49.0 google-genai==3.1.0"
# The stamp is written last, so that a broken-off installation is made anew.
if [ "$(cat "$venv/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  # shellcheck disable=SC2086
  "$venv/bin/pip" install --quiet --disable-pip-version-check $wanted
  echo "$wanted" > "$venv/installed"
fi
if [ -z "${HARDPAN_BIN:-}" ]; then
  cargo build --quiet --package hardpan-cli
  HARDPAN_BIN=target/debug/hardpan
fi
export HARDPAN_BIN PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m unittest discover --start-directory tests/sdk --verbose
