#!/usr/bin/env bash
# Runs a command in a network namespace of its own, in which there is nothing but loopback: what passes there is offline, and
# its ports are nobody else's. Needs root.
#
#   scripts/without-network.sh bin/fleetctl init --host embedded …
#   make e2e-embedded TESTFLAGS="-exec $PWD/scripts/without-network.sh"
set -euo pipefail
# shellcheck disable=SC2016 # "$@" belongs to the inner shell
exec unshare --net bash -c 'ip link set lo up && exec "$@"' without-network "$@"
