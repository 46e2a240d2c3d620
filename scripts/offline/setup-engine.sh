#!/usr/bin/env bash
# Makes this Debian machine able to run kind: installs Podman with runc, configures it for machines where a container
# cannot raise its limits, and serves the engine's API at /run/podman/podman.sock. Safe to run again at any time.
set -euo pipefail

readonly packages=(podman runc netavark aardvark-dns debootstrap iptables nftables kmod uidmap ca-certificates)
readonly socket=/run/podman/podman.sock
readonly log=/var/log/podman-api.log

say() { printf 'setup-engine: %s\n' "$*" >&2; }
die() { printf 'setup-engine: error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

[[ $(id -u) -eq 0 ]] || die "not root" "run it as root: sudo $0"
command -v apt-get >/dev/null || die "no apt-get on this machine" "install podman, runc, netavark, aardvark-dns and debootstrap another way"

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [[ ${#missing[@]} -eq 0 ]] && return
  say "installing ${missing[*]}"
  # A package list that fails for some other source must not stop an install that Debian's own can serve.
  apt-get update -qq || say "warning: apt-get update reported errors; trying with what it has"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Containers inherit the engine's limits here, so they are set to what an unprivileged kernel grants; crun refuses the
# hybrid cgroup layout, runc accepts it.
configure_engine() {
  local file=/etc/containers/containers.conf
  mkdir -p /etc/containers
  local want
  want='[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]

[engine]
runtime = "runc"'
  if [[ -f $file ]] && ! grep -q 'runtime = "runc"' "$file"; then
    cp -n "$file" "$file.before-fleetctl"
    say "kept the earlier $file as $file.before-fleetctl"
  fi
  [[ -f $file && $(cat "$file") == "$want" ]] || printf '%s\n' "$want" >"$file"
  [[ -f /etc/containers/policy.json ]] || printf '{"default":[{"type":"insecureAcceptAnything"}]}\n' >/etc/containers/policy.json
}

# kind mounts /lib/modules, and every node runs many watches.
configure_kernel() {
  mkdir -p /lib/modules
  local setting
  for setting in fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288; do
    [[ $(sysctl -n "${setting%%=*}") -ge ${setting##*=} ]] || sysctl -q -w "$setting" || say "warning: cannot set $setting: kind nodes may fail with 'too many open files'"
  done
}

answers() { podman --url "unix://$socket" version >/dev/null 2>&1; }

# The docker provider talks to the engine through this socket, in Docker's dialect.
serve_api() {
  answers && return
  mkdir -p "$(dirname "$socket")"
  if [[ -d /run/systemd/system ]]; then
    systemctl enable --quiet --now podman.socket
  else
    rm -f "$socket"
    # From a folder that stays: without its own one, the service starts no container any more.
    (cd / && exec setsid nohup podman system service -t 0 "unix://$socket") >"$log" 2>&1 </dev/null &
  fi
  for _ in $(seq 1 50); do
    answers && return
    sleep 0.2
  done
  die "the engine's API does not answer at $socket" "see $log, or run: podman system service -t 0 unix://$socket"
}

install_packages
configure_engine
configure_kernel
serve_api
say "ready: $(podman --version), API at unix://$socket; use it with KIND_EXPERIMENTAL_PROVIDER=podman"
