#!/usr/bin/env bash
# Runs a command as on a fresh machine: a minimal Debian with Go, git, make and bash, a clone of this repository with the changes of its
# working tree, and a user who is not root. Needs root and debootstrap.
#
#   scripts/fresh-machine.sh make test
#   scripts/fresh-machine.sh bash        # look around
#
# The user has no capabilities, sees no process outside, and can write only to a home folder, /tmp and the caches of Go and this project, so
# that nothing is built twice. Root owns these caches, so the user is root in a user namespace, and all other folders are mounted read-only.
# The network is the machine's, with its trusted certificate authorities, so that Go downloads modules as outside.
set -euo pipefail

readonly suite=bookworm packages=ca-certificates,git,make authorities=/etc/ssl/certs/ca-certificates.crt
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}

# debian makes the root file system if it is missing, and prints its path.
debian() {
  local key dir partial
  key=$(printf '%s\n' "$suite" "$packages" "$(dpkg --print-architecture)" 1 | sha256sum | cut -c1-16)
  dir=$cache/fresh-machine/$key
  if [[ ! -d $dir ]]; then
    echo "fresh-machine.sh: making a minimal Debian (once)" >&2
    mkdir -p "$cache/fresh-machine"
    partial=$(mktemp -d "$cache/fresh-machine/.partial.XXXXXX")
    debootstrap --variant=minbase --include="$packages" "$suite" "$partial" ${FLEETCTL_DEBIAN_MIRROR:+"$FLEETCTL_DEBIAN_MIRROR"} >"$partial.log" 2>&1 ||
      { tail -n 20 "$partial.log" >&2 && rm -rf "$partial" "$partial.log" && return 1; }
    echo 'dev:x:1000:1000::/home/dev:/bin/bash' >>"$partial/etc/passwd"
    echo 'dev:x:1000:' >>"$partial/etc/group"
    mkdir -p "$partial/home/dev" "$partial/usr/local/go"
    touch "$partial/etc/hosts" "$partial/etc/resolv.conf"
    rm -rf "$partial/var/cache/apt" "$partial.log"
    chmod 0755 "$partial"
    mv -T "$partial" "$dir" 2>/dev/null || rm -rf "$partial" # somebody else was faster
  fi
  echo "$dir"
}

# inside is the second stage, in new namespaces. It mounts the file systems and becomes the user.
inside() {
  local new=$1 home=$2 writable=$3 file
  shift 3
  mount --make-rprivate /
  mount --bind "$new" "$new"
  mount -o remount,bind,ro "$new"
  mount --bind "$home" "$new/home/dev"
  mount -t tmpfs -o mode=0755 tmpfs "$new/dev"
  for file in null zero full random urandom tty; do
    touch "$new/dev/$file"
    mount --bind "/dev/$file" "$new/dev/$file"
  done
  ln -s /proc/self/fd "$new/dev/fd"
  ln -s pts/ptmx "$new/dev/ptmx"
  mkdir "$new/dev/pts" "$new/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$new/dev/pts"
  mount -t tmpfs tmpfs "$new/dev/shm"
  mount --bind "$home/.tmp" "$new/tmp"
  mount -t tmpfs tmpfs "$new/run"
  mount -t proc proc "$new/proc"
  mount --bind "$new/proc/sys" "$new/proc/sys"
  mount -o remount,bind,ro "$new/proc/sys"
  mount --bind /sys "$new/sys"
  mount -o remount,bind,ro "$new/sys"
  mount --bind "$(go env GOROOT)" "$new/usr/local/go"
  mount -o remount,bind,ro "$new/usr/local/go"
  for file in /etc/resolv.conf /etc/hosts; do # names are resolved as here
    mount --bind "$file" "$new$file"
    mount -o remount,bind,ro "$new$file"
  done
  if [[ -s ${SSL_CERT_FILE:-$authorities} ]]; then # and servers are trusted as here
    mount --bind "${SSL_CERT_FILE:-$authorities}" "$new$authorities"
    mount -o remount,bind,ro "$new$authorities"
  fi
  while read -r file; do
    mount --bind "$file" "$new$file"
  done <<<"$writable"
  mount -t tmpfs -o ro tmpfs "$new$cache/fresh-machine" # the root file system lies in a cache
  cd "$new"
  pivot_root . mnt
  umount -l /mnt
  cd /home/dev/fleetctl
  # This shell is the first process of its namespace. All other processes there, background ones too, end with it.
  trap 'exit 130' INT
  trap 'exit 143' TERM
  unshare --user --map-user=1000 --map-group=1000 "$@" <&0 &
  wait $!
}

if [[ ${1:-} == --inside ]]; then
  shift
  inside "$@"
  exit
fi

[[ $# -gt 0 ]] || { echo "usage: scripts/fresh-machine.sh COMMAND [ARGUMENT...]" >&2 && exit 2; }
[[ $(id -u) -eq 0 ]] || { echo "fresh-machine.sh: needs root, to mount file systems" >&2 && exit 1; }
command -v debootstrap >/dev/null || { echo "fresh-machine.sh: debootstrap is missing: apt-get install debootstrap" >&2 && exit 1; }

new=$(debian)
home=$(mktemp -d)
machine=''
# finish ends the machine's processes, if any still run, and then removes its disk.
finish() {
  if [[ -n $machine ]] && kill -KILL "$machine" 2>/dev/null; then
    wait "$machine" || :
  fi
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir "$home/.tmp"
"$root/scripts/copy-clone.sh" "$home/fleetctl"

writable=$(printf '%s\n' "$(go env GOCACHE)" "$(go env GOMODCACHE)" "$cache")
while read -r folder; do
  mkdir -p "$folder" "$new$folder"
done <<<"$writable"

# Go's settings of this machine, and the variables for a proxy.
settings=(GOTOOLCHAIN=local)
for name in GOCACHE GOMODCACHE GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOINSECURE GOFLAGS; do
  settings+=("$name=$(go env "$name")")
done
for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy CI TERM FLEETCTL_OFFLINE FLEETCTL_TEST_TIMES; do
  [[ -z ${!name:-} ]] || settings+=("$name=${!name}")
done

setpriv --pdeathsig KILL unshare --mount --pid --ipc --uts --fork --kill-child "$0" --inside "$new" "$home" "$writable" \
  env -i HOME=/home/dev USER=dev LANG=C.UTF-8 PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin \
  FLEETCTL_CACHE_DIR="$cache" "${settings[@]}" "$@" <&0 &
machine=$! # unlike a command in the foreground, wait lets a signal through at once
wait "$machine"
