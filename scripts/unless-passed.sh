#!/usr/bin/env bash
# Runs a test command, unless it has passed on this machine within the last week with the same inputs; then it prints what was printed then.
# This is for end-to-end tests, which Go's test cache cannot serve: they run programs. $1 names the command, $2 is a hash of its inputs (see
# scripts/test-inputs.sh), among which is the file that has the command. FLEETCTL_TEST_ANEW=true runs the command in any case.
#
#   hash=$(scripts/test-inputs.sh e2e ./cmd/fleetctl ./cmd/fleetctl/e2e | sha256sum | cut -c1-32)
#   scripts/unless-passed.sh kind "$hash" make e2e-kind
set -euo pipefail
[[ $# -gt 2 ]] || { echo "usage: scripts/unless-passed.sh NAME HASH COMMAND [ARGUMENT...]" >&2 && exit 2; }
name=$1 hash=$2
shift 2
folder=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}/passed
passed=$folder/$name-$hash.log

if [[ ${FLEETCTL_TEST_ANEW:-} != true && -n $(find "$passed" -mtime -7 2>/dev/null) ]]; then
  echo "$name passed on $(date -ur "$passed" '+%F %R UTC') with the same program, tests and bundles. FLEETCTL_TEST_ANEW=true runs it again."
  echo "What it printed:"
  cat "$passed"
  exit
fi

mkdir -p "$folder"
find "$folder" -type f -mtime +7 -delete
partial=$(mktemp "$folder/.$name.XXXXXX")
running=''
finish() {
  if [[ -n $running ]] && kill -TERM "$running" 2>/dev/null; then
    wait "$running" || :
  fi
  rm -f "$partial"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
"$@" >"$partial" 2>&1 <&0 &
running=$!
# tail ends with the command. A pipe would end with the last daemon that the command leaves.
tail -n +1 -f --pid="$running" "$partial" &
code=0
wait "$running" || code=$?
running=''
wait # for tail
[[ $code -eq 0 ]] || exit "$code"
mv "$partial" "$passed"
