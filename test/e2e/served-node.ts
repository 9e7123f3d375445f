import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { HealthEvent } from '../../src/model/events.ts';
import type { Scenario, SimulatedFamily } from '../../src/sim/family-simulation.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { TestDeviceManager } from '../support/kubelet/device-manager.ts';
import { TestKubelet } from '../support/kubelet/kubelet.ts';
import { type ServedAgent, serve } from '../support/serve.ts';

/** An event as the API tells it. */
export type ToldEvent = Omit<HealthEvent, 'timeMs'> & { readonly time: string };

/** The kubelet's copy of a list at the moment it changed. */
export interface SeenList {
  readonly atMs: number;
  /** `id` to `Healthy` or `Unhealthy`. */
  readonly devices: Readonly<Record<string, string>>;
}

export interface NodeSettings {
  /** Its simulation, where it is not one of the simulated node. */
  readonly family: Partial<SimulatedFamily> & Pick<SimulatedFamily, 'name'>;
  readonly counts: Scenario['counts'];
  readonly resource: string;
  /** The configuration file, as plain data. */
  readonly config: object;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Hardware as files, a kubelet with its device manager in this process, and the built agent between them in a process of its own. */
export class ServedNode {
  readonly root = mkdtempSync(join(tmpdir(), 'served-'));
  readonly kubelet: TestKubelet;
  readonly manager: TestDeviceManager;
  readonly lists: SeenList[] = [];
  readonly #settings: NodeSettings;
  readonly #writer = new TreeWriter(this.root);
  readonly #paths: readonly string[];
  readonly #options: readonly string[];
  agent: ServedAgent | undefined;

  constructor(settings: NodeSettings) {
    this.#settings = settings;
    const boot = 'proc/sys/kernel/random';
    for (const folder of ['sys', boot, 'dev', 'bin', this.pluginDirectory]) mkdirSync(join(this.root, folder), { recursive: true });
    writeFileSync(join(this.root, boot, 'boot_id'), 'b0070000-0000-4000-8000-000000000001\n');
    const { family, counts } = settings;
    const hardware = hardwareOf(family, counts);
    this.#writer.apply(hardware);
    this.#paths = Object.keys(hardware.files);
    this.#options = Object.entries(hardware.options ?? {}).map(
      ([name, value]) => `--probe.${family.name}.${name}=${value.replaceAll('{root}', this.root)}`,
    );
    writeFileSync(join(this.root, 'config.yaml'), stringify(settings.config));
    this.kubelet = new TestKubelet({ directory: join(this.root, 'kubelet') });
    this.manager = new TestDeviceManager({ directory: join(this.root, this.pluginDirectory), onChange: () => this.#listChanged() });
  }

  get pluginDirectory(): string {
    return 'kubelet/device-plugins';
  }

  async start(): Promise<ServedAgent> {
    await this.kubelet.start();
    await this.manager.start();
    return this.startAgent();
  }

  async startAgent(flags: readonly string[] = []): Promise<ServedAgent> {
    this.agent = await serve([...this.flags(), ...flags], 'serve', this.#settings.env && { env: this.#settings.env });
    return this.agent;
  }

  flags(): string[] {
    return [
      `--path.sysfs=${this.root}/sys`,
      `--path.procfs=${this.root}/proc`,
      `--path.dev=${this.root}/dev`,
      `--podresources.socket=${this.kubelet.podResourcesSocket}`,
      `--podresources.checkpoint=${this.kubelet.checkpoint}`,
      `--plugin.dir=${this.root}/${this.pluginDirectory}`,
      `--state.file=${this.root}/state/health.json`,
      `--config.file=${this.root}/config.yaml`,
      '--refresh.interval=1s',
      ...this.#options,
      ...(this.#settings.flags ?? []),
    ];
  }

  /** The path below the root of the one simulated file that ends so. */
  file(ending: string): string {
    const found = this.#paths.filter((path) => path.endsWith(ending));
    if (found.length !== 1) throw new Error(`${found.length} files end in ${ending}`);
    return found[0] as string;
  }

  /** Changes simulated files in place, by the ends of their paths; gives the moment. */
  change(values: Readonly<Record<string, string>>): number {
    const files = Object.fromEntries(Object.entries(values).map(([ending, text]) => [this.file(ending), `${text}\n`]));
    const atMs = Date.now();
    this.#writer.apply({ files, links: {} });
    return atMs;
  }

  /** The newest list of the kubelet. */
  list(): Readonly<Record<string, string>> {
    return this.lists.at(-1)?.devices ?? {};
  }

  async events(): Promise<readonly ToldEvent[]> {
    const answer = await fetch(`${this.agent?.url}/api/v1/events`);
    return ((await answer.json()) as { readonly events: readonly ToldEvent[] }).events;
  }

  ownSockets(): string[] {
    return readdirSync(join(this.root, this.pluginDirectory)).filter((name) => name.startsWith('device-agent-'));
  }

  async stop(): Promise<void> {
    await this.agent?.stop('SIGKILL');
    await this.manager.stop();
    await this.kubelet.stop();
    rmSync(this.root, { recursive: true, force: true });
  }

  #listChanged(): void {
    this.kubelet.setStock(this.manager.stock());
    const devices = Object.fromEntries(this.manager.devices(this.#settings.resource).map(({ ID, health }) => [ID, health]));
    if (JSON.stringify(devices) !== JSON.stringify(this.list())) this.lists.push({ atMs: Date.now(), devices });
  }
}
