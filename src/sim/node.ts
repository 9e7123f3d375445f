import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { type Clock, systemClock } from '../host/clock.ts';
import { DeviceUse } from './device-use.ts';
import type { FamilySimulation, Scenario, SimulatedFamily, SimulatedHardware, SimulatedWorkload } from './family-simulation.ts';
import { type FaultyFamily, type NodeFault, NodeFaults } from './faults.ts';
import { kernelLogText } from './kernel-log.ts';
import { SimulatedDeviceManager } from './kubelet/device-manager.ts';
import { SimulatedKubelet } from './kubelet/kubelet.ts';
import type { SimulatedDevice } from './kubelet/pods.ts';
import { NodePods } from './node-pods.ts';
import type { SimulationOptions } from './options.ts';
import { mixed, planPods } from './pods.ts';
import { countsOf, sizesOf } from './sizes.ts';
import { Story } from './story.ts';
import { TreeWriter } from './tree-writer.ts';

/** Beginning of the name of a node's directory, in the directory of temporary files. */
export const NODE_PREFIX = 'device-agent-node-';

/** The state file of the agent, in the directory of its node. */
export const STATE_FILE = 'state/health.json';

const BOOT = 'proc/sys/kernel/random';

/** What one family adds to the node now. */
interface FamilyPart {
  readonly family: string;
  readonly simulation: FamilySimulation;
  readonly hardware: SimulatedHardware;
}

/** A simulated node of files, small programs and a gRPC kubelet, in one temporary directory. */
export class SimulatedNode {
  readonly root: string;
  readonly kubelet: SimulatedKubelet;
  readonly manager: SimulatedDeviceManager;
  /** Number of each size of the families. */
  readonly counts: Readonly<Record<string, number>>;
  readonly #families: readonly SimulatedFamily[];
  readonly #options: SimulationOptions;
  readonly #clock: Clock;
  readonly #writer: TreeWriter;
  readonly #startedMs: number;
  /** The kernel tells its boot in whole seconds, so its log counts from there. */
  readonly #bootRestMs: number;
  readonly #pods: NodePods;
  readonly #use = new DeviceUse();
  #parts: readonly FamilyPart[] = [];
  #faulty: readonly FaultyFamily[] = [];
  readonly #story: Story;
  /** What runs now and what ended. A change is seen in the files at the next step. */
  readonly faults = new NodeFaults(() => this.#faulty);
  /** Workloads of the latest plan. */
  #workloads: readonly SimulatedWorkload[] = [];
  #idleIds: ReadonlySet<string> = new Set();
  #stoppedIds: readonly string[] = [];
  #hasStock = false;
  #break = (_error: unknown): void => {};
  /** Resolves with the error when the simulation cannot continue, for example because its directory was removed. */
  readonly broken = new Promise<unknown>((resolve) => {
    this.#break = resolve;
  });
  #cancel = (): void => {};

  constructor(families: readonly SimulatedFamily[], options: SimulationOptions, clock: Clock = systemClock) {
    this.#families = families;
    this.#options = options;
    this.counts = countsOf(options.devices, sizesOf(families));
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
    this.#story = new Story(this.faults, () => this.#faulty);
    this.root = mkdtempSync(join(tmpdir(), NODE_PREFIX));
    for (const folder of ['sys', BOOT, 'dev', 'bin', 'kubelet/device-plugins']) mkdirSync(join(this.root, folder), { recursive: true });
    writeFileSync(join(this.root, BOOT, 'boot_id'), 'b0070000-0000-4000-8000-000000000000\n');
    const bootMs = this.#clock.now();
    this.#bootRestMs = bootMs % 1_000;
    writeFileSync(join(this.root, 'proc/stat'), `btime ${Math.floor(bootMs / 1_000)}\n`);
    // A device that no family knows.
    writeFileSync(join(this.root, 'dev/ttyUSB0'), '');
    this.#writer = new TreeWriter(this.root);
    this.kubelet = new SimulatedKubelet({ directory: join(this.root, 'kubelet') });
    const onChange = (): void => this.#pods.stockChanged();
    this.manager = new SimulatedDeviceManager({ directory: this.#pluginDirectory, onChange });
    this.#pods = new NodePods({ kubelet: this.kubelet, manager: this.manager });
  }

  async start(): Promise<void> {
    this.step();
    writeFileSync(this.#configFile, configurationText(this.#parts.map(({ hardware }) => hardware)));
    await this.kubelet.start();
    await this.manager.start();
    this.#tick();
  }

  /** Updates hardware and pods to the elapsed time. */
  step(elapsedMs: number = this.elapsedMs): void {
    if (this.#options.story === 'on') this.#story.step(elapsedMs);
    this.#simulate(elapsedMs);
    for (const { hardware } of this.#parts) this.#writer.apply(hardware);
    const log = kernelLogText(
      this.#parts.flatMap(({ hardware: { kernelLog = [] } }) => kernelLog),
      this.#bootRestMs,
    );
    this.#writer.apply({ files: log === '' ? {} : { 'dev/kmsg': log }, links: {} });
    this.#placePods(elapsedMs);
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
    const families = this.#parts.flatMap(({ family, hardware: { options = {} } }) =>
      Object.entries(options).map(([name, value]) => `--probe.${family}.${name}=${value.replaceAll('{root}', this.root)}`),
    );
    return [
      `--path.sysfs=${this.root}/sys`,
      `--path.procfs=${this.root}/proc`,
      `--path.dev=${this.root}/dev`,
      `--path.share=${this.root}/share`,
      // Reads cost a simulated device nothing.
      '--refresh.slow=0s',
      `--podresources.socket=${this.kubelet.podResourcesSocket}`,
      `--podresources.checkpoint=${this.kubelet.checkpoint}`,
      `--plugin.dir=${this.#pluginDirectory}`,
      `--state.file=${join(this.root, STATE_FILE)}`,
      `--config.file=${this.#configFile}`,
      ...families,
    ];
  }

  /** Stops everything and removes the directory. */
  /** Nothing changes any more. */
  halt(): void {
    this.#cancel();
  }

  async stop(): Promise<void> {
    this.halt();
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

  #simulate(elapsedMs: number): void {
    // The processes of a pod end before the kubelet forgets it. Those of a new pod begin at the next step, when the kubelet knows it.
    const staying = new Set(
      planPods([], this.#workloads, this.#options.pods, this.#podChanges(elapsedMs)).map(({ namespace, name }) => `${namespace}/${name}`),
    );
    const pods = this.kubelet.pods().filter(({ namespace, name }) => staying.has(`${namespace}/${name}`));
    const use = this.#use.at(elapsedMs, pods, new Set([...this.#idleIds, ...this.#stoppedIds]));
    const scenario: Scenario = { counts: this.counts, elapsedMs, use };
    this.#parts = this.#families.map(({ name, simulation }) => {
      const hardware = simulation.simulate({ ...scenario, faults: this.faults.of(name) });
      return { family: name, simulation, hardware };
    });
    this.#faulty = this.#parts.flatMap(({ family, simulation: { faults }, hardware: { targets = [] } }) =>
      targets.length === 0 ? [] : [{ family, faults, targets }],
    );
    this.#stoppedIds = this.#parts.flatMap(({ hardware }) => hardware.stoppedIds ?? []);
  }

  #placePods(elapsedMs: number): void {
    const stock = this.#parts.flatMap(({ hardware }) => hardware.resources);
    const nodesOf = new Map(
      stock.flatMap(({ resource, deviceIds, numaNodes }) => deviceIds.map((id, n) => [`${resource} ${id}`, numaNodes?.[n]] as const)),
    );
    const deviceOf = (resource: string, id: string): SimulatedDevice => {
      const numaNode = nodesOf.get(`${resource} ${id}`);
      return numaNode === undefined ? { resource, id } : { resource, id, numaNodes: [numaNode] };
    };
    if (!this.#hasStock) {
      const others = stock.filter(({ isServed }) => isServed !== true);
      this.#pods.setStock(others.flatMap(({ resource, deviceIds }) => deviceIds.map((id) => deviceOf(resource, id))));
      this.#hasStock = true;
    }
    // Families with many devices come first, so that few pods hold most of what the node has.
    const families = this.#parts.toSorted((a, b) => (this.counts[b.family] ?? 0) - (this.counts[a.family] ?? 0));
    this.#workloads = mixed(
      families.map(({ simulation }) => simulation.workloads),
      stock,
    );
    const plan = planPods(stock, this.#workloads, this.#options.pods, this.#podChanges(elapsedMs));
    this.#idleIds = new Set(plan.flatMap(({ idleIds = [] }) => idleIds));
    this.#pods.place(plan, deviceOf, this.faults.unusable());
  }

  #podChanges(elapsedMs: number): number {
    const every = this.#options['pod-change'];
    return every === 0 ? 0 : Math.floor(elapsedMs / every);
  }
}

const COMMENT = '# What the simulated devices of this node need.\n';

/** Returns the text of the agent's configuration file: what the hardware of all families needs. */
function configurationText(hardware: readonly SimulatedHardware[]): string {
  const rules = hardware.flatMap(({ configuration }) => configuration?.rules ?? []);
  const resources = hardware.flatMap(({ configuration }) => configuration?.pluginResources ?? []);
  const prices = Object.assign({}, ...hardware.map(({ configuration }) => configuration?.prices));
  const document = {
    ...(rules.length > 0 && { join: { rules } }),
    ...(resources.length > 0 && { plugin: { resources } }),
    ...(Object.keys(prices).length > 0 && { usage: { prices } }),
  };
  return COMMENT + (Object.keys(document).length === 0 ? '' : dump(document));
}
