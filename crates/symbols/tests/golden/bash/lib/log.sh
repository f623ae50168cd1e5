log_info() { echo "info: $*"; }
log_error() { echo "error: $*" >&2; }
