#!/usr/bin/env bash
# Clones this repository to the folder $1, with the changes of its working tree, and gives each file there a time of modification that
# follows from its content (see scripts/contenttimes).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
to=$1

git clone --quiet --no-checkout "$root" "$to"
git -C "$to" reset --quiet
(cd "$root" && git ls-files -z --cached --others --exclude-standard |
  while read -r -d '' file; do [[ -e $file || -L $file ]] && printf '%s\0' "$file"; done |
  tar --create --null --no-recursion --files-from=-) | tar --extract --no-same-owner --directory="$to"
CGO_ENABLED=0 go -C "$root" run -trimpath ./scripts/contenttimes "$to"
