#!/bin/bash
# Gives pods a network before any CNI is installed. The last number of the node's address makes its pod subnet, so that
# every node knows the subnets of all its neighbours without asking anyone: nodes of one engine network, of whichever
# cluster, can reach each other's pods. A CNI that is installed later wins by the name of its file.
set -euo pipefail

readonly config=/etc/cni/net.d/99-node.conflist

address=$(ip -4 -o address show scope global | awk '{print $4; exit}')
address=${address%/*}
if [[ ! $address =~ ^([0-9]+\.[0-9]+\.[0-9]+)\.([0-9]+)$ ]]; then
  echo "no IPv4 address on this node: pods get no network until a CNI is installed" >&2
  exit 0
fi
readonly network=${BASH_REMATCH[1]} own=${BASH_REMATCH[2]}

mkdir -p "$(dirname "$config")"
cat >"$config" <<CONFLIST
{
  "cniVersion": "0.4.0",
  "name": "node",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": "10.244.$own.0/24"}]]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
CONFLIST

for ((other = 2; other < 255; other++)); do
  [[ $other -eq $own ]] || echo "route replace 10.244.$other.0/24 via $network.$other"
done | ip -force -batch - || echo "warning: some routes to other nodes' pods could not be set" >&2
