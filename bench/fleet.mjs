// What a fleet costs Prometheus: series, disk, memory, the seconds of the rules and of each panel, with and without recorded series. The
// nodes are copies of one that the real agent exports (parts/fleet-record.mjs), with names and pods of their own and values that move.
//   node bench/fleet.mjs --nodes=50 --nodes=100 --nodes=200    measures; needs prometheus and promtool
//   node bench/fleet.mjs --write=fleet.om --nodes=2            only writes OpenMetrics with timestamps, for promtool
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createFleet } from './parts/fleet-nodes.mjs';
import { recordNode } from './parts/fleet-record.mjs';

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', multiple: true, default: ['50', '100', '200'] },
    minutes: { type: 'string', default: '120' },
    step: { type: 'string', default: '30' },
    pages: { type: 'string', default: '12' },
    recorded: { type: 'string' },
    write: { type: 'string' },
  },
});
const STEP = Number(values.step);
const STEPS = Math.round((Number(values.minutes) * 60) / STEP);
/** The last two hours that are one block of Prometheus, so that they lie on the disk as they would after a day. */
const BLOCK = 7_200;
const startSeconds = Math.floor(Date.now() / 1_000 / BLOCK) * BLOCK - BLOCK;

const recorded = await record();
const fleet = createFleet(recorded, { startSeconds });
const sizes = values.nodes.map(Number).sort((a, b) => a - b);
if (values.write !== undefined) {
  const samples = fleet.write(values.write, { nodes: range(0, sizes.at(-1)), stepCount: STEPS });
  console.log(`${samples} samples of ${sizes.at(-1)} nodes`);
} else throw new Error('not yet');

/** `--recorded`: a file that keeps what was recorded for the next run. */
async function record() {
  if (values.recorded !== undefined && existsSync(values.recorded)) return JSON.parse(readFileSync(values.recorded, 'utf8'));
  const taken = await recordNode({ steps: Number(values.pages), stepSeconds: STEP });
  if (values.recorded !== undefined) writeFileSync(values.recorded, JSON.stringify(taken));
  return taken;
}

function range(from, to) {
  return Array.from({ length: to - from }, (_, n) => from + n);
}
