#!/usr/bin/env bash
# Installs the MCP servers that the tests talk to, in the versions below, into the folder given.
set -euo pipefail
folder=${1:?usage: install.sh FOLDER}
marker="$folder/installed-1"
[ -e "$marker" ] && exit 0
mkdir -p "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" \
  @modelcontextprotocol/server-everything@2026.8.31 \
  @modelcontextprotocol/server-filesystem@2026.8.31 \
  @modelcontextprotocol/server-memory@2026.8.31
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet mcp-server-time==2026.10.19
touch "$marker"
