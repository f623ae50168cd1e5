#!/usr/bin/env bash
# scripts/refresh-models.py on small price lists made by the tests, without a network.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONDONTWRITEBYTECODE=1
exec python3 -m unittest discover --start-directory tests/models --verbose
