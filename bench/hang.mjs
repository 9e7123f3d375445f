// What a hung probe costs the others: scrapes and refreshes of an agent on a sound node, and on one where a counter file of an HCA
// and nvidia-smi never answer. Run after `npm run build`: node bench/hang.mjs
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { familyLoaders } from '../dist/probes/families.js';
import { TreeWriter } from '../dist/simulator/tree-writer.js';

const SCRAPES = 600;

async function makeNode(isHung) {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-bench-hang-'));
  const scenario = { gpus: 8, hcas: 8, vfs: 0, fpgas: 2, elapsedMs: 0 };
  for (const load of Object.values(familyLoaders)) {
    const hardware = (await load()).simulate?.(scenario);
    if (hardware !== undefined) new TreeWriter(root).apply(hardware);
  }
  if (isHung) {
    const counter = join(root, 'sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data');
    unlinkSync(counter);
    execFileSync('mkfifo', [counter]);
    writeFileSync(join(root, 'bin/nvidia-smi'), '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n');
    chmodSync(join(root, 'bin/nvidia-smi'), 0o755);
  }
  return root;
}

async function start(root) {
  const flags = [
    'serve',
    '--web.listen-address=127.0.0.1:0',
    '--log.format=json',
    '--state.file=',
    '--refresh.interval=1s',
    '--refresh.timeout=2s',
    `--path.sysfs=${root}/sys`,
    `--path.procfs=${root}/proc`,
    `--path.dev=${root}/dev`,
    `--probe.nvidia.smi-path=${root}/bin/nvidia-smi`,
    `--podresources.socket=${root}/none.sock`,
    '--podresources.checkpoint=',
  ];
  const child = spawn(process.execPath, [new URL('../dist/cli/main.js', import.meta.url).pathname, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  const url = await new Promise((resolve) => {
    child.stderr.on('data', (chunk) => {
      log += chunk;
      const found = /"address":"(http:[^"]+)"/.exec(log);
      if (found !== null) resolve(found[1]);
    });
  });
  return { child, url };
}

const scrape = async (url) => {
  const begun = performance.now();
  const text = await (await fetch(`${url}/metrics`)).text();
  return { ms: performance.now() - begun, text };
};
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const runs = (text, family) =>
  Number(new RegExp(`^device_agent_probe_runs_total\\{family="${family}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);

async function measure(name, root) {
  const { child, url } = await start(root);
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  const before = await scrape(url);
  const begun = performance.now();
  const times = [];
  for (let n = 0; n < SCRAPES; n++) {
    times.push((await scrape(url)).ms);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const seconds = (performance.now() - begun) / 1_000;
  const after = await scrape(url);
  const exitBegun = performance.now();
  child.kill('SIGTERM');
  const [status] = await once(child, 'exit');
  const exitMs = performance.now() - exitBegun;
  times.sort((a, b) => a - b);
  const rate = (family) => ((runs(after.text, family) - runs(before.text, family)) / seconds).toFixed(2);
  return {
    node: name,
    'scrape p50 ms': at(times, 0.5).toFixed(2),
    'scrape p99 ms': at(times, 0.99).toFixed(2),
    'fpga runs/s': rate('fpga'),
    'infiniband runs/s': rate('infiniband'),
    'nvidia runs/s': rate('nvidia'),
    'HCAs read': new Set(after.text.match(/^device_received_bytes_total\{device="mlx5_\d+"/gm) ?? []).size,
    'exit ms': exitMs.toFixed(0),
    'exit status': status,
  };
}

const rows = [];
for (let round = 0; round < 2; round++) {
  for (const isHung of [false, true]) {
    const root = await makeNode(isHung);
    rows.push(await measure(isHung ? 'two hangs' : 'sound', root));
    rmSync(root, { recursive: true, force: true });
  }
}
console.table(rows);
