import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { hopper, scriptOf } from '../probes/nvidia/scripted-script.ts';
import { compiledLibrary } from '../support/compiled-library.ts';
import { eventually } from '../support/until.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { MemoryGroup } from './support/memory-group.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();
/** How often each set of commands runs. */
const ROUNDS = Number(process.env.COMMAND_ROUNDS ?? 3);
const IN_NAMESPACE = ['-n', 'device-agent'];
const COUNTS = { amdgpu: 8, intelgpu: 4, infiniband: 8, 'infiniband.vf': 8, netdev: 8, fpga: 4, nvme: 8 };
const GPUS = 8;
const DEVICE = /^device_info\{.*?family="([a-z]+)"/gm;

const LIST = ['list'];
const DOCTOR = ['doctor'];
const CAPTURE = ['capture', '-o', '-'];
const SETS: readonly { readonly name: string; readonly runs: readonly (readonly string[])[] }[] = [
  { name: 'two list', runs: [LIST, LIST] },
  { name: 'list and doctor', runs: [LIST, DOCTOR] },
  { name: 'five health', runs: Array.from({ length: 5 }, () => ['health']) },
  { name: 'doctor', runs: [DOCTOR] },
  { name: 'capture', runs: [CAPTURE] },
  { name: 'capture, list and doctor', runs: [CAPTURE, LIST, DOCTOR] },
];

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string };
    readonly status: { readonly podIP: string; readonly containerStatuses: readonly { readonly restartCount: number }[] };
  }[];
}

describe.skipIf(missing !== undefined)(
  `commands in the pod of the default chart${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine(COUNTS) : (undefined as never);
    let directory: string;
    let name: string;
    let address: string;
    let memory: MemoryGroup;

    const agents = async (): Promise<Pods['items']> =>
      (await cluster.json<Pods>('get', 'pods', ...IN_NAMESPACE, '-l', 'app.kubernetes.io/name=device-agent')).items;
    const command = async (words: readonly string[]): Promise<void> => {
      // The default chart hides the kernel log and the processes of the node, and doctor says so with the status 1.
      const isDone = (error: Error): boolean => words === DOCTOR && / findings\.\n[\s\S]*exit code 1\b/.test(error.message);
      const output = await cluster.kubectl('exec', ...IN_NAMESPACE, name, '--', 'device-agent', ...words).catch((error: Error) => {
        if (isDone(error)) return error.message;
        throw error;
      });
      expect(output).not.toBe('');
    };

    /** The driver's library and the PCI functions of GPUs; the pod has no shell that could run a simulated nvidia-smi. */
    const addGpus = (): string => {
      const boards = Array.from({ length: GPUS }, (_, index) =>
        hopper(index, { bus_id: `00000000:${(0xc0 + index).toString(16).toUpperCase()}:00.0` }),
      );
      for (const { values } of boards) {
        const pci = join(machine.root, 'sys/bus/pci/devices', String(values.bus_id).slice(4).toLowerCase());
        mkdirSync(pci, { recursive: true });
        for (const [file, text] of Object.entries({ vendor: '0x10de', class: '0x030200' })) writeFileSync(join(pci, file), `${text}\n`);
      }
      const driver = join(machine.root, 'driver');
      mkdirSync(driver);
      const library = join(driver, 'libnvidia-ml.so.1');
      copyFileSync(compiledLibrary('test/probes/nvidia/stub/nvml.c'), library);
      writeFileSync(`${library}.script`, scriptOf({ lines: ['moves = 1'], gpus: boards }));
      return driver;
    };

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'device-agent-commands-'));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(1);
      await cluster.importImage(join(directory, 'image'));
      await cluster.kubectl('create', 'namespace', 'device-agent');
      await cluster.kubectl('label', 'namespace', 'device-agent', 'pod-security.kubernetes.io/enforce=privileged');
      const values = {
        image: { pullPolicy: 'Never' },
        hostPaths: [
          { name: 'simulation', hostPath: join(machine.root, 'sys'), mountPath: '/simulation' },
          { name: 'driver', hostPath: addGpus(), mountPath: '/usr/local/nvidia/lib64' },
        ],
        extraEnv: [
          { name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' },
          // A pod has other network interfaces than the simulated ones.
          { name: 'DEVICE_AGENT_PROBE_NETDEV_SOURCE', value: 'sysfs' },
        ],
      };
      const file = join(directory, 'values.yaml');
      writeFileSync(file, JSON.stringify(values));
      await cluster.helm('install', 'device-agent', 'deploy/chart', ...IN_NAMESPACE, '-f', file, '--wait', '--timeout=180s');
      const [agent] = await agents();
      if (agent === undefined) throw new Error('no agent was started');
      name = agent.metadata.name;
      address = agent.status.podIP;
      memory = new MemoryGroup(agent.metadata.uid);
    });

    afterAll(async () => {
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
    });

    it('reads devices of each family that is simulated, below the limit that the documents name', async () => {
      const families = async (): Promise<readonly string[]> => {
        const page = await cluster.get(`http://${address}:9835/metrics`);
        return [...new Set([...page.matchAll(DEVICE)].map(([, family]) => family as string))].toSorted();
      };
      await expect.poll(families, { interval: 500 }).toEqual(['amdgpu', 'fpga', 'infiniband', 'intelgpu', 'netdev', 'nvidia', 'nvme']);
      expect(memory.limitMib()).toBe(384);
    });

    it.each(SETS)('runs $name at once, and the kernel kills no process', async ({ name: set, runs }) => {
      const peaks: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        memory.reset();
        await Promise.all(runs.map(command));
        peaks.push(memory.peakMib());
        expect(memory.kills()).toBe(0);
      }
      expect((await agents()).flatMap(({ status }) => status.containerStatuses.map(({ restartCount }) => restartCount))).toEqual([0]);
      const [least, most] = [Math.min(...peaks), Math.max(...peaks)].map((mib) => mib.toFixed(0));
      process.stderr.write(`${set}: ${ROUNDS} rounds, highest memory of the pod ${least} to ${most} MiB\n`);
    });

    it('are reached by kubectl devices from anywhere: by node, by device, and all that is not well', async () => {
      const devices = (words: string): Promise<string> =>
        cluster
          .shell(undefined, `PATH=$PWD/deploy/kubectl:$PATH kubectl devices ${words}`, process.cwd())
          .catch(({ message }: Error) => message);
      const [agent] = (await cluster.json<{ items: { spec: { nodeName: string } }[] }>('get', 'pods', ...IN_NAMESPACE)).items;
      const node = agent?.spec.nodeName;
      expect(await devices(`node/${node}`)).toMatch(/mlx5_3/);
      expect(await devices('mlx5_3')).toMatch(new RegExp(`^${node}:\\n1 of 1 devices healthy\\n.*mlx5_3 healthy`));
      expect(await devices('mlx5_99')).toContain('no agent that answers knows the device mlx5_99');
      expect(await devices('node/elsewhere')).toContain('no agent runs on the node elsewhere');
      writeFileSync(join(machine.root, 'sys/class/infiniband/mlx5_3/ports/1/state'), '1: DOWN\n');
      await eventually(async () => expect(await devices('-A')).toMatch(new RegExp(`${node}:\\n(?:  .*\\n)*?  .*mlx5_3.*PortDown`)));
    });
  },
);
