#!/usr/bin/env bash
# Turns a Debian root file system into that of a kind node: what images/base/Dockerfile of kind does, with programs that
# were built from their modules, and what machines need where containers can neither raise limits nor use cgroup v2.
# usage: rootfs.sh ROOT KIND_FILES OVERLAY PROGRAMS VERSION PAUSE_IMAGE
set -euo pipefail
readonly root=$1 kind_files=$2 overlay=$3 programs=$4 version=$5 pause=$6

install_kind_files() {
  # Module folders are read-only; a node's files are 0644 and its programs 0755.
  cp -r --no-preserve=mode,ownership "$kind_files"/. "$root"/
  cp -r --no-preserve=mode,ownership "$overlay"/. "$root"/
  chmod 0755 "$root"/usr/local/bin/* "$root"/kind "$root"/kind/bin "$root"/kind/bin/*.sh
  printf '%s' "$version" >"$root/kind/version"
}

install_programs() {
  local program
  install -m 0755 "$programs/kubernetes" "$root/usr/bin/kubernetes"
  for program in kubeadm kubelet kubectl; do
    ln -sf kubernetes "$root/usr/bin/$program"
  done
  install -m 0755 -t "$root/usr/local/bin" "$programs"/{containerd,ctr,containerd-shim-runc-v2,crictl}
  # containerd looks for runc where kind's base image has its own.
  ln -sf /usr/sbin/runc "$root/usr/local/sbin/runc"
  mkdir -p "$root/opt/cni/bin"
  for program in bridge ptp loopback host-local portmap; do
    install -m 0755 "$programs/cni-$program" "$root/opt/cni/bin/$program"
  done
}

configure_containerd() {
  chroot "$root" /usr/local/bin/ctr oci spec |
    jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
      >"$root/etc/containerd/cri-base.json"
  sed -i -e "s#sandbox_image = .*#sandbox_image = \"$pause\"#" -e 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' \
    "$root/etc/containerd/config.toml"
  sed -i -e '/^Limit/d' -e '/^OOMScoreAdjust/d' "$root/etc/systemd/system/containerd.service"
}

configure_kubelet() {
  sed -i 's/^KUBELET_EXTRA_ARGS=/&--fail-cgroupv1=false /' "$root/etc/default/kubelet"
  grep -q fail-cgroupv1 "$root/etc/default/kubelet"
  mkdir -p "$root/etc/kubernetes/manifests"
}

configure_systemd() {
  local units=$root/lib/systemd/system
  find "$units/sysinit.target.wants/" -name systemd-tmpfiles-setup.service -delete
  rm -f "$units"/multi-user.target.wants/* "$root"/etc/systemd/system/*.wants/* "$units"/local-fs.target.wants/* \
    "$units"/sockets.target.wants/*udev* "$units"/sockets.target.wants/*initctl* "$units"/basic.target.wants/*
  echo "ReadKMsg=no" >>"$root/etc/systemd/journald.conf"
  ln -sf /usr/lib/systemd/systemd "$root/sbin/init"
  local enable="systemctl enable --quiet kubelet.service containerd.service undo-mount-hacks.service pod-network.service"
  chroot "$root" /bin/sh -c "$enable && systemctl --quiet mask systemd-binfmt.service"
}

clean() {
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/usr/share/{doc,man,locale}/* "$root"/etc/machine-id
  : >"$root/etc/hostname"
  rm -f "$root/etc/resolv.conf"
}

install_kind_files
install_programs
configure_containerd
configure_kubelet
configure_systemd
clean
