#!/usr/bin/env bash
# Sees to it that a long run of tests has room on the disk: tests on a full disk fail late, for reasons that have nothing to do with them.
#
#   scripts/make-room.sh WANT NEED     # both in GiB
#
# While fewer than WANT GiB are free, it removes what nobody misses: temporary folders that interrupted tests left more than six hours ago,
# then everything in Go's build cache that no build has used for a day (`go` itself waits five days). With fewer than NEED GiB after that,
# it removes what no build has used for 12, 6 or 3 hours. If that is not enough, it fails and says what takes the room.
set -euo pipefail

want=$1 need=$2
temporary=${TMPDIR:-/tmp}
builds=$(go env GOCACHE)

# free prints the GiB that are free where the least are: temporary files, caches and containers may lie on different disks.
free() {
  local dir kib least=''
  for dir in "$temporary" "$HOME" "$builds" /var/lib; do
    [[ -d $dir ]] || continue
    kib=$(df --output=avail --block-size=1K "$dir" | tail -n 1)
    [[ -n $least && $least -le $kib ]] || least=$kib
  done
  echo $((least / 1024 / 1024))
}

# leftovers are what `go test`, envtest, testscript and the end-to-end tests name so, and remove at the end unless they are killed.
leftovers() {
  find "$temporary" -maxdepth 1 -type d -user "$(id -un)" -mmin +360 \( \
    -name 'go-build[0-9]*' -o -name 'go-test-script[0-9]*' -o -name 'k8s_test_framework_[0-9]*' -o -name 'envtest-serving-certs-[0-9]*' \
    -o -name 'fleetctl-e2e-cache-[0-9]*' -o -name 'gitrepo-home-[0-9]*' -o -name 'Test*[0-9]' \) "$@"
}

before=$(free)
if ((before < want)); then
  leftovers -exec rm -rf --one-file-system {} + || : # what is still mounted or was just removed stays
fi
# forget_builds HOURS removes what no build has used for so long. Go notes a use when the last one is more than an hour ago.
forget_builds() {
  [[ ! -d $builds ]] ||
    find "$builds" -mindepth 2 -maxdepth 2 -type f \( -name '*-a' -o -name '*-d' \) -mmin "+$(($1 * 60))" -delete
}

if (($(free) < want)); then
  forget_builds 24
fi
for hours in 12 6 3; do
  if (($(free) < need)); then
    forget_builds "$hours"
  fi
done
after=$(free)
echo "$after GiB are free; $before were before old builds and leftovers were looked at"
if ((after < need)); then
  echo "make-room.sh: $need GiB are needed; free some. The largest folders of caches and temporary files:" >&2
  du -xsh "$HOME"/.cache/* "$temporary"/* /var/lib/containers 2>/dev/null | sort -rh | head -n 10 >&2 || :
  exit 1
fi
