#!/usr/bin/env bash
# What the map costs on a tree, as ratios to parsing the same files with tree-sitter alone, measured in the same run.
#
#   scripts/bench-map.sh FOLDER
#
# Where aider, repomix or code2prompt are on the PATH, their maps of the same tree are timed too.
set -euo pipefail
tree=$(realpath "${1:?usage: scripts/bench-map.sh FOLDER}")
cd "$(dirname "$0")/.."
cargo build --quiet --release --package hardpan-cli
cargo build --quiet --release --package hardpan-symbols --example parse
hardpan=$PWD/target/release/hardpan
parse=$PWD/target/release/examples/parse
export HARDPAN_CACHE_DIR; HARDPAN_CACHE_DIR=$(mktemp -d)
trap 'rm -rf "$HARDPAN_CACHE_DIR" "$log"' EXIT
log=$(mktemp)
cd "$tree"

# Seconds and peak kilobytes of a command.
measure() { /usr/bin/time -f '%e %M' -o "$log" "$@" >/dev/null 2>&1 || true; tail -n 1 "$log"; }
best() { # the best of three, by time
  for _ in 1 2 3; do measure "$@"; done | sort -n | head -n 1
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

files=$(mktemp)
(git ls-files 2>/dev/null || find . -type f -not -path '*/.git/*') > "$files"
read -r seconds bytes count < <(for _ in 1 2 3; do "$parse" < "$files"; done | sort -n | head -n 1)
echo "$(wc -l < "$files") files, $count of them code: $((bytes / 1000)) kB; parsing alone ${seconds} s"

cold=$(for _ in 1 2 3; do rm -rf "$HARDPAN_CACHE_DIR"; measure "$hardpan" map; done | sort -n | head -n 1)
read -r cold_s cold_kb <<< "$cold"
echo "cold: ratio $(ratio "$cold_s" "$seconds") (limit 2), ${cold_s} s, $((cold_kb / 1000)) MB = $(ratio "$((cold_kb * 1000))" "$bytes") of the text (limit 6)"
read -r warm_s _ <<< "$(best "$hardpan" map)"
echo "warm, nothing changed: ratio $(ratio "$warm_s" "$seconds") (limit 0.1), ${warm_s} s"
for tool in "aider --show-repo-map --no-git --yes-always --no-check-update --no-analytics" "repomix --compress --output /dev/null" "code2prompt . --output-file /dev/null"; do
  name=${tool%% *}
  command -v "$name" >/dev/null || { echo "$name: not installed"; continue; }
  # shellcheck disable=SC2086
  read -r other_s other_kb <<< "$(measure timeout 600 $tool)"
  echo "$name: ${other_s} s, $((other_kb / 1000)) MB: $(ratio "$other_s" "$cold_s") times our cold, $(ratio "$other_s" "$warm_s") times our warm"
done
rm -f "$files"
