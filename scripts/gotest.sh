#!/usr/bin/env bash
# Runs go test in the folder $1, with the other arguments. If FLEETCTL_TEST_TIMES names a folder, gotestsum runs it, with the same output,
# and writes the duration of each test to that folder (see scripts/slowest-tests.sh).
# The linker leaves out what only debuggers read, which is a third of its work, and each package has a program to link.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$1"
shift
if [[ -z ${FLEETCTL_TEST_TIMES:-} ]]; then
  exec "${GO:-go}" test -ldflags=-s "$@"
fi
format=standard-quiet
for argument in "$@"; do
  [[ $argument != -v ]] || format=standard-verbose
done
times=$(mktemp "$FLEETCTL_TEST_TIMES/XXXXXX.json")
exec "$("$scripts/tool.sh" --path gotestsum)" --format "$format" --hide-summary=skipped --jsonfile-timing-events "$times" -- -ldflags=-s "$@"
