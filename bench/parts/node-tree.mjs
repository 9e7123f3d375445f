// A simulated node's files below a temporary directory, and a kubelet whose pods hold its devices.
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dist } from './dist.mjs';
import { addDriver } from './driver.mjs';

const { simulatedFamilies } = await dist('sim/families.js');
const { TreeWriter } = await dist('sim/tree-writer.js');
const { SimulatedKubelet } = await dist('sim/kubelet/kubelet.js');

/** Sysfs is never on a disk. */
const MEMORY = '/dev/shm';

/** `counts`: by the names of `--sim.devices`. `advance` moves all traffic counters on, in place as the kernel does. */
export async function makeNode(counts) {
  const root = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'device-agent-bench-'));
  // Every machine has these directories of sysfs; without them the agent takes sysfs for unmounted.
  for (const path of ['sys/class', 'sys/bus', 'sys/class/net/lo', 'proc', 'dev', 'bin', 'kubelet'])
    mkdirSync(join(root, path), { recursive: true });
  const writer = new TreeWriter(root);
  let elapsedMs = 60_000;
  let present = counts;
  const options = {};
  const write = () => {
    for (const { name: family, simulation } of simulatedFamilies) {
      const hardware = simulation.simulate({ counts: present, elapsedMs });
      writer.apply(hardware);
      options[family] = Object.fromEntries(
        Object.entries(hardware.options ?? {}).map(([name, value]) => [name, value.replaceAll('{root}', root)]),
      );
    }
  };
  write();
  const counters = counterFiles(root);
  return {
    root,
    options,
    roots: { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') },
    advance() {
      elapsedMs += 1_000;
      write();
    },
    /** Moves that share of the counters of each port, those of traffic first: `0.25` a quarter, `1` all. */
    move(share) {
      for (const port of counters)
        for (const file of port.slice(0, Math.round(share * port.length))) {
          file.value += 1_000n;
          writeFileSync(file.path, `${file.value}\n`);
        }
    },
    /** Share of the counters of a port that the four of its traffic are. */
    trafficShare: counters.length === 0 ? 0 : TRAFFIC.length / counters[0].length,
    /** Takes all virtual functions away, as a driver does that is told to have none. */
    tearDownVfs() {
      present = { ...present, 'infiniband.vf': 0 };
      for (let n = counts.infiniband ?? 0; ; n += 1) {
        const entry = join(root, 'sys/class/infiniband', `mlx5_${n}`);
        if (lstatSync(entry, { throwIfNoEntry: false }) === undefined) break;
        rmSync(entry);
      }
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

const TRAFFIC = ['port_rcv_data', 'port_xmit_data', 'port_rcv_packets', 'port_xmit_packets'];

/** The counters of each port of each adapter, those of traffic first. */
function counterFiles(root) {
  const adapters = join(root, 'sys/class/infiniband');
  const rank = (path) => (TRAFFIC.includes(path.slice(path.lastIndexOf('/') + 1)) ? 0 : 1);
  const namesIn = (path) => (existsSync(path) ? readdirSync(path) : []);
  return namesIn(adapters).flatMap((adapter) =>
    namesIn(join(adapters, adapter, 'ports')).map((port) =>
      ['counters', 'hw_counters']
        .map((kind) => join(adapters, adapter, 'ports', port, kind))
        .flatMap((folder) =>
          namesIn(folder)
            .filter((name) => name !== 'lifespan')
            .map((name) => join(folder, name)),
        )
        .sort((a, b) => rank(a) - rank(b))
        .map((path) => ({ path, value: BigInt(readFileSync(path, 'utf8')) })),
    ),
  );
}

/** A kubelet with `count` pods of which the first hold one of the ids each, with the NUMA node as a real one tells it. */
export async function makeKubelet(root, count, ids, resource = 'rdma/hca') {
  const kubelet = new SimulatedKubelet({ directory: join(root, 'kubelet') });
  await kubelet.start();
  for (let n = 0; n < count; n += 1) kubelet.admitPod(podOf(n, ids[n], resource));
  return kubelet;
}

export function podOf(n, id, resource = 'rdma/hca') {
  const devices = id === undefined ? [] : [{ resource, id, numaNodes: [n % 2] }];
  return {
    namespace: ['training', 'inference', 'storage'][n % 3],
    name: `job-${n}-worker-0`,
    uid: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    containers: [{ name: 'main', devices }],
  };
}

/** Machines as they are met; `everyday` is most of them. */
export const MACHINES = [
  { name: 'idle: no devices, no pods', pods: 0 },
  { name: 'everyday: 8 HCAs, 60 pods', counts: { infiniband: 8 }, pods: 60 },
  { name: 'everyday: 8 GPUs by nvidia-smi, 8 HCAs, 60 pods', counts: { nvidia: 8, infiniband: 8 }, pods: 60 },
  { name: 'everyday: 8 GPUs by NVML, 8 HCAs, 60 pods', driverGpus: 8, counts: { infiniband: 8 }, pods: 60 },
  { name: 'large: 136 HCA functions, 250 pods', counts: { infiniband: 8, 'infiniband.vf': 128 }, pods: 250 },
];

/** A node and its kubelet; `flags` are the agent's, `driverGpus` the GPUs of the driver's library beside those of `counts`. */
export async function makeMachine({ pods, driverGpus = 0, counts = {} }) {
  const node = await makeNode(counts);
  const { options = {} } = driverGpus === 0 ? {} : await addDriver(node, driverGpus);
  const flags = Object.entries(options).map(([name, value]) => `--probe.nvidia.${name}=${value}`);
  const hcaCount = (counts.infiniband ?? 0) + (counts['infiniband.vf'] ?? 0);
  const ids = Array.from({ length: hcaCount }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, pods, ids);
  const remove = async () => {
    await kubelet.close();
    node.remove();
  };
  return { node, kubelet, flags, hcaCount, deviceCount: hcaCount + (counts.nvidia ?? 0) + driverGpus, remove };
}
