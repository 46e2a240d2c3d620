#!/usr/bin/env bash
# Runs goreleaser with the tools that this project pins. Arguments go to `goreleaser release`:
#
#   scripts/release.sh --snapshot --skip=sign     # try it: nothing is signed or published
#   scripts/release.sh                            # in CI, on a tag
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

goreleaser=$(scripts/tool.sh --path goreleaser)
syft=$(scripts/tool.sh --path syft)

PATH=$(dirname "$syft"):$PATH exec "$goreleaser" release --clean "$@"
