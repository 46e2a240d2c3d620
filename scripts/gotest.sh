#!/usr/bin/env bash
# go test in the folder $1, with the other arguments. Where FLEETCTL_TEST_TIMES names a folder, gotestsum runs it and keeps there how long each
# test took (see scripts/slowest-tests.sh); what it says is the same.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$1"
shift
if [[ -z ${FLEETCTL_TEST_TIMES:-} ]]; then
  exec "${GO:-go}" test "$@"
fi
format=standard-quiet
for argument in "$@"; do
  [[ $argument != -v ]] || format=standard-verbose
done
times=$(mktemp "$FLEETCTL_TEST_TIMES/XXXXXX.json")
exec "$("$scripts/tool.sh" --path gotestsum)" --format "$format" --hide-summary=skipped --jsonfile-timing-events "$times" -- "$@"
