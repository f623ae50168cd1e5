#!/usr/bin/env bash
# Checks the skeleton that `hardpan extensions new` writes with the real TypeScript compiler, from npm.
# Usage: scripts/extensions/check-types.sh [path to hardpan]
set -euo pipefail
hardpan=$(realpath "${1:-target/debug/hardpan}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$hardpan" extensions new checked
npx --yes --package typescript@5 -- tsc --project checked
echo "the types of the skeleton fit"
# A wrong reply must be an error, or the types say nothing.
sed -i 's/block: true/block: "yes"/' checked/index.ts
if npx --yes --package typescript@5 -- tsc --project checked > errors.txt; then
  echo "a wrong reply was not noticed" >&2
  exit 1
fi
grep -q "not assignable" errors.txt
echo "a wrong reply is noticed"
