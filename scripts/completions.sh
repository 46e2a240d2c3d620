#!/usr/bin/env bash
# Writes the shell completions that the release archives carry to _output/completions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=_output/completions
rm -rf "$out"
mkdir -p "$out"
fleetctl=$(mktemp)
trap 'rm -f "$fleetctl"' EXIT
# Build for this machine and not for the release's target.
GOOS='' GOARCH='' go build -buildvcs=false -o "$fleetctl" ./cmd/fleetctl
for shell in bash zsh fish powershell; do
  "$fleetctl" completion "$shell" >"$out/fleetctl.$shell"
done
