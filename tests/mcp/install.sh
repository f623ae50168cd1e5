#!/usr/bin/env bash
# Installs the MCP servers that the tests talk to, in the versions below, into the folder given.
set -euo pipefail
folder=${1:?usage: install.sh FOLDER}
marker="$folder/installed-2"
[ -e "$marker" ] && exit 0
mkdir -p "$folder"
# Tests of several programs may want them at the same time.
exec 9> "$folder/lock"
flock 9
[ -e "$marker" ] && exit 0
npm install --silent --no-audit --no-fund --prefix "$folder" \
  @modelcontextprotocol/server-everything@2026.8.31 \
  @modelcontextprotocol/server-filesystem@2026.8.31 \
  @modelcontextprotocol/server-memory@2026.8.31
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet mcp-server-time==2026.10.19 fastmcp==4.1.2
touch "$marker"
