#!/usr/bin/env bash
# Runs each fuzz target for a number of inputs, then stops. `fuzz/run.sh 200000`
set -euo pipefail
cd "$(dirname "$0")"
runs=${1:-20000}
mkdir -p artifacts

# cargo-fuzz only adds flags; with these the targets build without it. Only what is under test counts coverage.
export RUSTC_WRAPPER="$PWD/instrument.sh" RUSTFLAGS="--cfg fuzzing"
cargo build --quiet --release --bins --target-dir ../target/fuzz --target "$(rustc -vV | sed -n 's/^host: //p')"
for target in sse anthropic openai gemini session config skill gitignore approval; do
  corpus=$(mktemp -d)
  echo "fuzz $target: $runs inputs"
  log="$corpus.log"
  if ! ../target/fuzz/*/release/"$target" -runs="$runs" -max_len=4096 -dict=json.dict -artifact_prefix=artifacts/ \
      "$corpus" seeds/"$target" >"$log" 2>&1; then
    cat "$log"
    exit 1
  fi
  grep '^Done' "$log"
  rm -rf "$corpus" "$log"
done
