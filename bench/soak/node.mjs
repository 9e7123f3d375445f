// The node that the agent runs on during a soak: hardware as files, a kubelet with its device manager, and what changes all the time.
import { mkdirSync, readlinkSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { dist } from '../parts/dist.mjs';
import { makeNode } from '../parts/node-tree.mjs';

const { SimulatedKubelet } = await dist('sim/kubelet/kubelet.js');
const { SimulatedDeviceManager } = await dist('sim/kubelet/device-manager.js');
const { admitThroughPlugins } = await dist('sim/kubelet/admission.js');

const COUNTS = { infiniband: 8, 'infiniband.vf': 16, nvidia: 8, fpga: 2 };
const HCAS = Array.from({ length: COUNTS.infiniband }, (_, n) => `mlx5_${n}`);
const VFS = Array.from({ length: COUNTS['infiniband.vf'] }, (_, n) => `mlx5_${COUNTS.infiniband + n}`);
/** What the agent's own plugin serves. */
export const SERVED = { name: 'soak.example/vf', replicated: 'soak.example/hca-share' };
/** The verdicts follow the faults at once, so that the churn reaches the events and the kubelet's lists. */
const CONFIGURATION = `plugin:
  resources:
    - resource: ${SERVED.name}
      select: { family: infiniband, kind: vf }
      idStrategy: bdf
    - resource: ${SERVED.replicated}
      select: { family: infiniband, kind: pf }
      replicas: 4
health:
  conditions:
    infiniband.PortDown: { for: 100ms, recovery: 200ms }
`;

export async function makeSoakNode(podsAlive) {
  const node = await makeNode(COUNTS);
  const { root } = node;
  const pluginDirectory = join(root, 'kubelet/device-plugins');
  mkdirSync(pluginDirectory, { recursive: true });
  writeFileSync(join(root, 'device-agent.yaml'), CONFIGURATION);
  const kubelet = new SimulatedKubelet({ directory: join(root, 'kubelet') });
  const others = HCAS.map((id, n) => ({ resource: 'rdma/hca', id, numaNodes: [n % 2] }));
  const manager = new SimulatedDeviceManager({ directory: pluginDirectory, onChange: () => stockChanged() });
  const stockChanged = () => kubelet.setStock({ devices: [...others, ...manager.stock().devices], cpus: [0, 1, 2, 3], memory: [] });
  stockChanged();
  await kubelet.start();
  await manager.start();
  const parts = { root, node, kubelet, manager, pluginDirectory, podsAlive };
  const churns = {
    pods: churnOfPods(parts),
    'plugin-pods': churnOfPluginPods(parts),
    devices: churnOfDevices(parts),
    faults: churnOfFaults(parts),
    decoys: churnOfDecoys(parts),
  };
  return {
    ...parts,
    churns,
    roots: node.roots,
    options: node.options,
    podResourcesSocket: kubelet.podResourcesSocket,
    checkpoint: kubelet.checkpoint,
    flags: [`--config.file=${join(root, 'device-agent.yaml')}`, `--plugin.dir=${pluginDirectory}`],
    async stop() {
      for (const churn of Object.values(churns)) await churn.end?.();
      await manager.stop();
      await kubelet.close();
      node.remove();
    },
  };
}

let names = 0;
/** A name that no pod had before and no pod will have again, in the form of a job's pods. */
const newName = () => {
  names += 1;
  return `job-${names}-${Math.random().toString(36).slice(2, 7)}`;
};
const uidOf = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** One pod ends and another begins. Most pods hold devices of their own; the others show that pods without devices cost nothing. */
function churnOfPods({ kubelet, podsAlive }) {
  const alive = [];
  const gpuOf = (n) => `GPU-5e1f0000-0000-4000-8000-${String((n % COUNTS.nvidia) + 1).padStart(12, '0')}`;
  const devicesOf = (n) =>
    [
      [{ resource: 'rdma/hca', id: HCAS[n % COUNTS.infiniband], numaNodes: [n % 2] }],
      [{ resource: 'nvidia.com/gpu', id: gpuOf(n) }],
      [{ resource: 'openshift.io/ib_vf', id: VFS[n % COUNTS['infiniband.vf']] }],
      // Some plugins make a new id for each pod, which no family knows.
      [{ resource: 'other.example/slice', id: `slice-${n}` }],
      [],
    ][n % 5];
  return {
    isPaused: false,
    step() {
      if (this.isPaused) return;
      const name = newName();
      const containers = [{ name: 'main', devices: devicesOf(names) }];
      if (names % 3 === 0) containers.push({ name: `side-${names}`, devices: [] });
      kubelet.admitPod({ namespace: `team-${names % 7}`, name, uid: uidOf(names), containers });
      alive.push({ namespace: `team-${names % 7}`, name });
      if (alive.length <= podsAlive) return;
      const { namespace, name: gone } = alive.shift();
      kubelet.removePod(namespace, gone);
    },
  };
}

/** Pods whose devices the agent's own plugin serves. The kubelet asks the plugin for each of them. */
function churnOfPluginPods({ kubelet, manager }) {
  const alive = [];
  let isBusy = false;
  const remove = () => {
    const { namespace, name, uid } = alive.shift();
    kubelet.removePod(namespace, name);
    manager.release(uid);
  };
  return {
    async step() {
      if (isBusy) return;
      isBusy = true;
      const name = newName();
      const pod = { namespace: 'served', name, uid: uidOf(names) };
      const wants = [
        { resource: SERVED.name, count: 2 },
        { resource: SERVED.replicated, count: 1 },
      ];
      alive.push(pod);
      // The plugin is not registered while the kubelet starts, and a device may be sick. The kubelet refuses the pod then.
      await admitThroughPlugins(kubelet, manager, { ...pod, containers: [{ name: 'main', devices: [], wants }] }).catch(() => {});
      while (alive.length > 5) remove();
      isBusy = false;
    },
  };
}

/** One device of the class vanishes, and the one that was away longest comes back, as when a driver is bound and unbound. */
function churnOfDevices({ root }) {
  // The first ones stay: other parts of the soak use them.
  const names = [...HCAS.slice(4, 6), ...VFS.slice(4)].map((name) => join(root, 'sys/class/infiniband', name));
  const links = new Map([...names, join(root, 'sys/class/fpga_region/region1')].map((path) => [path, readlinkSync(path)]));
  const present = [...links.keys()];
  const away = [];
  return {
    step() {
      const [gone] = present.splice(Math.floor(Math.random() * present.length), 1);
      unlinkSync(gone);
      away.push(gone);
      if (away.length <= 3) return;
      const back = away.shift();
      symlinkSync(links.get(back), back);
      present.push(back);
    },
  };
}

/** Ports lose their links and get them back. */
function churnOfFaults({ root }) {
  const ports = ['mlx5_2', 'mlx5_3', VFS[0], VFS[1], VFS[2]].map((name) => join(root, 'sys/class/infiniband', name, 'ports/1'));
  const isDown = new Set();
  return {
    step() {
      const port = ports[Math.floor(Math.random() * ports.length)];
      const goesDown = !isDown.has(port);
      // In place and of one length, as the kernel's files are read.
      writeFileSync(join(port, 'state'), goesDown ? '1: DOWN\n\n\n' : '4: ACTIVE\n', { flag: 'r+' });
      writeFileSync(join(port, 'phys_state'), goesDown ? '2: Polling\n' : '5: LinkUp\n\n', { flag: 'r+' });
      if (goesDown) isDown.add(port);
      else isDown.delete(port);
    },
  };
}

/** Sockets of other plugins in the kubelet's directory: listening ones, dead ones, plain files, and some named as the agent names its own. */
function churnOfDecoys({ pluginDirectory }) {
  const open = [];
  let count = 0;
  const make = async () => {
    count += 1;
    const path = join(pluginDirectory, count % 3 === 0 ? `device-agent-${count}.sock` : `other-${count}.sock`);
    if (count % 4 === 0) {
      writeFileSync(path, 'not a socket');
      return { path, close() {} };
    }
    const server = createServer((socket) => socket.destroy()).on('error', () => {});
    server.listen(path);
    return { path, close: () => server.close() };
  };
  const close = (decoy) => {
    decoy.close();
    rmSync(decoy.path, { force: true });
  };
  return {
    async step() {
      open.push(await make());
      if (open.length > 6) close(open.shift());
    },
    end() {
      for (const decoy of open.splice(0)) close(decoy);
    },
  };
}
