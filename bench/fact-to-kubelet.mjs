// How long a fact in the tree takes to the kubelet's copy of the device list. The fact is a port that loses its link or gets it back, with
// a policy that counts at once; each comes at a random moment. Most of it is the wait for the next look: no sysfs file tells inotify that
// it changed. "From the policy's word" is counted from the moment at which the policy said so, which is the time of the event.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DIST, dist } from './parts/dist.mjs';
import { report, summary } from './parts/measure.mjs';

const { simulation } = await dist('sim/families/infiniband/index.js');
const { SimulatedDeviceManager } = await dist('sim/kubelet/device-manager.js');
const { SimulatedKubelet } = await dist('sim/kubelet/kubelet.js');
const { TreeWriter } = await dist('sim/tree-writer.js');

const { values } = parseArgs({ options: { times: { type: 'string', default: '100' }, interval: { type: 'string', multiple: true } } });
const MAIN = `${DIST}/cli/main.js`;
const RESOURCE = 'example.com/hca';
const DEVICE = 'mlx5_1';

const intervals = values.interval ?? ['1s', ''];
report('fact-to-kubelet', await Promise.all(intervals.map((interval) => measure(interval, Number(values.times)))));

async function measure(interval, times) {
  const root = mkdtempSync(join(tmpdir(), 'fact-to-kubelet-'));
  const plugins = join(root, 'kubelet/device-plugins');
  for (const path of ['proc', 'dev']) mkdirSync(join(root, path));
  const hardware = simulation.simulate({ counts: { infiniband: 4 }, elapsedMs: 0 });
  const writer = new TreeWriter(root);
  writer.apply(hardware);
  const port = Object.keys(hardware.files).find((path) => path.endsWith(`${DEVICE}/ports/1/state`));
  writeFileSync(join(root, 'config.yaml'), configuration());
  const kubelet = new SimulatedKubelet({ directory: join(root, 'kubelet') });
  let listChanged = () => {};
  const manager = new SimulatedDeviceManager({
    directory: plugins,
    onChange: () => {
      listChanged();
      kubelet.setStock(manager.stock());
    },
  });
  const health = () => manager.devices(RESOURCE).find(({ ID }) => ID === DEVICE)?.health;
  const until = (wanted) =>
    new Promise((resolve) => {
      listChanged = () => {
        if (health() === wanted) resolve({ nowMs: performance.now(), wallMs: Date.now() });
      };
      listChanged();
    });
  await kubelet.start();
  await manager.start();
  const agent = spawn(process.execPath, [MAIN, 'serve', ...flags(root, plugins, kubelet, interval)], { stdio: 'ignore' });
  try {
    await until('Healthy');
    const taken = [];
    const fromPolicy = [];
    for (let turn = 0; turn < times; turn += 1) {
      await sleep(Math.random() * (interval === '' ? 10_000 : 1_000));
      const isUp = turn % 2 === 1;
      const physical = port.replace(/state$/, 'phys_state');
      const beganMs = performance.now();
      writer.apply({ files: { [port]: isUp ? '4: ACTIVE\n' : '1: DOWN\n', [physical]: isUp ? '5: LinkUp\n' : '2: Polling\n' }, links: {} });
      const seen = await until(isUp ? 'Healthy' : 'Unhealthy');
      taken.push(seen.nowMs - beganMs);
      fromPolicy.push(seen.wallMs - (await lastChangeMs(join(root, 'web.sock'))));
    }
    return row(interval, taken, fromPolicy);
  } finally {
    agent.kill('SIGTERM');
    await once(agent, 'exit');
    await manager.stop();
    await kubelet.stop();
    rmSync(root, { recursive: true, force: true });
  }
}

/** Flapping and other conditions of a port that comes and goes would keep the device out. */
function configuration() {
  const off = { enabled: false };
  const conditions = { 'infiniband.PortDown': { for: '0s', recovery: '0s' }, '*.Flapping': off, 'infiniband.LinkFlapping': off };
  const resources = [{ resource: RESOURCE, select: { family: 'infiniband' } }];
  return JSON.stringify({ health: { conditions }, plugin: { resources } });
}

function flags(root, plugins, kubelet, interval) {
  return [
    `--path.sysfs=${root}/sys`,
    `--path.procfs=${root}/proc`,
    `--path.dev=${root}/dev`,
    `--podresources.socket=${kubelet.podResourcesSocket}`,
    `--podresources.checkpoint=${kubelet.checkpoint}`,
    `--plugin.dir=${plugins}`,
    `--config.file=${root}/config.yaml`,
    `--web.listen-address=${root}/web.sock`,
    `--state.file=${root}/state.json`,
    '--no-probe.nvidia',
    '--no-probe.fpga',
    ...(interval === '' ? [] : [`--refresh.interval=${interval}`]),
  ];
}

/** When the device last changed its state, as the agent's events tell. */
function lastChangeMs(socketPath) {
  return new Promise((resolve, reject) => {
    const look = () =>
      get({ socketPath, path: '/api/v1/events' }, async (response) => {
        const { events } = JSON.parse(Buffer.concat(await response.toArray()).toString());
        resolve(Date.parse(events.findLast(({ transition, device }) => transition === 'state' && device.endsWith(DEVICE)).time));
      }).on('error', reject);
    // An event is shown once it is on the disk.
    setTimeout(look, 100);
  });
}

function row(interval, taken, fromPolicy) {
  return {
    'refresh.interval': interval === '' ? 'default' : interval,
    facts: taken.length,
    'fact to kubelet, ms': summary(taken, 1).text,
    "from the policy's word, ms": summary(fromPolicy, 1).text,
  };
}
