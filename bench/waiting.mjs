// CPU and memory of the whole agent for one container with 8 GPUs by NVML and 8 HCAs at the default interval: without the search for
// containers that wait, with it, and while it reads the devices each second, as it does while a container seems to wait.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { addDriver } from './parts/driver.mjs';
import { cpuMillis, report, rssMiB } from './parts/measure.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '90' },
    settle: { type: 'string', default: '25' },
    interval: { type: 'string', default: '10' },
  },
});
const [GPUS, HCAS] = [8, 8];
const CASES = [
  { name: 'off', flags: ['--no-stall.enabled'] },
  { name: 'on', flags: [] },
  { name: 'on, reads each second', flags: ['--stall.sample=1s'] },
];

const node = await makeNode({ infiniband: HCAS });
const driver = await addDriver(node, GPUS);
const kubelet = await makeKubelet(node.root, 0, []);
const idsOf = (resource, ids) => ids.map((id) => ({ resource, id, numaNodes: [0] }));
const hcas = Array.from({ length: HCAS }, (_, n) => `mlx5_${n}`);
kubelet.admitPod({
  namespace: 'training',
  name: 'job-0',
  uid: '00000000-0000-4000-8000-000000000000',
  containers: [{ name: 'main', devices: [...idsOf('nvidia.com/gpu', driver.ids), ...idsOf('rdma/hca', hcas)] }],
});
const options = Object.entries(driver.options).map(([name, value]) => `--probe.nvidia.${name}=${value}`);
try {
  const rows = [];
  for (const { name, flags } of CASES) rows.push(await measure(name, flags));
  report('waiting', rows, { seconds: Number(values.seconds) });
} finally {
  await kubelet.close();
  node.remove();
}

async function measure(name, flags) {
  const agent = await startServe(node, kubelet, { interval: `${values.interval}s`, flags: [...options, ...flags] });
  try {
    const move = setInterval(() => node.advance(), 1_000);
    await sleep(Number(values.settle) * 1_000);
    const page = await (await fetch(`http://127.0.0.1:${agent.port}/metrics`)).text();
    const held = page.match(/^container_device_allocation\{/gm)?.length ?? 0;
    const told = /^container_device_(?:waiting|last_progress_timestamp_seconds)\{/m.test(page);
    if (held !== GPUS + HCAS || told === (name === 'off')) throw new Error(`${held} devices held; waiting told: ${told}`);
    const runs = () => Number(/^device_agent_probe_runs_total\{family="nvidia"\} (\d+)/m.exec(page)?.[1]);
    const [cpu, before] = [cpuMillis(agent.pid), runs()];
    await sleep(Number(values.seconds) * 1_000);
    const used = cpuMillis(agent.pid) - cpu;
    clearInterval(move);
    const after = await (await fetch(`http://127.0.0.1:${agent.port}/metrics`)).text();
    const reads = Number(/^device_agent_probe_runs_total\{family="nvidia"\} (\d+)/m.exec(after)?.[1]) - before;
    return {
      waiting: name,
      'reads of GPUs': reads,
      'CPU, ms a second': (used / Number(values.seconds)).toFixed(2),
      'RSS MiB': rssMiB(agent.pid).toFixed(0),
    };
  } finally {
    await agent.stop();
  }
}
