#!/usr/bin/env bash
# Makes a fleet with a cluster on this machine. It builds fleetctl, makes a fleet repo and a management cluster that follows it,
# and declares a cluster with the commands in the new repo's README. It can be run again at any time.
#
#   make quickstart                       # the fleet repo is _output/quickstart
#   make quickstart FLEET_DIR=~/fleet     # or where you want it
#
# If a container engine answers, the management cluster runs on kind. Otherwise it runs on the embedded host, which needs no root
# and no other programs. FLEETCTL_HOST=kind or FLEETCTL_HOST=embedded chooses.
#
# Images and manifests come from their registries if these answer. Otherwise an offline bundle is built from Go modules, which takes
# long the first time, and seconds after that. FLEETCTL_OFFLINE=true chooses the bundle, false the registries.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fleet_dir=${FLEET_DIR:-$root/_output/quickstart}
fleetctl=$root/bin/fleetctl
host=${FLEETCTL_HOST:-}
cluster=demo
cluster_limit=${QUICKSTART_CLUSTER_LIMIT:-900} # seconds until the declared cluster has to be Available

say() { printf '\n==> %s\n' "$*"; }

# engine_answers is true if kind can run without further setup. Podman needs setup as root first.
engine_answers() {
  [[ -n ${KIND_EXPERIMENTAL_PROVIDER:-} ]] ||
    timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1 ||
    { [[ $(id -u) -eq 0 ]] && timeout 20 podman info >/dev/null 2>&1; }
}

# choose_host prints kind or embedded: the host of an earlier run, or else what this machine can run.
choose_host() {
  if grep -qs '^ *type: embedded$' "$fleet_dir/fleet.yaml"; then
    echo embedded
  elif [[ -e $fleet_dir/fleet.yaml ]] || engine_answers || [[ $(uname -s) != Linux ]]; then
    echo kind
  else
    echo embedded
  fi
}

# registries_answer is true if all servers that init downloads from can be reached. Any HTTP answer counts, because a registry
# answers 401 without credentials.
registries_answer() {
  local url
  for url in https://registry.k8s.io/v2/ https://ghcr.io/v2/ https://quay.io/v2/ https://registry-1.docker.io/v2/ \
    https://github.com/kubernetes-sigs/cluster-api; do
    curl --silent --output /dev/null --connect-timeout 5 --max-time 15 "$url" || return 1
  done
}

# readme_commands prints the commands under "Add a cluster" in the new repo's README.
readme_commands() {
  awk '/^## Add a cluster/ { here = 1 } here && /^```$/ { exit } inside; here && /^```sh$/ { inside = 1 }' README.md
}

# for_this_machine adds the setting that kubelets of the docker flavour need on a machine with cgroup v1.
for_this_machine() {
  if [[ $1 == *charts/docker* && ! -e /sys/fs/cgroup/cgroup.controllers ]]; then
    # shellcheck disable=SC2001 # a pattern with a line's beginning and end
    sed 's/^  values:$/&\n    kubeletExtraArgs:\n      fail-cgroupv1: "false"/' <<<"$1"
  else
    echo "$1"
  fi
}

# cluster_known is true once the report in $1 lists the cluster.
cluster_known() { sed -n '/^  "clusters": \[/,/^  "problems":/p' <<<"$1" | grep -q "\"name\": \"$cluster\""; }

# first_problem prints the first problem of the report in $1, which is what the cluster waits for: its object and its reason.
first_problem() {
  local part text=""
  for part in object reason; do
    text+="${text:+: }$(sed -n '/^  "problems": \[/,/^  \]/p' <<<"$1" | sed -n "s/^ *\"$part\": \"\(.*\)\",*\$/\1/p" | sed -n 1p)"
  done
  echo "${text:-Flux has not made the cluster yet}"
}

# await_cluster waits until the cluster exists and the whole fleet is Ready, which is when status exits with 0. It prints what it waits for
# when that changes, and every half minute.
await_cluster() {
  local started=$SECONDS report waits said="" next=0
  while true; do
    if report=$("$fleetctl" status -o json 2>/dev/null) && cluster_known "$report"; then
      return
    fi
    waits=$(first_problem "$report")
    if [[ $waits != "$said" ]] || ((SECONDS >= next)); then
      printf '%4ds  %s\n' "$((SECONDS - started))" "$waits"
      said=$waits
      next=$((SECONDS + 30))
    fi
    if ((SECONDS - started > cluster_limit)); then
      "$fleetctl" status || :
      echo "quickstart: $cluster is not Available after ${cluster_limit}s; the tree above says why" >&2
      return 1
    fi
    sleep 1
  done
}

case ${host:=$(choose_host)} in
kind)
  bundle="bundle"
  if [[ -z ${KIND_EXPERIMENTAL_PROVIDER:-} ]]; then
    say "A container engine"
    export FLEETCTL_HOST=kind
    exec "$root/scripts/with-engine.sh" "$0" "$@"
  fi
  ;;
embedded)
  say "No container engine is needed: the management cluster is processes of this machine"
  bundle="bundle-embedded"
  ;;
*)
  echo "quickstart: FLEETCTL_HOST=$host: there are kind and embedded" >&2
  exit 2
  ;;
esac

say "fleetctl"
make --no-print-directory -C "$root" build

init=("$fleetctl" init --provider docker --host "$host")
offline=${FLEETCTL_OFFLINE:-}
if [[ -z $offline ]]; then
  if registries_answer; then offline=false; else offline=true; fi
fi
if [[ $offline == true ]]; then
  say "The offline bundle, since not every registry answers"
  make --no-print-directory -C "$root" "$bundle"
  init+=(--bundle "$(make --no-print-directory -s -C "$root" "$bundle-path")")
fi

# Cluster API reconciles each object at most once a second, which helps a management cluster with hundreds of clusters. A single small
# cluster in memory is ready sooner without that limit. With containers the limit is needed: while a node starts, the docker provider fails
# at each of many events, and would then wait ten minutes before it tries again. A variable that is already set stays.
if [[ $host == embedded ]]; then
  export EXP_RECONCILER_RATE_LIMITING=${EXP_RECONCILER_RATE_LIMITING:-false}
fi

say "A fleet repo in $fleet_dir and a management cluster that follows it"
mkdir -p "$fleet_dir"
cd "$fleet_dir"
if ! { git config user.name && git config user.email; } >/dev/null; then # a fresh machine has no identity for commits, and init commits
  export GIT_AUTHOR_NAME=${GIT_AUTHOR_NAME:-quickstart} GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL:-quickstart@localhost}
  export GIT_COMMITTER_NAME=${GIT_COMMITTER_NAME:-$GIT_AUTHOR_NAME} GIT_COMMITTER_EMAIL=${GIT_COMMITTER_EMAIL:-$GIT_AUTHOR_EMAIL}
fi
"${init[@]}"

if compgen -G "providers/*/*/clusters/*/$cluster" >/dev/null; then
  say "The cluster $cluster is declared already"
else
  say "A cluster, as the fleet repo's README says it"
  commands=$(for_this_machine "$(readme_commands)")
  echo "$commands"
  bash -euo pipefail -c "$commands"
fi

say "Waiting until $cluster is Available"
await_cluster
"$fleetctl" status

cat <<DONE

Your fleet is in $fleet_dir: change it and commit. Look at it and take it down with

  cd $fleet_dir
  $fleetctl status
  $fleetctl teardown --delete-clusters
DONE
