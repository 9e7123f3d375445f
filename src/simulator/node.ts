import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { type Clock, systemClock } from '../host/clock.ts';
import type { Scenario, SimulatedHardware } from '../model/simulated.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { DeviceUse } from './device-use.ts';
import { type FaultyFamily, type NodeFault, NodeFaults } from './faults.ts';
import { SimulatedDeviceManager } from './kubelet/device-manager.ts';
import { SimulatedKubelet } from './kubelet/kubelet.ts';
import type { SimulatedDevice } from './kubelet/pods.ts';
import { NodePods } from './node-pods.ts';
import type { SimulationOptions } from './options.ts';
import { planPods } from './pods.ts';
import { Story } from './story.ts';
import { TreeWriter } from './tree-writer.ts';

/** Pool resource with opaque ids for the last HCA. */
const POOL = 'rdma/hca_shared';
const PF_RESOURCE = 'nvidia.com/ib_pf';
/** In the demo, the agent's own plugin serves the virtual functions under another name. */
const VF_RESOURCE = 'openshift.io/ib_vf';
const SERVED = 'device-agent.dev/vf';

/** Beginning of the name of a node's directory, in the directory of temporary files. */
export const NODE_PREFIX = 'device-agent-node-';

/** A simulated node of files, small programs and a gRPC kubelet, in one temporary directory. */
export class SimulatedNode {
  readonly root: string;
  readonly kubelet: SimulatedKubelet;
  readonly manager: SimulatedDeviceManager;
  readonly #families: readonly DeviceFamily[];
  readonly #options: SimulationOptions;
  readonly #clock: Clock;
  readonly #writer: TreeWriter;
  readonly #startedMs: number;
  readonly #familyOptions = new Map<string, Readonly<Record<string, string>>>();
  readonly #pods: NodePods;
  readonly #use = new DeviceUse();
  #faulty: readonly FaultyFamily[] = [];
  readonly #story: Story;
  /** What runs now and what ended. A change is seen in the files at the next step. */
  readonly faults = new NodeFaults(() => this.#faulty);
  #idleIds: ReadonlySet<string> = new Set();
  #stoppedIds: readonly string[] = [];
  #hasStock = false;
  #break = (_error: unknown): void => {};
  /** Resolves with the error when the simulation cannot continue, for example because its directory was removed. */
  readonly broken = new Promise<unknown>((resolve) => {
    this.#break = resolve;
  });
  #cancel = (): void => {};

  constructor(families: readonly DeviceFamily[], options: SimulationOptions, clock: Clock = systemClock) {
    this.#families = families;
    this.#options = options;
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
    this.#story = new Story(this.faults, () => this.#faulty);
    this.root = mkdtempSync(join(tmpdir(), NODE_PREFIX));
    for (const folder of ['sys', 'proc', 'dev', 'bin', 'kubelet/device-plugins']) mkdirSync(join(this.root, folder), { recursive: true });
    // A device that no family knows.
    writeFileSync(join(this.root, 'dev/ttyUSB0'), '');
    this.#writer = new TreeWriter(this.root);
    this.kubelet = new SimulatedKubelet({ directory: join(this.root, 'kubelet') });
    const onChange = (): void => this.#pods.stockChanged();
    this.manager = new SimulatedDeviceManager({ directory: this.#pluginDirectory, onChange });
    this.#pods = new NodePods({ kubelet: this.kubelet, manager: this.manager, fromPlugins: new Set([SERVED]) });
  }

  async start(): Promise<void> {
    this.step();
    this.#writeConfiguration();
    await this.kubelet.start();
    await this.manager.start();
    this.#tick();
  }

  /** Updates hardware and pods to the elapsed time. */
  step(elapsedMs: number = this.elapsedMs): void {
    if (this.#options.story === 'on') this.#story.step(elapsedMs);
    const hardware = this.#hardware(elapsedMs);
    for (const part of hardware) this.#writer.apply(part);
    this.#placePods(hardware, elapsedMs);
  }

  /** Time since the node's start. */
  get elapsedMs(): number {
    return this.#clock.monotonic() - this.#startedMs;
  }

  /** Begins a fault at once. Throws a {@link FaultRefusal} for an unknown fault or device. */
  begin(name: string, device?: string): NodeFault {
    const fault = this.faults.begin(name, device, this.elapsedMs);
    this.step();
    return fault;
  }

  /** Ends all faults, or those of one name or one device, at once. */
  clear(what?: string): readonly NodeFault[] {
    const ended = this.faults.clear(what, this.elapsedMs);
    this.step();
    return ended;
  }

  /** Returns the flags that make an agent use this node. Nothing else shows the agent that the node is simulated. */
  flags(): readonly string[] {
    const families = [...this.#familyOptions].flatMap(([family, options]) =>
      Object.entries(options).map(([name, value]) => `--probe.${family}.${name}=${value.replaceAll('{root}', this.root)}`),
    );
    return [
      `--path.sysfs=${this.root}/sys`,
      `--path.procfs=${this.root}/proc`,
      `--path.dev=${this.root}/dev`,
      `--podresources.socket=${this.kubelet.podResourcesSocket}`,
      `--podresources.checkpoint=${this.kubelet.checkpoint}`,
      `--plugin.dir=${this.#pluginDirectory}`,
      `--state.file=${this.root}/state/health.json`,
      `--config.file=${this.#configFile}`,
      ...families,
    ];
  }

  /** Stops everything and removes the directory. */
  async stop(): Promise<void> {
    this.#cancel();
    await this.#pods.stop();
    await this.kubelet.stop();
    rmSync(this.root, { recursive: true, force: true });
  }

  get #pluginDirectory(): string {
    return join(this.root, 'kubelet/device-plugins');
  }

  get #configFile(): string {
    return join(this.root, 'device-agent.yaml');
  }

  #tick(): void {
    this.#cancel = this.#clock.after(this.#options.step, () => {
      try {
        this.step();
        this.#tick();
      } catch (error) {
        this.#break(error);
      }
    });
  }

  #hardware(elapsedMs: number): readonly SimulatedHardware[] {
    const { gpus, hcas, vfs, fpgas, devices } = this.#options;
    const counts = deviceCounts(
      devices,
      this.#families.map(({ name }) => name),
    );
    // The processes of a pod end before the kubelet forgets it. Those of a new pod begin at the next step, when the kubelet knows it.
    const staying = new Set(
      planPods([], this.#options.pods, this.#podChanges(elapsedMs)).map(({ namespace, name }) => `${namespace}/${name}`),
    );
    const pods = this.kubelet.pods().filter(({ namespace, name }) => staying.has(`${namespace}/${name}`));
    const use = this.#use.at(elapsedMs, pods, new Set([...this.#idleIds, ...this.#stoppedIds]));
    const scenario: Scenario = { gpus, hcas, vfs, fpgas, counts, elapsedMs, use };
    const simulated = this.#families.flatMap((family) => {
      const hardware = family.simulate?.({ ...scenario, faults: this.faults.of(family.name) });
      if (hardware === undefined) return [];
      this.#familyOptions.set(family.name, hardware.options ?? {});
      return [{ family, hardware }];
    });
    this.#faulty = simulated.flatMap(({ family, hardware: { targets = [] } }) =>
      targets.length === 0 ? [] : [{ family: family.name, faults: family.faults ?? [], targets }],
    );
    this.#stoppedIds = simulated.flatMap(({ hardware }) => hardware.stoppedIds ?? []);
    return simulated.map(({ hardware }) => hardware);
  }

  #placePods(hardware: readonly SimulatedHardware[], elapsedMs: number): void {
    const stock = hardware.flatMap((part) => part.resources).map((supply) => served(withoutPooled(supply)));
    const nodesOf = new Map(
      stock.flatMap(({ resource, deviceIds, numaNodes }) => deviceIds.map((id, n) => [`${resource} ${id}`, numaNodes?.[n]] as const)),
    );
    const deviceOf = (resource: string, id: string): SimulatedDevice => {
      const numaNode = nodesOf.get(`${resource} ${id}`);
      return numaNode === undefined ? { resource, id } : { resource, id, numaNodes: [numaNode] };
    };
    if (!this.#hasStock) {
      const others = stock.filter(({ resource }) => resource !== SERVED);
      this.#pods.setStock(others.flatMap(({ resource, deviceIds }) => deviceIds.map((id) => deviceOf(resource, id))));
      this.#hasStock = true;
    }
    const plan = planPods(stock, this.#options.pods, this.#podChanges(elapsedMs));
    this.#idleIds = new Set(plan.flatMap(({ idleIds = [] }) => idleIds));
    this.#pods.place(plan, deviceOf);
  }

  #podChanges(elapsedMs: number): number {
    const every = this.#options['pod-change'];
    return every === 0 ? 0 : Math.floor(elapsedMs / every);
  }

  #writeConfiguration(): void {
    const last = `mlx5_${this.#options.hcas - 1}`;
    writeFileSync(
      this.#configFile,
      `# The ids of the pool are plain numbers, so this rule names their HCA.
join:
  rules:
    - resource: ${POOL}
      devices: [${last}]
# The agent's own device plugin serves the virtual functions and reports their health to the kubelet.
plugin:
  resources:
    - resource: ${SERVED}
      select: { family: infiniband, kind: vf }
      idStrategy: bdf
`,
    );
  }
}

/** Largest number of simulated devices of one family. */
const MOST_DEVICES = 200;

/** Parses entries `family=count`. Throws `flag-invalid` for an entry of another form and for an unknown family. */
export function deviceCounts(entries: readonly string[], families: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    entries.map((entry) => {
      const match = /^([a-z][a-z0-9-]*)=(\d{1,4})$/.exec(entry.trim());
      const count = Number(match?.[2]);
      if (match === null || count > MOST_DEVICES || !families.includes(match[1] as string)) {
        throw new UserError('flag-invalid', {
          flag: '--sim.devices',
          problem: `${entry} is not family=count with at most ${MOST_DEVICES}; families are ${families.join(', ')}`,
        });
      }
      return [match[1], count];
    }),
  );
}

function served<T extends { readonly resource: string }>(supply: T): T {
  return supply.resource === VF_RESOURCE ? { ...supply, resource: SERVED } : supply;
}

/** Removes the last HCA, because the pool offers it. */
function withoutPooled<T extends { readonly resource: string; readonly deviceIds: readonly string[] }>(supply: T): T {
  return supply.resource === PF_RESOURCE ? { ...supply, deviceIds: supply.deviceIds.slice(0, -1) } : supply;
}
