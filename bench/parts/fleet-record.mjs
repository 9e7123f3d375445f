// One node as the real agent exports it: 8 GPUs by NVML, 8 HCAs, 60 pods, 16 of which hold one device each. Two histories of it, one sound
// and one in which a port loses its link and gets it back, as values of each series at steps that can be repeated for ever.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { addDriver } from './driver.mjs';
import { makeKubelet, makeNode, podOf } from './node-tree.mjs';
import { startServe } from './serve.mjs';

const DEVICES = 8;
const PODS = 60;
const SICK = 'mlx5_7';
/** At once, so that the agent says what it would say after half a minute. */
const POLICY = JSON.stringify({ health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } } });

/** `steps`: pages of each history. `stepSeconds`: how far the counters move from one to the next. */
export async function recordNode({ steps, stepSeconds }) {
  const node = await makeNode({ infiniband: DEVICES });
  const driver = await addDriver(node, DEVICES);
  const kubelet = await makeKubelet(node.root, 0, []);
  const held = [...driver.ids.map((id) => [id, 'nvidia.com/gpu']), ...Array.from({ length: DEVICES }, (_, n) => [`mlx5_${n}`, 'rdma/hca'])];
  for (let n = 0; n < PODS; n += 1) kubelet.admitPod(podOf(n, ...(held[n] ?? [])));
  mkdirSync(join(node.root, 'etc'));
  writeFileSync(join(node.root, 'etc/policy.yaml'), POLICY);
  const driverFlags = Object.entries(driver.options).map(([name, value]) => `--probe.nvidia.${name}=${value}`);
  const flags = [...driverFlags, `--config.file=${node.root}/etc/policy.yaml`];
  const agent = await startServe(node, kubelet, { interval: '500ms', flags });
  const scrape = async () => (await fetch(`http://127.0.0.1:${agent.port}/metrics`)).text();
  const next = async () => {
    for (let second = 0; second < stepSeconds; second += 1) node.advance();
    await sleep(1_100);
    return scrape();
  };
  const pages = async (count) => {
    const taken = [];
    for (let n = 0; n < count; n += 1) taken.push(await next());
    return taken;
  };
  const setLink = async (isUp) => {
    const port = join(node.roots.sysfs, 'class/infiniband', SICK, 'ports/1');
    writeFileSync(join(port, 'state'), isUp ? '4: ACTIVE\n' : '1: DOWN\n');
    writeFileSync(join(port, 'phys_state'), isUp ? '5: LinkUp\n' : '2: Polling\n');
    await until(scrape, (page) => page.includes(`device_healthy{device="${SICK}"} ${isUp ? 1 : 0}`));
  };
  try {
    await until(scrape, (page) => (page.match(/^container_device_healthy\{/gm) ?? []).length === 2 * DEVICES);
    await sleep(3_000);
    // One page more than steps: the step from the last to it is how far counters rise from one round to the next.
    const sound = historyOf(await pages(steps + 1));
    await setLink(false);
    const down = await pages(steps / 2);
    await setLink(true);
    const up = await pages(steps - steps / 2);
    await setLink(false);
    return { steps, stepSeconds, recordedAt: Date.now() / 1_000, sound, sick: historyOf([...down, ...up, await next()]) };
  } finally {
    await agent.stop();
    await kubelet.close();
    node.remove();
  }
}

async function until(scrape, condition) {
  for (let tries = 0; tries < 300; tries += 1) {
    if (condition(await scrape())) return;
    await sleep(100);
  }
  throw new Error('the simulated node did not come to the state that is to be recorded');
}

/** Series of all pages, with a value for each page and `null` where a page lacks the series. In the order of the names. */
function historyOf(pages) {
  const series = new Map();
  for (const [at, page] of pages.entries()) {
    const types = new Map([...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    for (const [, name, labels = '', value] of page.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)) {
      const key = `${name}{${labels}}`;
      if (!series.has(key)) series.set(key, { name, labels, kind: kindOf(name, types), values: Array(pages.length).fill(null) });
      series.get(key).values[at] = Number(value);
    }
  }
  const families = new Map([...series.values()].flatMap(({ name, labels }) => (name === 'device_info' ? [familyOfDevice(labels)] : [])));
  return [...series.values()]
    .map((one) => ({ ...one, family: familyOf(one, families) }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function kindOf(name, types) {
  if (name.endsWith('_timestamp_seconds')) return 'time';
  const type = types.get(name) ?? types.get(name.replace(/_(bucket|sum|count)$/, ''));
  return type === 'gauge' ? 'gauge' : 'counter';
}

const label = (labels, name) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1];
const familyOfDevice = (labels) => [label(labels, 'device'), label(labels, 'family')];

/** Whose series it is, as the tables tell it. */
function familyOf({ name, labels }, families) {
  if (name.startsWith('container_')) return 'containers';
  if (/^(device_agent|process|nodejs)_/.test(name)) return 'agent';
  return families.get(label(labels, 'device')) ?? 'agent';
}
