#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after the other (go test fuzzes one target at a time).
#
#   scripts/fuzz.sh 20s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

duration=${1:-20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz PACKAGE NAME fuzzes one target. At the end of its time, Go's coordinator now and then takes its own deadline for a
# failure (a parent context ends an instant before its child, and the comparison of the two falls between). What it then
# prints is "context deadline exceeded" and nothing else, where a finding names its input: that run alone is made again.
fuzz() {
  local package=$1 name=$2 code attempt
  for attempt in 1 2 3; do
    code=0
    # Making an input that is only interesting smaller may take the whole time, by default: a minute for each.
    go test -run='^$' -fuzz="^$name\$" -fuzztime="$duration" -fuzzminimizetime=20x "./$package" 2>&1 | tee "$log" || code=$?
    if [[ $code -eq 0 ]]; then
      return 0
    fi
    if [[ $(sed -n '/^--- FAIL:/,/^FAIL$/p' "$log" | sed '1d;$d') != '    context deadline exceeded' ]]; then
      return "$code"
    fi
    echo "fuzz: $name found nothing, its time just ended (attempt $attempt of 3)" >&2
  done
  return "$code"
}

# "pkg/bundle FuzzOpen" for every target; no target at all is a mistake of this script, not a success.
mapfile -t targets < <(git grep -E --untracked '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' |
  sed -E 's|^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|' | sort -u)
if [[ ${#targets[@]} -eq 0 ]]; then
  echo "fuzz: found no fuzz target" >&2
  exit 1
fi

for target in "${targets[@]}"; do
  read -r package name <<<"$target"
  echo "fuzz: $name in $package for $duration"
  fuzz "$package" "$name"
done
