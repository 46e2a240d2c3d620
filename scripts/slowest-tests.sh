#!/usr/bin/env bash
# Prints the ten slowest tests of scripts/gotest.sh, the slowest first: scripts/slowest-tests.sh FOLDER
set -euo pipefail
all=$(mktemp)
trap 'rm -f "$all"' EXIT
find "$1" -name '*.json' -exec cat {} + >"$all"
"$(dirname "${BASH_SOURCE[0]}")/tool.sh" gotestsum tool slowest --num 10 --jsonfile "$all"
