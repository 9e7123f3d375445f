import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readlinkSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { HealthState } from '../../src/model/health.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { removeAsKernel } from '../support/kernel-files.ts';
import { ServedNode } from './served-node.ts';

export const HCA = 'example.com/hca';
export const NAMES = ['mlx5_0', 'mlx5_1', 'mlx5_2'];

/** What the configuration makes of a port that is down, and what the kubelet is told of a device of which nothing is known. */
export const POLICIES = [
  { health: {}, down: 'unhealthy', unknown: 'Unhealthy' },
  { health: { unknown: 'healthy' }, down: 'unhealthy', unknown: 'Healthy' },
  { health: { conditions: { 'infiniband.PortDown': { severity: 'degraded' } } }, down: 'degraded', unknown: 'Unhealthy' },
  { health: { conditions: { 'infiniband.PortDown': { enabled: false } } }, down: 'forgotten', unknown: 'Unhealthy' },
  {
    health: { unknown: 'healthy', ignore: [{ device: '*', condition: 'PortDown', reason: 'recabling', until: '2999-01-01' }] },
    down: 'healthy',
    unknown: 'Healthy',
  },
] as const;
export type Policy = (typeof POLICIES)[number];

const AT_ONCE = { for: '0s', recovery: '0s' };
const configFor = ({ health }: Policy): object => ({
  plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] },
  health: {
    flapping: { count: 100 },
    ...health,
    conditions: {
      '*.DeviceMissing': AT_ONCE,
      ...('conditions' in health ? health.conditions : {}),
      '*.PortDown': AT_ONCE,
    },
  },
});

/** What every way of asking should say of one device. */
export interface Told {
  readonly state: HealthState;
  readonly isPresent: boolean;
  readonly kubelet: string;
}

/** Three cards that are cabled, pulled, removed and hung at random, and what should be said of them. */
export class TroubledNode {
  readonly node: ServedNode;
  policy: Policy = POLICIES[0];
  readonly modes = new Map<string, 'up' | 'down' | 'gone' | 'hung'>(NAMES.map((name) => [name, 'up']));
  /** Cards whose port was found down while that counted: they are remembered while nothing can be read. */
  readonly knownDown = new Set<string>();
  /** An agent that cannot look at all cards since its start does not call one missing that it has not seen. */
  #isUnsought = false;
  /** Found missing before the agent was started anew, which it remembers. */
  readonly #knownMissing = new Set<string>();
  readonly #links = new Map<string, string>();
  /** Of the agents that were stopped. */
  log = '';

  /** After how many milliseconds a read counts as hung, and its device as not read. */
  constructor(hungAfterMs = 500, staleAfterMs = 1_500) {
    this.node = new ServedNode({
      family: infiniband,
      counts: { infiniband: NAMES.length },
      resource: HCA,
      config: configFor(POLICIES[0]),
      flags: ['--refresh.interval=200ms', `--refresh.timeout=${hungAfterMs}ms`, `--refresh.stale-after=${staleAfterMs}ms`],
    });
  }

  act(name: string, choice: number): string {
    const mode = this.modes.get(name);
    const next = mode === 'up' || mode === 'down' ? (['up', 'down', 'gone', 'hung'] as const)[Math.floor(choice * 4)] : 'up';
    if (next === undefined || next === mode) return `${name} stays ${mode}`;
    if (mode === 'gone') symlinkSync(this.#links.get(name) as string, this.#class(name));
    if (mode === 'hung') this.#release(name);
    if (next === 'up' || next === 'down') this.#cable(name, next);
    if (next === 'gone') this.#remove(name);
    if (next === 'hung') this.#hang(name);
    this.modes.set(name, next);
    this.#knownMissing.delete(name);
    if (!this.#isHung) this.#isUnsought = false;
    return `${name} from ${mode} to ${next}`;
  }

  async restart(policy: Policy): Promise<void> {
    await this.node.agent?.stop();
    this.log += this.node.agent?.log() ?? '';
    this.policy = policy;
    for (const name of NAMES) if (!this.expected(name).isPresent) this.#knownMissing.add(name);
    this.#isUnsought = this.#isHung;
    if (policy.down === 'forgotten') this.knownDown.clear();
    // That a port was up once since the machine booted is remembered, whatever counts meanwhile.
    else for (const [name, mode] of this.modes) if (mode === 'down') this.knownDown.add(name);
    writeFileSync(join(this.node.root, 'config.yaml'), stringify(configFor(policy)));
    await this.node.startAgent();
  }

  expected(name: string): Told {
    const mode = this.modes.get(name);
    if (mode === 'gone') return { state: 'unhealthy', isPresent: this.#isUnsought && !this.#knownMissing.has(name), kubelet: 'Unhealthy' };
    const { down, unknown } = this.policy;
    const last = this.knownDown.has(name) && down !== 'forgotten' ? down : 'healthy';
    if (mode === 'hung' && last !== 'unhealthy') return { state: 'unknown', isPresent: true, kubelet: unknown };
    return { state: last, isPresent: true, kubelet: last === 'unhealthy' ? 'Unhealthy' : 'Healthy' };
  }

  #cable(name: string, mode: 'up' | 'down'): void {
    const [state, phys] = mode === 'up' ? ['4: ACTIVE', '5: LinkUp'] : ['1: DOWN', '2: Polling'];
    this.node.change({ [`${name}/ports/1/state`]: state, [`${name}/ports/1/phys_state`]: phys });
    if (mode === 'down' && this.policy.down !== 'forgotten') this.knownDown.add(name);
    if (mode === 'up') this.knownDown.delete(name);
  }

  get #isHung(): boolean {
    return [...this.modes.values()].includes('hung');
  }

  #class(name: string): string {
    return join(this.node.root, 'sys/class/infiniband', name);
  }

  #remove(name: string): void {
    this.#links.set(name, readlinkSync(this.#class(name)));
    unlinkSync(this.#class(name));
  }

  #counter(name: string): string {
    return join(this.node.root, this.node.file(`${name}/ports/1/counters/port_rcv_data`));
  }

  #hang(name: string): void {
    removeAsKernel(this.#counter(name));
    execFileSync('mkfifo', [this.#counter(name)]);
  }

  /** The stuck read ends with the writer; a plain file is in its place before that. */
  #release(name: string): void {
    const writer = openSync(this.#counter(name), 'r+');
    writeFileSync(`${this.#counter(name)}.new`, '1000\n');
    renameSync(`${this.#counter(name)}.new`, this.#counter(name));
    writeFileSync(writer, '1000\n');
    closeSync(writer);
  }
}
