#!/usr/bin/env bash
# Prints the path of a Python with moto, the simulated AWS of the end-to-end tests. It is a Python of this machine, if one has the pinned
# version or a newer one of the same major version, or else one in the cache, which Python's venv and pip make once. pip's own
# configuration says from where: PIP_INDEX_URL, or PIP_FIND_LINKS with a folder of wheels.
#
#   "$(scripts/moto.sh)" cmd/fleetctl/e2e/testdata/aws.py
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${FLEETCTL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl}/moto
requirements=$root/tools/moto/requirements.txt
version=$(sed -n 's/^moto\[server\]==//p' "$requirements")

# has tells whether a Python has moto in the pinned version, or in a newer one of the same major version.
has() {
  "$1" - "$version" <<'EOF' >/dev/null 2>&1
import importlib.metadata, sys
import boto3, moto.server
have, pinned = (tuple(map(int, v.split(".")[:3])) for v in (importlib.metadata.version("moto"), sys.argv[1]))
sys.exit(have[0] != pinned[0] or have < pinned)
EOF
}

# install_moto installs the requirements for a Python; package indexes fail now and then, so it tries three times.
install_moto() {
  local attempt
  for attempt in 1 2 3; do
    "$1" -m pip install --quiet --disable-pip-version-check --no-input --requirement "$requirements" >&2 && return
    echo "moto.sh: pip failed (attempt $attempt of 3)" >&2
    [[ $attempt -eq 3 ]] || sleep $((attempt * 10))
  done
  echo "moto.sh: pip did not install moto: see its errors above. Set PIP_INDEX_URL to an index that this machine reaches, or install" \
    "'moto[server]==$version' for $(command -v python3) in another way" >&2
  return 1
}

command -v python3 >/dev/null || { echo "moto.sh: Python 3 is missing: apt-get install python3 python3-venv" >&2 && exit 1; }
# The path of root often lacks pyenv's folder, and may lack /usr/local/bin.
while read -r python; do
  if [[ -x $python ]] && has "$python"; then
    echo "$python"
    exit
  fi
done < <(type -ap python3; printf '%s\n' /usr/local/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}/shims/python3")

key=$({ cat "$requirements"; python3 --version; } | sha256sum | cut -c1-16)
python=$cache/$key/bin/python3
if [[ ! -x $python ]]; then
  echo "moto.sh: installing moto $version (once for this version)" >&2
  mkdir -p "$cache"
  partial=$(mktemp -d "$cache/.partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  python3 -m venv "$partial/env" >&2 || { echo "moto.sh: python3 -m venv failed: apt-get install python3-venv" >&2 && exit 1; }
  install_moto "$partial/env/bin/python3"
  has "$partial/env/bin/python3" || { echo "moto.sh: moto was installed but does not run: check $requirements" >&2 && exit 1; }
  mv -T "$partial/env" "$cache/$key" 2>/dev/null || [[ -x $python ]] # somebody else was faster
fi
echo "$python"
