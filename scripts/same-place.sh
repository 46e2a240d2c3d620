#!/usr/bin/env bash
# Runs a command in a copy of this clone that is always at the same path, with times of modification that follow from the files' content.
# So Go's test cache serves all clones of this machine: it knows a file that a test opened by its path, size and time. Only the command and
# what it starts sees the copy, and all of that ends with it. Needs root, to mount the copy.
#
#   scripts/same-place.sh make test-integration
set -euo pipefail
place=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}/same-place

if [[ ${1:-} == --inside ]]; then
  mount --bind "$2" "$place"
  cd "$place"
  shift 2
  exec "$@"
fi

[[ $# -gt 0 ]] || { echo "usage: scripts/same-place.sh COMMAND [ARGUMENT...]" >&2 && exit 2; }
[[ $(id -u) -eq 0 ]] || { echo "same-place.sh: needs root, to mount the copy" >&2 && exit 1; }
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
copy=$(mktemp -d)
running=''
finish() {
  if [[ -n $running ]] && kill -TERM "$running" 2>/dev/null; then
    wait "$running" || :
  fi
  rm -rf "$copy"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
"$scripts/copy-clone.sh" "$copy/fleetctl"
mkdir -p "$place"
"$scripts/own-processes.sh" unshare --mount "${BASH_SOURCE[0]}" --inside "$copy/fleetctl" "$@" <&0 &
running=$! # unlike a command in the foreground, wait lets a signal through at once
wait "$running"
