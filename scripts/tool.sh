#!/usr/bin/env bash
# Runs a developer tool that is pinned under tools/. It builds the tool first if the cache lacks this version.
#
#   scripts/tool.sh golangci-lint run ./...
#   scripts/tool.sh --path goreleaser        # build if missing, print where the program is
#
# The cache's key is made of the module's go.mod and go.sum and the version of Go. A changed pin therefore builds a new program, and
# switching back to the old pin builds nothing.
set -euo pipefail

usage() {
  echo "usage: scripts/tool.sh [--path] NAME [ARGUMENT...]" >&2
  echo "tools: $(module_of_each | cut -d' ' -f1 | sort | paste -sd' ')" >&2
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}/tools

# Build a tool for this machine, even if the caller cross-compiles.
export GOOS='' GOARCH='' GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0

# module_of_each prints "NAME PACKAGE MODULE-FOLDER" for every pinned tool. The name is the package's last element,
# or the one before it when that is a major version (…/goreleaser/v2 is goreleaser).
module_of_each() {
  local mod package
  for mod in "$root"/tools/go.mod "$root"/tools/*/go.mod; do
    awk '$1 == "tool" && $2 != "(" { print $2 } $1 == "tool" && $2 == "(" { inside = 1; next }
         $1 == ")" { inside = 0 } inside { print $1 }' "$mod" | while read -r package; do
      echo "$(basename "$(sed -E 's|/v[0-9]+$||' <<<"$package")") $package $(dirname "$mod")"
    done
  done
}

print_path=false
if [[ ${1:-} == --path ]]; then
  print_path=true
  shift
fi
name=${1:-}
[[ -n $name ]] || usage
shift

read -r package folder < <(module_of_each | awk -v name="$name" '$1 == name { print $2, $3 }') || usage

key=$({ cat "$folder/go.mod" "$folder/go.sum"; go env GOVERSION; } | sha256sum | cut -c1-16)
program=$cache/$key/$name
if [[ ! -x $program ]]; then
  echo "tool.sh: building $name (once for this version)" >&2
  mkdir -p "$cache/$key"
  partial=$(mktemp "$cache/$key/.$name.XXXXXX")
  trap 'rm -f "$partial"' EXIT
  go build -C "$folder" -trimpath -ldflags='-s -w' -o "$partial" "$package"
  chmod 0755 "$partial"
  mv "$partial" "$program" # atomic: two builds at once both end with a whole program
fi

if $print_path; then
  echo "$program"
else
  exec "$program" "$@"
fi
