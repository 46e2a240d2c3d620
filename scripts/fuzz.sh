#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after the other (go test fuzzes one target at a time).
#
#   scripts/fuzz.sh 20s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

duration=${1:-20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz PACKAGE NAME fuzzes one target. Now and then Go's coordinator reports its own deadline as a failure, because a parent context ends an
# instant before its child. It then prints only "context deadline exceeded", while a real finding names its input. Such a run is repeated.
fuzz() {
  local package=$1 name=$2 code attempt
  for attempt in 1 2 3; do
    code=0
    # By default, Go minimises each interesting input for up to a minute, which may take the whole time.
    go test -run='^$' -fuzz="^$name\$" -fuzztime="$duration" -fuzzminimizetime=20x "./$package" 2>&1 | tee "$log" || code=$?
    if [[ $code -eq 0 ]]; then
      return 0
    fi
    if [[ $(sed -n '/^--- FAIL:/,/^FAIL$/p' "$log" | sed '1d;$d') != '    context deadline exceeded' ]]; then
      return "$code"
    fi
    echo "fuzz: $name found nothing; only its time ended (attempt $attempt of 3)" >&2
  done
  return "$code"
}

# Lines such as "pkg/bundle FuzzOpen", one for every target. Finding no target is an error of this script.
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
