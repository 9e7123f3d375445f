#!/usr/bin/env bash
# node-cron: in the night when summer time ends, "every 20 minutes" does not run for an hour and twenty minutes
#
# One would guess: */20 * * * * runs every 20 minutes of real time in each time zone. When the clock is set back from 3:00 to 2:00, the times between
#   2:00 and 3:00 come twice; a scheduler runs in both hours, or at most drops the second one.
# Versions: node-cron 4.6.0; Node.js 20 and later with its own time zones.
# Seen: the first of the two hours has no run. After 1:40 of summer time (23:40 UTC) the next run is 2:00 of winter time (01:00 UTC). In a zone whose
#   clock moves by half an hour (Lord Howe), the gap of a task of each quarter of an hour is 45 minutes. task.match() says of the times that are left
#   out that they match. In spring nothing is missing.
# Why it matters: what must happen each few minutes cannot be a cron expression. src/agent/schedule.ts has timers on the monotonic clock;
#   src/agent/agent.ts (HostFacts) uses node-cron only for what may wait for hours. docs/decisions.md says why.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix . node-cron@4.6.0 > npm.log 2>&1 || { cat npm.log >&2; exit 1; }

cat > runs.mjs <<'JS'
const SystemDate = Date;
let now = 0;
/** While true, the time goes on from `now`. */
let runs = false;
const started = performance.now();
const time = () => now + (runs ? Math.floor(performance.now() - started) : 0);
globalThis.Date = class extends SystemDate {
  constructor(...parts) {
    if (parts.length === 0) super(time());
    else super(...parts);
  }
  static now() {
    return time();
  }
};
const { default: cron } = await import('node-cron');

function show(expression, timezone, from, count) {
  now = SystemDate.parse(from);
  const task = cron.createTask(expression, () => {}, { timezone });
  const next = task.getNextRuns(count).map((run) => run.getTime());
  const gaps = next.map((run, i) => (run - (next[i - 1] ?? now)) / 60_000);
  const longest = Math.max(...gaps);
  const after = next[gaps.indexOf(longest)] - longest * 60_000;
  const step = Math.min(...gaps) * 60_000;
  const left = [];
  for (let at = after + step; at < after + longest * 60_000; at += step) left.push(task.match(new SystemDate(at)));
  console.log(`${expression} ${timezone} from ${from}: longest gap ${longest} min, after ${new SystemDate(after).toISOString().slice(11, 16)} UTC; match: ${left.join(' ') || '-'}`);
}

show('*/20 * * * *', 'Europe/Berlin', '2026-10-24T23:00:00Z', 12);
show('*/20 * * * *', 'America/New_York', '2026-11-01T04:00:00Z', 12);
show('*/15 * * * *', 'Australia/Lord_Howe', '2026-04-04T13:00:00Z', 12);
show('*/20 * * * *', 'Europe/Berlin', '2026-03-28T23:00:00Z', 12);
show('*/20 * * * *', 'UTC', '2026-10-24T23:00:00Z', 12);

// The tasks themselves: one of each second, over the moment when the clock is set back.
const change = SystemDate.parse('2026-10-25T00:00:00Z');
const counts = {};
now = change - 3_000 - (performance.now() - started);
runs = true;
await new Promise((resolve) => {
  for (const timezone of ['Europe/Berlin', 'UTC']) {
    counts[timezone] = { before: 0, after: 0 };
    cron.schedule('* * * * * *', ({ date }) => {
      counts[timezone][date.getTime() < change ? 'before' : 'after'] += 1;
      if (counts.UTC.after === 3) resolve();
    }, { timezone, suppressMissedWarning: true });
  }
});
for (const [timezone, { before, after }] of Object.entries(counts)) console.log(`each second in ${timezone}: runs before the change: ${before > 0}, after it: ${after > 0}`);
process.exit();
JS
seen=$(node runs.mjs)
expected='*/20 * * * * Europe/Berlin from 2026-10-24T23:00:00Z: longest gap 80 min, after 23:40 UTC; match: true true true
*/20 * * * * America/New_York from 2026-11-01T04:00:00Z: longest gap 80 min, after 05:40 UTC; match: true true true
*/15 * * * * Australia/Lord_Howe from 2026-04-04T13:00:00Z: longest gap 45 min, after 14:15 UTC; match: true true
*/20 * * * * Europe/Berlin from 2026-03-28T23:00:00Z: longest gap 20 min, after 23:00 UTC; match: -
*/20 * * * * UTC from 2026-10-24T23:00:00Z: longest gap 20 min, after 23:00 UTC; match: -
each second in Europe/Berlin: runs before the change: true, after it: false
each second in UTC: runs before the change: true, after it: true'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
