#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after the other (go test fuzzes one target at a time).
#
#   scripts/fuzz.sh 20s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

duration=${1:-20s}

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
  # Making an input that is only interesting smaller may take the whole time, by default: a minute for each.
  go test -run='^$' -fuzz="^$name\$" -fuzztime="$duration" -fuzzminimizetime=20x "./$package"
done
