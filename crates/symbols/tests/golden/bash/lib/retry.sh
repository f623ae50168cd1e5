# Tries a command so many times.
retry() {
  local times=$1
  shift
  until "$@"; do ((times--)) || return 1; done
}
