#!/usr/bin/env bash
# Sessions over `hardpan acp`, driven by the protocol's own SDKs from npm and PyPI. HARDPAN_BIN names the binary; without it a debug
# build is made.
set -euo pipefail
cd "$(dirname "$0")/../.."

modules=target/acp-client
wanted="@agentclientprotocol/sdk@2.4.0"
# The stamp is written last, so that a broken-off installation is made anew.
if [ "$(cat "$modules/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$modules"
  mkdir -p "$modules"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$modules" "$wanted"
  echo "$wanted" > "$modules/installed"
fi
venv=target/acp-venv
wanted="agent-client-protocol==0.12.1"
if [ "$(cat "$venv/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$wanted"
  echo "$wanted" > "$venv/installed"
fi
if [ -z "${HARDPAN_BIN:-}" ]; then
  cargo build --quiet --package hardpan-cli
  HARDPAN_BIN=target/debug/hardpan
fi
HARDPAN_BIN=$(realpath "$HARDPAN_BIN")
MCP_SERVER=$(realpath crates/cli/tests/tools/hostile_mcp_server.py)
PROMPT_SERVER=$(realpath crates/cli/tests/tools/asking_mcp_server.py)
export HARDPAN_BIN MCP_SERVER PROMPT_SERVER PYTHONDONTWRITEBYTECODE=1
timeout 300 "$venv/bin/python" -W ignore -m unittest discover --start-directory tests/acp --verbose
# A module is found beside the program that imports it.
cp tests/acp/client.mjs "$modules/client.mjs"
exec timeout 300 node --test --test-reporter=spec "$modules/client.mjs"
