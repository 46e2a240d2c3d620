#!/usr/bin/env bash
# Sees to it that a long run of tests has room on the disk: tests on a full disk fail late, for reasons that have nothing to do with them.
#
#   scripts/make-room.sh WANT NEED     # both in GiB
#
# While fewer than WANT GiB are free, it removes what nobody misses: temporary folders that interrupted tests left more than six hours ago,
# then everything in Go's build cache that no build has used for a day (`go` itself waits five days). With fewer than NEED GiB after that,
# it removes such folders that are older than an hour and that no process uses, then builds, those first that were used longest ago: to
# build again takes minutes, and a run that does not start takes a day. If that is not enough, it fails and says what takes the room.
set -euo pipefail

want=$1 need=$2
temporary=${TMPDIR:-/tmp}
cache=$(go env GOCACHE)

# free prints the GiB that are free where the least are: temporary files, caches and containers may lie on different disks.
free() {
  local dir kib least=''
  for dir in "$temporary" "$HOME" "$cache" /var/lib; do
    [[ -d $dir ]] || continue
    kib=$(df --output=avail --block-size=1K "$dir" | tail -n 1)
    [[ -n $least && $least -le $kib ]] || least=$kib
  done
  echo $((least / 1024 / 1024))
}

# leftovers MINUTES finds what `go test`, envtest, testscript and the end-to-end tests name so, and remove at the end unless they are
# killed, where nothing has changed for so long. It prints their paths with a zero byte after each.
leftovers() {
  find "$temporary" -maxdepth 1 -type d -user "$(id -un)" -mmin "+$1" \( \
    -name 'go-build[0-9]*' -o -name 'go-test-script[0-9]*' -o -name 'k8s_test_framework_[0-9]*' -o -name 'envtest-serving-certs-[0-9]*' \
    -o -name 'fleetctl-e2e-cache-[0-9]*' -o -name 'gitrepo-home-[0-9]*' -o -name 'Test*[0-9]' \) -print0
}

# in_use succeeds if a process runs from the folder $1, works in it or has a file of it open.
in_use() {
  local users # find fails whenever a process ends under it
  users=$(find /proc/[0-9]*/cwd /proc/[0-9]*/exe /proc/[0-9]*/fd/ \( -lname "$1" -o -lname "$1/*" \) -print 2>/dev/null) || :
  [[ -n $users ]]
}

before=$(free)
if ((before < want)); then
  leftovers 360 | xargs -0r rm -rf --one-file-system || : # what is still mounted or was just removed stays
fi
# builds prints all files of the build cache that match the conditions of find in "$@", each after the second of its last use and a blank.
# Go notes a use when the last one is more than an hour ago.
builds() {
  [[ ! -d $cache ]] || find "$cache" -mindepth 2 -maxdepth 2 -type f \( -name '*-a' -o -name '*-d' \) "$@" -printf '%T@ %p\n'
}

if (($(free) < want)); then
  builds -mmin +1440 | cut -d ' ' -f 2- | xargs -rd '\n' rm -f
fi
if (($(free) < need)); then
  while IFS= read -r -d '' dir; do
    in_use "$dir" || rm -rf --one-file-system "$dir" || :
  done < <(leftovers 60)
fi
if (($(free) < need)); then
  mapfile -t oldest < <(builds | sort -n | cut -d ' ' -f 2-)
  for ((i = 0; i < ${#oldest[@]}; i += 500)); do
    (($(free) < need)) || break
    rm -f "${oldest[@]:i:500}"
  done
fi
after=$(free)
echo "$after GiB are free; $before were before old builds and leftovers were looked at"
if ((after < need)); then
  echo "make-room.sh: $need GiB are needed; free some. The largest folders of caches and temporary files:" >&2
  du -xsh "$HOME"/.cache/* "$temporary"/* /var/lib/containers 2>/dev/null | sort -rh | head -n 10 >&2 || :
  exit 1
fi
