import { AgentCore } from '../../src/agent/core.ts';
import { HealthService } from '../../src/agent/health.ts';
import { createAgentPlugin } from '../../src/agent/resources.ts';
import { every } from '../../src/agent/schedule.ts';
import { demoFlags } from '../../src/cli/demo/demo.ts';
import { agentSettings } from '../../src/cli/settings.ts';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { seconds } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { type SimulationOptions, simulationOptions } from '../../src/sim/options.ts';
import { InlineThreads } from '../oracle/inline-readers.ts';
import { OverlaidTree } from '../oracle/overlaid-tree.ts';
import { VirtualClock } from '../oracle/virtual-clock.ts';

export const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
/** All times of the story are multiples of ten seconds. */
const STEP = '5s';
const STEP_MS = seconds(5);

/** A simulated node and the agent on it, with the defaults of the demo and one clock that only the test moves. */
export class ToldNode {
  readonly node: SimulatedNode;
  /** What happens and what the agent says of it, one line for each change. */
  readonly told: string[] = [];
  readonly #clock = new VirtualClock();
  readonly #closing: (() => Promise<unknown>)[] = [];
  #settle = async (): Promise<void> => {};
  #faults = '';
  #verdicts = '';

  constructor(size: Partial<SimulationOptions>) {
    this.node = new SimulatedNode(simulatedFamilies, { ...defaultValues(simulationOptions), step: STEP_MS, ...size }, this.#clock);
  }

  async start(): Promise<void> {
    await this.node.start();
    const flags = demoFlags(this.node.flags(), new Map([['refresh.interval', STEP]]));
    const settings = agentSettings((await loadConfiguration(registry, {}, flags)).configuration, families);
    const health = await HealthService.open(settings, SILENT, this.#clock, true);
    const threads = new InlineThreads(new OverlaidTree(this.node.root), this.#clock, families);
    const core = new AgentCore(settings, health, SILENT, this.#clock, threads);
    const plugin = createAgentPlugin(settings, core, () => health.policy, SILENT, this.#clock);
    core.store.subscribe(() => this.#tell(core));
    plugin.start();
    let refresh: Promise<void> | undefined;
    this.#settle = async () => {
      await Promise.all([refresh, ...threads.running]);
      await health.written();
    };
    const stop = every(
      settings.refresh.interval,
      () => (refresh = core.refresh()),
      this.#clock,
      () => 0,
    );
    this.#closing.push(
      async () => stop(),
      () => plugin.stop(),
      () => core.close(),
      () => health.close(),
    );
  }

  readonly pass = async (ms: number): Promise<void> => {
    await this.#settle();
    await this.#clock.advance(ms, () => this.#settle());
  };

  async stop(): Promise<void> {
    for (const close of this.#closing) await close();
    await this.node.stop();
  }

  #tell({ store }: AgentCore): void {
    const faults = this.node.faults
      .list()
      .flatMap(({ name, running }) => running.map(({ device }) => `${name} of ${device}`))
      .join();
    if (faults !== this.#faults) this.told.push(faults || 'no fault');
    this.#faults = faults;
    const sick = (store.snapshot()?.devices ?? []).filter(
      ({ verdict: { state, conditions } }) => state !== 'healthy' || conditions.length > 0,
    );
    const verdicts = sick
      .map(({ device: { id }, verdict }) => `${id} is ${verdict.state}: ${verdict.conditions.map(({ type }) => type).join()}`)
      .join('; ');
    if (verdicts !== this.#verdicts) this.told.push(verdicts || 'all are healthy');
    this.#verdicts = verdicts;
  }
}
