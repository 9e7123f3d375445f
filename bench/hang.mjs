// What a hung probe costs the others: scrapes and refreshes of an agent on a sound node, and on one where a counter file of an HCA
// and nvidia-smi never answer.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DIST, dist } from './parts/dist.mjs';
import { quantile, report } from './parts/measure.mjs';
import { startAgent } from './parts/serve.mjs';

const { values } = parseArgs({ options: { scrapes: { type: 'string', default: '600' } } });
/** By then the hangs have been noticed. */
const SETTLE_MS = 6_000;
const { familyLoaders } = await dist('probes/families.js');
const { TreeWriter } = await dist('simulator/tree-writer.js');

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

function start(root) {
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
  return startAgent([`${DIST}/cli/main.js`, ...flags]);
}

const scrape = async (port) => {
  const begun = performance.now();
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return { ms: performance.now() - begun, text };
};
const runs = (text, family) =>
  Number(new RegExp(`^device_agent_probe_runs_total\\{family="${family}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);

async function measure(name, root) {
  const { port, stop } = await start(root);
  try {
    await sleep(SETTLE_MS);
    const before = await scrape(port);
    const begun = performance.now();
    const times = [];
    for (let n = 0; n < Number(values.scrapes); n += 1) {
      times.push((await scrape(port)).ms);
      await sleep(10);
    }
    const seconds = (performance.now() - begun) / 1_000;
    const after = await scrape(port);
    const exitBegun = performance.now();
    const status = await stop();
    const exitMs = performance.now() - exitBegun;
    const rate = (family) => ((runs(after.text, family) - runs(before.text, family)) / seconds).toFixed(2);
    return {
      node: name,
      'scrape p50 ms': quantile(times, 0.5).toFixed(2),
      'scrape p99 ms': quantile(times, 0.99).toFixed(2),
      'fpga runs/s': rate('fpga'),
      'infiniband runs/s': rate('infiniband'),
      'nvidia runs/s': rate('nvidia'),
      'HCAs read': new Set(after.text.match(/^device_received_bytes_total\{device="mlx5_\d+"/gm) ?? []).size,
      'exit ms': exitMs.toFixed(0),
      'exit status': status,
    };
  } finally {
    await stop();
  }
}

const rows = [];
for (const isHung of [false, true]) {
  const root = await makeNode(isHung);
  try {
    rows.push(await measure(isHung ? 'two hangs' : 'sound', root));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
report('hang', rows);
