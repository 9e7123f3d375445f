// How the cost of the agent grows: with the devices, and with the share of the values that change. One agent after the other, as the image
// starts it, reads and is scraped each two seconds. `--picture=docs/pictures/growth.svg` draws the table.
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { chartOf } from './parts/chart.mjs';
import { makeBundle } from './parts/image.mjs';
import { cpuSeconds, report, rssMiB } from './parts/measure.mjs';
import { createScraper } from './parts/node-exporter.mjs';
import { makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '0,1,8,32,128,512,1024' },
    shares: { type: 'string', default: '0,0.25,0.5,1' },
    settle: { type: 'string', default: '20' },
    turns: { type: 'string', default: '15' },
    picture: { type: 'string' },
  },
});
const INTERVAL_MS = 2_000;
const PODS = 60;
/** Devices of the node whose values change by their share. */
const DEVICES = 128;

const numbers = (text) => text.split(',').map(Number);
const bundle = makeBundle();
try {
  const byDevices = [];
  for (const devices of numbers(values.devices)) byDevices.push(await measure(devices));
  const byShare = [];
  for (const share of numbers(values.shares)) byShare.push(await measure(DEVICES, share));
  report('growth', [...byDevices, ...byShare], { load: loadavg() });
  if (values.picture !== undefined) writeFileSync(values.picture, pictureOf(byDevices, byShare));
} finally {
  bundle.remove();
}

/** `share`: of the counters of each adapter; by default the four of its traffic. */
async function measure(devices, share) {
  const physical = Math.min(8, devices);
  const counts = { infiniband: physical, 'infiniband.vf': devices - physical };
  const { node, kubelet, remove } = await makeMachine({ pods: PODS, counts });
  const agent = await startServe(node, kubelet, { interval: `${INTERVAL_MS}ms`, start: bundle });
  const scraper = createScraper(agent.port, { gzip: true });
  const turn = async () => {
    await sleep(INTERVAL_MS / 2);
    await scraper.scrape();
    await sleep(INTERVAL_MS / 2);
    node.move(share ?? node.trafficShare);
  };
  try {
    while (devices > 0 && !(await pageOf(agent)).includes(`device="mlx5_${devices - 1}"`)) await sleep(1_000);
    for (let left = (Number(values.settle) * 1_000) / INTERVAL_MS; left > 0; left -= 1) await turn();
    const before = cpuSeconds(agent.pid);
    for (let left = Number(values.turns); left > 0; left -= 1) await turn();
    const page = await pageOf(agent);
    const row = {
      devices,
      series: page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length,
      'values that change': share === undefined ? 'four of each device' : `${share * 100} %`,
      'ms CPU of a refresh and a scrape': Number((((cpuSeconds(agent.pid) - before) * 1_000) / Number(values.turns)).toFixed(1)),
      'RSS MiB': Number(rssMiB(agent.pid).toFixed(0)),
    };
    console.error(JSON.stringify(row));
    return row;
  } finally {
    scraper.close();
    await agent.stop();
    await remove();
  }
}

async function pageOf({ port }) {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

function pictureOf(byDevices, byShare) {
  const cost = (row) => row['ms CPU of a refresh and a scrape'];
  return chartOf('CPU of a refresh and a compressed scrape, milliseconds', [
    { title: 'by series', points: byDevices.map((row) => [row.series, cost(row)]) },
    {
      title: `by the share of values that change, ${DEVICES} devices, %`,
      points: byShare.map((row) => [Number.parseFloat(row['values that change']), cost(row)]),
    },
  ]);
}
