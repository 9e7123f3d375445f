import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seeded } from '../../../support/seeded.ts';
import { type ServedAgent, seriesValue, serve } from '../../../support/serve.ts';
import { until } from '../../../support/until.ts';
import { Machine } from './machine.ts';
import { VendorPlugin } from './vendor-plugin.ts';

export const HCA = 'example.com/hca';
const ALL = Array.from({ length: 8 }, (_, at) => `mlx5_${at}`);
/** What two versions of a configuration serve. */
const VIEWS = { all: ALL, half: ALL.slice(0, 4) } as const;
type View = keyof typeof VIEWS;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A kubelet that offers devices and admits pods. */
export interface OfferingKubelet {
  readonly pluginDirectory: string;
  flags(): string[];
  /** Ids that can be allocated, sorted. */
  offered(resource: string): Promise<readonly string[]>;
  /** Ids that a pod got, sorted, or why it was refused. */
  run(name: string, count: number): Promise<readonly string[] | string>;
  remove(name: string): Promise<unknown>;
}

/** What came after another agent or another plugin of the resource had ended. */
export interface Look {
  readonly what: string;
  /** How long the kubelet then still offered other ids than the agent that stays serves as healthy. */
  readonly lateMs: number;
  readonly expected: readonly string[];
  /** What a pod got that asked for all of them. */
  readonly pod: readonly string[] | string;
}

interface Serving {
  readonly agent: ServedAgent;
  readonly view: View;
  /** Ports that were down when it started: it takes them for unused. */
  readonly unused: Set<string>;
}

/** Agents of one node that replace each other, under churn of pods and ports. */
export class Rollouts {
  readonly #machine = new Machine({ infiniband: ALL.length });
  readonly #kubelet: OfferingKubelet;
  readonly #choose: (below: number) => number;
  readonly #agents: Serving[] = [];
  readonly #sick = new Set<string>();
  readonly #pods = new Set<string>();
  #current: Serving | undefined;
  #count = 0;

  constructor(kubelet: OfferingKubelet, seed: number) {
    this.#kubelet = kubelet;
    this.#choose = seeded(seed);
  }

  async start(): Promise<void> {
    this.#current = await this.#agent('all');
    await this.#equal();
  }

  async round(): Promise<Look> {
    const signal = this.#choose(2) === 0 ? 'SIGTERM' : 'SIGKILL';
    const kind = (['rollout', 'undo', 'rival'] as const)[this.#count++ % 3] as 'rollout' | 'undo' | 'rival';
    this.#changePort();
    await this.#equal();
    let isOver = false;
    const churn = this.#churn(() => isOver);
    if (kind === 'rival') await this.#rival();
    else {
      const old = this.#current as Serving;
      const view = old.view === 'all' ? 'half' : 'all';
      const next = await this.#agent(view);
      await pause(this.#choose(4_000));
      if (kind === 'rollout') this.#current = next;
      await (kind === 'rollout' ? old : next).agent.stop(signal);
    }
    const endedMs = performance.now();
    await this.#equal();
    const lateMs = Math.round(performance.now() - endedMs);
    isOver = true;
    await churn;
    await this.#equal();
    const expected = this.#expected();
    const pod = await this.#kubelet.run(`look-${this.#count}`, expected.length);
    await this.#kubelet.remove(`look-${this.#count}`);
    return { what: kind === 'rival' ? kind : `${kind}, ${signal}`, lateMs, expected, pod };
  }

  /** The page of the agent that stayed. */
  page(): Promise<string> {
    return (this.#current as Serving).agent.metrics();
  }

  async close(): Promise<void> {
    for (const { agent } of this.#agents) await agent.stop('SIGKILL');
    this.#machine.remove();
  }

  #expected(): string[] {
    const { view, unused } = this.#current as Serving;
    return VIEWS[view].filter((id) => !this.#sick.has(id) || unused.has(id));
  }

  async #equal(): Promise<void> {
    const isEqual = async (): Promise<boolean> => (await this.#kubelet.offered(HCA)).join() === this.#expected().join();
    await until(isEqual, `the kubelet offers ${this.#expected().join()}`).catch(async (error: unknown) => {
      const { agent } = this.#current as Serving;
      const page = (await agent.metrics())
        .split('\n')
        .filter((line) => /^device_agent_plugin.*(devices|registered|differing|registrations)/.test(line));
      throw new Error([(error as Error).message, (await this.#kubelet.offered(HCA)).join(), ...page, agent.log().slice(-3_000)].join('\n'));
    });
  }

  async #agent(view: View): Promise<Serving> {
    const unused = new Set(this.#sick);
    const path = join(this.#machine.root, `${view}.json`);
    const resources = [{ resource: HCA, select: { family: 'infiniband', kind: 'pf', devices: VIEWS[view] } }];
    const conditions = { 'infiniband.PortDown': { for: '300ms', recovery: '400ms' } };
    writeFileSync(path, JSON.stringify({ plugin: { resources }, health: { conditions } }));
    const own = this.#machine.flags().filter((flag) => !flag.startsWith('--state.file'));
    const agent = await serve([...own, ...this.#kubelet.flags(), `--config.file=${path}`, '--state.file=', '--refresh.interval=1s']);
    const serving = { agent, view, unused };
    this.#agents.push(serving);
    await agent.until('it is registered', (page) => seriesValue(page, 'device_agent_plugin_streams', { resource: HCA }) === 1);
    return serving;
  }

  /** Another vendor's plugin comes, tells several lists, among them devices that are unhealthy here as healthy, and ends. */
  async #rival(): Promise<void> {
    const devices = [{ id: 'theirs' }, ...[...this.#sick].map((id) => ({ id }))];
    const rival = await new VendorPlugin(this.#kubelet.pluginDirectory, { resource: HCA, devices }).start();
    for (let told = this.#choose(4); told >= 0; told -= 1) {
      await pause(this.#choose(1_500));
      rival.tell([...devices, { id: `theirs-${told}` }]);
    }
    rival.close();
  }

  #changePort(): void {
    const port = ALL[this.#choose(VIEWS.half.length)] as string;
    const up = this.#sick.size < 2 ? port : [...this.#sick][0];
    if (up !== undefined && this.#sick.delete(up)) {
      this.#machine.plugCable(up);
      for (const { unused } of this.#agents) unused.delete(up);
    } else {
      this.#sick.add(port);
      this.#machine.pullCable(port);
    }
  }

  /** Pods of one device come and go, whatever becomes of them. */
  async #churn(isOver: () => boolean): Promise<void> {
    for (let pods = 0; !isOver(); pods += 1) {
      const name = `churn-${this.#count}-${pods}`;
      await this.#kubelet.run(name, 1);
      this.#pods.add(name);
      if (this.#pods.size > 2) await this.#removePod();
      await pause(200);
    }
    while (this.#pods.size > 0) await this.#removePod();
  }

  async #removePod(): Promise<void> {
    const [name = ''] = this.#pods;
    this.#pods.delete(name);
    await this.#kubelet.remove(name);
  }
}

/** The longest delays, for the log of a test. */
export function toldLooks(looks: readonly Look[]): string {
  const late = looks.map(({ lateMs }) => lateMs).sort((a, b) => a - b);
  const refused = looks.filter(({ pod }) => typeof pod === 'string').length;
  return `${looks.length} looks, the kubelet offered other ids for ${late[late.length >> 1]} ms at the median and ${late.at(-1)} ms at most, ${refused} pods refused`;
}
