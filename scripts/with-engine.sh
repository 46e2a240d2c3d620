#!/usr/bin/env bash
# Runs a command with a container engine that kind can use: the engine that answers, or else Podman, which is set up first.
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
  # Even a Podman that answers needs this setup for kind and the docker provider. The script does only what is missing.
  "$root/scripts/offline/setup-engine.sh"
fi
exec "$@"
