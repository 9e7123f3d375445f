import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { SimulatedFault } from '../../src/sim/family-simulation.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf, simulationOf } from '../support/hardware.ts';
import { type ServedAgent, serve } from '../support/serve.ts';

export const SOCKETS = ['nvhcd', 'metricssvc', 'xpumd'] as const;
export type SocketName = (typeof SOCKETS)[number];

const AT_ONCE = { severity: 'fatal', for: '0s', recovery: '0s' };

/** GPUs of two families as files, and the built agent that answers their plugins. A hot card counts as broken at once. */
export class GpuNode {
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-gpus-'));
  readonly #writer = new TreeWriter(this.root);
  readonly #hot = new Set<string>();
  agent: ServedAgent | undefined;

  constructor() {
    for (const folder of ['sys', 'proc', 'dev', 'sockets']) mkdirSync(join(this.root, folder), { recursive: true });
    writeFileSync(
      join(this.root, 'config.yaml'),
      stringify({ health: { flapping: { count: 100 }, conditions: { '*.OverTemperature': AT_ONCE, '*.Throttled': AT_ONCE } } }),
    );
    this.#write();
  }

  socket(name: SocketName): string {
    return join(this.root, 'sockets', `${name}.sock`);
  }

  /** Makes a card too hot, or cool again. */
  heat(address: string, isHot = true): void {
    if (isHot) this.#hot.add(address);
    else this.#hot.delete(address);
    this.#write();
  }

  async start(sockets: readonly SocketName[] = SOCKETS): Promise<ServedAgent> {
    this.agent = await serve([
      `--path.sysfs=${this.root}/sys`,
      `--path.procfs=${this.root}/proc`,
      `--path.dev=${this.root}/dev`,
      `--podresources.socket=${this.root}/none.sock`,
      `--podresources.checkpoint=${this.root}/none`,
      `--state.file=${this.root}/state.json`,
      `--config.file=${this.root}/config.yaml`,
      '--refresh.interval=200ms',
      '--no-probe.netdev',
      '--no-probe.infiniband',
      '--no-probe.nvme',
      '--no-probe.nvidia',
      '--no-probe.fpga',
      ...sockets.map((name) => `--health-feed.${name}-socket=${this.socket(name)}`),
    ]);
    return this.agent;
  }

  async stop(): Promise<void> {
    await this.agent?.stop();
    rmSync(this.root, { recursive: true, force: true });
  }

  #write(): void {
    const faults: SimulatedFault[] = [...this.#hot].map((device) => ({ name: 'hot', device, fromMs: 0 }));
    for (const name of ['amdgpu', 'intelgpu'] as const)
      this.#writer.apply(hardwareOf({ name, simulation: withFaults(name, faults) }, { [name]: 2 }, 1_000));
  }
}

function withFaults(name: string, faults: readonly SimulatedFault[]) {
  const simulation = simulationOf(name);
  return { ...simulation, simulate: (scenario: Parameters<typeof simulation.simulate>[0]) => simulation.simulate({ ...scenario, faults }) };
}
