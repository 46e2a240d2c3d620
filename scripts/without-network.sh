#!/usr/bin/env bash
# Runs a command in a new network namespace with only a loopback, so that it is offline and no other program takes its ports. All processes
# that it starts end with it. Needs root.
#
#   scripts/without-network.sh bin/fleetctl init --host embedded …
#   make e2e-embedded TESTFLAGS="-exec $PWD/scripts/without-network.sh"
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2016 # "$@" belongs to the inner shell
exec "$scripts/own-processes.sh" unshare --net bash -c 'ip link set lo up && exec "$@"' without-network "$@"
