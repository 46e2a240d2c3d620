#!/usr/bin/env bash
# Runs a command on a network that accepts every packet and answers none, as behind many firewalls. Names and addresses get no answer,
# however long a program waits. Loopback works. Needs no root if users may make namespaces.
#
#   scripts/black-hole.sh bin/fleetctl init
set -euo pipefail
[[ $# -gt 0 ]] || { echo "usage: scripts/black-hole.sh COMMAND [ARGUMENT...]" >&2 && exit 2; }

# inside is the second stage, in new namespaces.
inside() {
  local resolver
  resolver=$(mktemp)
  echo "nameserver 192.0.2.53" >"$resolver"
  mount --bind "$resolver" "$(realpath /etc/resolv.conf)"
  rm "$resolver" # the mount keeps it
  ip link set lo up
  # Both ends of the pair are in this namespace, and no program reads at the other end. Without ARP, packets are sent although no address
  # exists there.
  ip link add void type veth peer name sink
  ip address add 192.0.2.1/24 dev void
  ip link set void arp off up
  ip link set sink arp off up
  ip route add default dev void
  unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy
  exec "$@"
}

if [[ $1 == --inside ]]; then
  shift
  inside "$@"
fi
exec unshare --user --map-root-user --net --mount "$0" --inside "$@"
