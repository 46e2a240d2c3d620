#!/usr/bin/env bash
# Copies the CRDs of the objects in the charts from Go modules into a folder, for `fleetctl validate --crds` and its peers.
#
#   scripts/fleet-crds.sh FOLDER
set -euo pipefail

folder=${1:?usage: scripts/fleet-crds.sh FOLDER}
mkdir -p "$folder"

# The modules and versions of templates/crds_test.go.
while read -r module patterns; do
  dir=$(cd / && GOFLAGS=-mod=mod go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  for pattern in $patterns; do
    for file in "$dir"/$pattern; do
      name=$(basename "${module%@*}")-$(basename "$file")
      install -m 0644 "$file" "$folder/$name"
    done
  done
done <<'MODULES'
sigs.k8s.io/cluster-api@v1.14.2 core/config/crd/bases/*.yaml bootstrap/kubeadm/config/crd/bases/*.yaml controlplane/kubeadm/config/crd/bases/*.yaml
sigs.k8s.io/cluster-api/test@v1.14.0 infrastructure/docker/config/crd/bases/*.yaml
sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0 config/crd/bases/*.yaml
sigs.k8s.io/cluster-api-provider-azure@v1.23.0 config/crd/bases/*.yaml
sigs.k8s.io/cluster-api-provider-gcp@v1.13.1 config/crd/bases/*.yaml
sigs.k8s.io/cluster-api-provider-vsphere@v1.14.0 config/default/crd/bases/*.yaml
github.com/fluxcd/helm-controller@v1.6.4 config/crd/bases/*.yaml
github.com/fluxcd/kustomize-controller@v1.9.5 config/crd/bases/*.yaml
github.com/fluxcd/source-controller@v1.9.5 config/crd/bases/*.yaml
MODULES
