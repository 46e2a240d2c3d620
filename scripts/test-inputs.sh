#!/usr/bin/env bash
# Prints what decides whether tests pass that run programs: their packages and those of the program, as compiled, without the version that
# a build writes into fleetctl; the files of this clone that the tests run and read; the programs and bundles that were built for them; and
# this machine's system. $1 are the build tags. Packages follow, and then folders of bundles.
#
#   scripts/test-inputs.sh e2e ./cmd/fleetctl ./cmd/fleetctl/e2e ~/.cache/fleetctl/offline/bundle | sha256sum
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tags=$1
shift
packages=() bundles=()
for argument in "$@"; do
  case $argument in
    ./*) packages+=("$argument") ;;
    *) bundles+=("$argument") ;;
  esac
done
programs=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}/offline/programs

go version
uname -srm
podman --version 2>/dev/null || docker --version 2>/dev/null || echo "no container engine"
CGO_ENABLED=0 go list -export -deps -test -tags "$tags" -trimpath -buildvcs=false -f '{{.ImportPath}} {{.BuildID}}' "${packages[@]}"
git ls-files -z --cached --others --exclude-standard -- .ci Makefile examples scripts tools '*/testdata/*' |
  while read -r -d '' file; do [[ ! -f $file ]] || sha256sum "$file"; done
for program in "$programs"/*; do
  echo "${program##*/} $(readlink "$program")" # the folder that it leads to is named by what the program was built from
done
for bundle in "${bundles[@]}"; do
  sha256sum "$bundle/index.json" | cut -d ' ' -f 1
  (cd "$bundle" && find . -type f -printf '%P %s\n' | sort) # each blob is named by its content
done
