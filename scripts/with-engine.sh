#!/usr/bin/env bash
# Runs a command with a container engine that kind can use: the one that answers, else Podman, set up for this machine.
#
#   scripts/with-engine.sh go test -tags e2e ./cmd/fleetctl/e2e/...
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if [[ -z ${KIND_EXPERIMENTAL_PROVIDER:-} ]]; then
  if timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; then
    export KIND_EXPERIMENTAL_PROVIDER=docker
  else
    export KIND_EXPERIMENTAL_PROVIDER=podman
  fi
fi
if [[ $KIND_EXPERIMENTAL_PROVIDER == podman ]]; then
  # Also where Podman answers already: kind and the docker provider need more of it. The script does what is missing.
  "$root/scripts/offline/setup-engine.sh"
fi
exec "$@"
