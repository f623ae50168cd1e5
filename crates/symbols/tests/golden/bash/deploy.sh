#!/usr/bin/env bash
set -euo pipefail

source "$(dirname "$0")/lib/log.sh"
. ./lib/retry.sh

readonly TARGET="${1:-staging}"
export RELEASE_DIR=/srv/releases KEEP=3
TIMEOUT=30
current=0

function usage {
  cat <<EOF
usage() { not a function; }
EOF
}

deploy::upload() {
  local file=$1
  retry 3 scp "$file" "$TARGET:$RELEASE_DIR" || log_error "upload of $file"
}

function rollback-now () (
  inner() { :; }
  cd "$RELEASE_DIR" && inner
)

if [[ $TARGET == prod ]]; then
  confirm() { read -r -p "Sure? " answer; [[ $answer == y ]]; }
fi

main() {
  deploy::upload "$@" | while read -r line; do log_info "$line"; done
  rollback-now
}

main "$@"
