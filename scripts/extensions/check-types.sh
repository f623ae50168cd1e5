#!/usr/bin/env bash
# Checks the skeleton that `hardpan extensions new` writes, and examples/extensions, with the real TypeScript compiler.
# It is installed from npm into target/typescript, at a fixed version.
# Usage: scripts/extensions/check-types.sh [path to hardpan]
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
hardpan=$(realpath "${1:-$root/target/debug/hardpan}")
compiler=$root/target/typescript
version=5.9.3
if [ "$("$compiler/node_modules/.bin/tsc" --version 2>/dev/null || true)" != "Version $version" ]; then
  mkdir -p "$compiler"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$compiler" "typescript@$version"
fi
tsc() { "$compiler/node_modules/.bin/tsc" "$@"; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$hardpan" extensions new checked
tsc --project checked
echo "the types of the skeleton fit"
# The examples, below the same declarations and as strict as the skeleton.
"$hardpan" extensions new examples > /dev/null
rm examples/index.ts
cp "$root"/examples/extensions/*.ts examples/
tsc --project examples
echo "the types of the examples fit"
# A wrong reply must be an error, or the types say nothing.
sed -i 's/block: true/block: "yes"/' checked/index.ts
if tsc --project checked > errors.txt; then
  echo "a wrong reply was not noticed" >&2
  exit 1
fi
grep -q "not assignable" errors.txt
echo "a wrong reply is noticed"
