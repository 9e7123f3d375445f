#!/usr/bin/env bash
# Node.js: beside --lite-mode, --max-semi-space-size changes nothing
#
# One would guess: --max-semi-space-size=16 gives young objects 16 MiB and makes collections of them rarer, whatever other options say.
# Versions: the npm package node 24.21.0, and V8 13.6 in it.
# Seen: with --lite-mode the space of young objects has 2 MiB, two halves of 1 MiB, for each value of the option, and a --min-semi-space-size beside
#   it changes nothing either. Without --lite-mode the same values give 2 and 16 MiB. Neither is an error, and no warning is printed.
# Why it matters: deploy/Dockerfile starts the agent with --lite-mode. A figure of performance that was taken with another size of the space beside it
#   says nothing about the size. The readers have the option for a start without --lite-mode (src/supervisor/reader-process.ts).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix . node@24.21.0 > npm.log 2>&1 || { cat npm.log >&2; exit 1; }

cat > young.mjs <<'JS'
import { getHeapSpaceStatistics } from 'node:v8';
const kept = [];
let most = 0;
for (let turn = 0; turn < 400; turn += 1) {
  for (let n = 0; n < 5_000; n += 1) kept[n % 1_000] = { n, turn, both: [n, turn] };
  most = Math.max(most, getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size);
}
console.log(`${most / 2 ** 20} MiB`);
JS
seen=$(for options in --max-semi-space-size=1 --max-semi-space-size=16 '--lite-mode' '--lite-mode --max-semi-space-size=1' \
  '--lite-mode --max-semi-space-size=16' '--lite-mode --min-semi-space-size=8 --max-semi-space-size=16'; do
  # shellcheck disable=SC2086
  echo "$options: $(node_modules/.bin/node $options young.mjs)"
done)
expected='--max-semi-space-size=1: 2 MiB
--max-semi-space-size=16: 16 MiB
--lite-mode: 2 MiB
--lite-mode --max-semi-space-size=1: 2 MiB
--lite-mode --max-semi-space-size=16: 2 MiB
--lite-mode --min-semi-space-size=8 --max-semi-space-size=16: 2 MiB'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
