// CPU and memory of reading the files of DRA drivers: 50 CDI specs, half of them YAML, and 20 metadata files, for 50 claims. First all files
// are new, then nothing changed, then one more claim came with a spec of its own.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { systemClock } from '../dist/host/clock.js';
import { ClaimReader } from '../dist/kubelet/claims/claims.js';
import { documentThread } from '../dist/kubelet/document-kinds.js';
import { report, summary } from './parts/measure.mjs';

const { values } = parseArgs({ options: { turns: { type: 'string', default: '200' }, rounds: { type: 'string', default: '9' } } });
const [SPECS, METADATA] = [50, 20];
const DRIVER = 'gpu.example.com';
/** Longer than the thread of documents stays without work. */
const IDLE_MS = 2_500;

const claimOf = (n) => ({
  name: `claim-${n}`,
  namespace: 'ml',
  driver: DRIVER,
  pool: 'node',
  device: `gpu-${n}`,
  cdiDevices: [`k8s.${DRIVER}/claim=uid-${n}`],
});

/** The size of a spec of one GPU as its driver writes it: nodes, mounts and environment. */
function specOf(n) {
  const deviceNodes = [`/dev/gpu${n}`, '/dev/gpuctl', '/dev/gpu-uvm', '/dev/gpu-modeset'].map((path, minor) => ({
    path,
    major: 195,
    minor,
  }));
  const mounts = Array.from({ length: 40 }, (_, at) => ({
    hostPath: `/usr/lib64/libexample-${at}.so.1`,
    containerPath: `/usr/lib64/libexample-${at}.so.1`,
    options: ['ro', 'nosuid', 'nodev', 'bind'],
  }));
  const devices = [{ name: `uid-${n}`, containerEdits: { env: [`GPU=${n}`], deviceNodes, mounts } }];
  return { cdiVersion: '0.6.0', kind: `k8s.${DRIVER}/claim`, devices };
}

function metadataOf(n) {
  const address = `0000:${n.toString(16).padStart(2, '0')}:00.0`;
  const attributes = { 'resource.kubernetes.io/pciBusID': { string: address }, uuid: { string: `GPU-${n}` } };
  return {
    kind: 'DeviceMetadata',
    apiVersion: 'metadata.resource.k8s.io/v1alpha1',
    metadata: { name: `claim-${n}`, namespace: 'ml', uid: `uid-${n}`, generation: 1 },
    requests: [{ name: 'r', devices: [{ driver: DRIVER, pool: 'node', name: `gpu-${n}`, attributes }] }],
  };
}

const root = mkdtempSync(join(tmpdir(), 'bench-documents-'));
const writeSpec = (n) =>
  n % 2 === 0
    ? writeFileSync(join(root, 'cdi', `${n}.json`), JSON.stringify(specOf(n)))
    : writeFileSync(join(root, 'cdi', `${n}.yaml`), stringify(specOf(n)));
for (const name of ['cdi', 'sys']) mkdirSync(join(root, name));
for (let n = 0; n < SPECS; n += 1) writeSpec(n);
for (let n = 0; n < METADATA; n += 1) {
  const directory = join(root, 'plugins', DRIVER, 'dra-device-metadata', `ml_claim-${n}`, 'r');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'metadata.json'), JSON.stringify(metadataOf(n)));
}

const settings = {
  metadataDirectory: join(root, 'plugins'),
  cdiDirectories: [join(root, 'cdi')],
  sysfs: join(root, 'sys'),
  clock: systemClock,
};
const reader = () => new ClaimReader({ ...settings, thread: documentThread(systemClock) });
const claims = Array.from({ length: SPECS }, (_, n) => ({ claim: claimOf(n) }));

async function cpuMs(work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

try {
  const rss = () => process.memoryUsage.rss() / 2 ** 20;
  const startMiB = rss();
  const [first, same, added] = [[], [], []];
  let highest = 0;
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const one = reader();
    first.push(await cpuMs(() => one.read(claims)));
    if (one.current().size !== SPECS) throw new Error(`${one.current().size} of ${SPECS} claims have hardware`);
    highest = Math.max(highest, rss());
    for (let turn = 0; turn < Number(values.turns); turn += 1) same.push(await cpuMs(() => one.read(claims)));
    await sleep(IDLE_MS);
    const n = SPECS + round;
    writeSpec(n);
    added.push(await cpuMs(() => one.read([...claims, { claim: claimOf(n) }])));
    rmSync(join(root, 'cdi', `${n}.${n % 2 === 0 ? 'json' : 'yaml'}`));
    await sleep(IDLE_MS);
  }
  const rows = [
    {
      'all files new, ms CPU': summary(first, 1).text,
      'nothing changed, ms CPU': summary(same, 2).text,
      'one more claim, ms CPU': summary(added, 1).text,
      'RSS before, MiB': startMiB.toFixed(0),
      'highest after a read, MiB': highest.toFixed(0),
      'RSS at the end, MiB': rss().toFixed(0),
    },
  ];
  report('documents', rows, { specs: SPECS, metadata: METADATA });
} finally {
  rmSync(root, { recursive: true, force: true });
}
