#!/usr/bin/env bash
# Runs a command in a process namespace. Every process that the command starts ends with it, also a daemon that has left its session, and
# also when a signal ends this script, SIGKILL included. Needs root.
#
#   scripts/own-processes.sh make test-integration
set -euo pipefail

if [[ ${1:-} == --inside ]]; then
  shift
  # This shell is the first process of the namespace: the kernel ends all others with it. As such it also gets the processes that daemons
  # leave, and waits for them, which the command would not do in its place.
  trap 'exit 130' INT
  trap 'exit 143' TERM
  "$@" <&0 &
  wait $! # unlike a command in the foreground, wait lets a signal through at once
  exit
fi

[[ $# -gt 0 ]] || { echo "usage: scripts/own-processes.sh COMMAND [ARGUMENT...]" >&2 && exit 2; }
[[ $(id -u) -eq 0 ]] || { echo "own-processes.sh: needs root, to make a process namespace" >&2 && exit 1; }
namespace=''
finish() {
  if [[ -n $namespace ]] && kill -KILL "$namespace" 2>/dev/null; then
    wait "$namespace" 2>/dev/null || : # bash would say there that it was killed
  fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
setpriv --pdeathsig KILL unshare --pid --mount-proc --fork --kill-child "${BASH_SOURCE[0]}" --inside "$@" <&0 &
namespace=$!
wait "$namespace"
