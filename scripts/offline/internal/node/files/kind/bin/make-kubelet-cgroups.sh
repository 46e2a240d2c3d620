#!/bin/bash
# On cgroup v1, kubelet's root cgroup must exist in every hierarchy before it starts, and a cpuset that was just made has
# no processors until it is given some. The entrypoint sees to that only where the engine names its hierarchies as Docker
# does.
set -euo pipefail

[[ -f /sys/fs/cgroup/cgroup.controllers ]] && exit 0

for hierarchy in /sys/fs/cgroup/*/; do
  for group in kubelet kubelet.slice; do
    mkdir -p "$hierarchy$group" 2>/dev/null || continue
    for setting in cpuset.cpus cpuset.mems; do
      [[ -f $hierarchy$group/$setting ]] || continue
      [[ -s $hierarchy$group/$setting && -n $(<"$hierarchy$group/$setting") ]] || cat "$hierarchy$setting" >"$hierarchy$group/$setting"
    done
  done
done
