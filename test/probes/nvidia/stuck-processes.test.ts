import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../../src/health/engine/memory.ts';
import { createPolicy } from '../../../src/health/policy/policy.ts';
import { minutes, seconds } from '../../../src/model/duration.ts';
import { conditions } from '../../../src/probes/nvidia/conditions.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { NvidiaProbe } from '../../../src/probes/nvidia/probe.ts';
import { readAt } from '../../health/one-device.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { documentText, emptyMachine, gpuText, type Machine } from './harness.ts';

const STEP_MS = seconds(30);
const engineWith = (state?: HealthMemory): HealthEngine =>
  createHealthEngine({
    policy: createPolicy({ specs: { nvidia: [conditions.StuckProcess] }, config: {} }).policy,
    ...(state === undefined ? {} : { state }),
  });

let machine: Machine;
let probe: NvidiaProbe;
let engine: HealthEngine;

const restart = (state?: HealthMemory): void => {
  probe = new NvidiaProbe(machine.host, probeOptions(family, { 'smi-path': `${machine.root}/bin/nvidia-smi` }));
  engine = engineWith(state);
};

beforeEach(() => {
  machine = emptyMachine();
  restart();
});
afterEach(() => machine.remove());

/** Processes of each GPU, as nvidia-smi lists them. */
function use(...gpus: readonly (readonly (number | 'N/A')[])[]): void {
  const lists = gpus.map((pids) => pids.map((pid) => `<process_info><pid>${pid}</pid></process_info>`).join(''));
  machine.show(documentText(...lists.map((list, index) => gpuText({ index, extra: `<processes>${list}</processes>` }))));
}

function run(pid: number, state: string, { name = 'python', startTicks = 500 } = {}): void {
  machine.write(`proc/${pid}/stat`, `${pid} (${name}) ${state} ${Array.from({ length: 18 }, () => 0).join(' ')} ${startTicks} 0\n`);
}

/** Reads once and returns the state of each GPU, with its conditions. */
async function read(): Promise<readonly string[]> {
  machine.clock.nowMs += STEP_MS;
  const { reports } = await probe.collect();
  const atMs = machine.clock.nowMs;
  const devices = reports.map(({ device, read }) => ({
    ...readAt(device, atMs),
    read: { findings: (read?.findings ?? []).filter(({ type }) => type === 'StuckProcess'), readAtMs: atMs },
  }));
  const { verdicts } = engine.judge({ devices, monotonicMs: atMs }, atMs);
  return [...verdicts.values()].map(({ state, conditions: held }) => [state, ...held.map(({ message }) => message)].join(': '));
}

async function readFor(ms: number): Promise<readonly string[]> {
  for (let left = ms; left > STEP_MS; left -= STEP_MS) await read();
  return await read();
}

const STUCK = 'degraded: process 7 (python) waits in the kernel (state D) at every read';

describe('a process of a GPU that is in state D at every read', () => {
  it('degrades its GPU after five minutes, and no other one, until it ends', async () => {
    use([7], [8]);
    run(7, 'S');
    run(8, 'S');
    expect(await read()).toEqual(['healthy', 'healthy']);
    run(7, 'D');
    expect(await readFor(minutes(5))).toEqual(['healthy', 'healthy']);
    expect(await readFor(minutes(1))).toEqual([STUCK, 'healthy']);
    use([], [8]);
    expect(await read()).toEqual([STUCK, 'healthy']);
    expect(await readFor(minutes(2))).toEqual(['healthy', 'healthy']);
  });

  it('degrades each GPU that it uses', async () => {
    use([7], [7, 8]);
    run(7, 'D');
    run(8, 'S');
    expect(await readFor(minutes(7))).toEqual([STUCK, STUCK]);
  });

  it('needs a reboot when it is a program of the driver', async () => {
    use([7]);
    run(7, 'D', { name: 'nvidia-smi' });
    await readFor(minutes(1));
    const [report] = (await probe.collect()).reports;
    expect(report?.read?.findings.find(({ type }) => type === 'StuckProcess')).toMatchObject({ status: true, remedy: 'reboot' });
  });

  it('counts again from the start of the agent, which keeps what was raised', async () => {
    use([7]);
    run(7, 'D');
    expect(await readFor(minutes(7))).toEqual([STUCK]);
    restart(engine.state());
    expect(await read()).toEqual([STUCK]);
    expect(await readFor(minutes(7))).toEqual([STUCK]);
  });
});

describe('a process of a GPU that is not stuck', () => {
  it('may be in state D in single reads', async () => {
    use([7]);
    for (let turn = 0; turn < 15; turn += 1) {
      run(7, turn % 2 === 0 ? 'D' : 'S');
      expect(await read()).toEqual(['healthy']);
    }
  });

  it('may take turns with another one in state D', async () => {
    use([7, 8]);
    for (let turn = 0; turn < 15; turn += 1) {
      run(7, turn % 4 < 2 ? 'D' : 'S');
      run(8, turn % 4 < 2 ? 'S' : 'D');
      expect(await read()).toEqual(['healthy']);
    }
  });

  it('may have the PID of one that waited before', async () => {
    use([7]);
    for (let turn = 0; turn < 15; turn += 1) {
      run(7, 'D', { startTicks: turn });
      expect(await read()).toEqual(['healthy']);
    }
  });
});

describe('what cannot be read', () => {
  it.each([
    ['the state of the process', () => machine.write('proc/7/stat', '')],
    ['the PID of a process', () => use([7, 'N/A'])],
  ])('%s: the condition is not cleared', async (_, hide) => {
    use([7]);
    run(7, 'D');
    expect(await readFor(minutes(7))).toEqual([STUCK]);
    run(7, 'S');
    hide();
    expect(await readFor(minutes(5))).toEqual([STUCK]);
    use([7]);
    run(7, 'S');
    expect(await readFor(minutes(2))).toEqual(['healthy']);
  });

  it('raises nothing', async () => {
    use([7]);
    expect(await readFor(minutes(7))).toEqual(['healthy']);
  });
});
