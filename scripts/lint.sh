#!/usr/bin/env bash
# All static checks: Go in both modules, shell scripts, workflows and the release recipe.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

golangci_lint=$(scripts/tool.sh --path golangci-lint)

echo "lint: Go"
"$golangci_lint" run ./...
(cd scripts/offline && "$golangci_lint" run --config ../../.golangci.yml ./...)

echo "lint: go.mod"
# `go install …/cmd/fleetctl@version` refuses a main module with replace or exclude directives.
if grep -nE '^[[:space:]]*(replace|exclude)\b' go.mod; then
  echo "lint: go.mod has a replace or exclude directive; go install …@version would refuse it" >&2
  exit 1
fi

echo "lint: docs/reference"
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
mkdir "$generated/committed"
cp docs/reference/fleetctl*.md "$generated/committed"
go run ./scripts/gendocs "$generated/now"
if ! diff -ru "$generated/committed" "$generated/now"; then
  echo "lint: docs/reference is out of date: run make docs and commit the result" >&2
  exit 1
fi

echo "lint: shell scripts"
mapfile -t shell_scripts < <(git ls-files '*.sh' .ci)
for script in "${shell_scripts[@]}"; do
  bash -n "$script"
done
if command -v shellcheck >/dev/null; then
  shellcheck --external-sources "${shell_scripts[@]}"
elif [[ ${CI:-} == true ]]; then
  echo "lint: shellcheck is missing: apt-get install shellcheck" >&2
  exit 1
else
  echo "lint: shellcheck is not installed, scripts were only parsed" >&2
fi

echo "lint: workflows"
scripts/tool.sh actionlint

echo "lint: release recipe"
scripts/tool.sh goreleaser check --quiet
