import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadFamilies } from '../../src/config/sections.ts';
import { millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import type { FaultSpec, Scenario } from '../../src/sim/family-simulation.ts';
import { pastOf } from '../../src/sim/fault-past.ts';
import { FaultRefusal, type FaultyFamily, NodeFaults } from '../../src/sim/faults.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';

const spec = (name: string, kinds: readonly string[]): FaultSpec => ({ name, kinds, about: `${name}.` });
const families: readonly FaultyFamily[] = [
  {
    family: 'one',
    faults: [spec('hot', ['card']), spec('torn', ['card']), spec('hung', [])],
    targets: [
      { id: 'card0', kind: 'card', names: ['0000:01:00.0'] },
      { id: 'card1', kind: 'card', lacks: ['torn'] },
    ],
  },
  { family: 'two', faults: [spec('hot', ['board'])], targets: [{ id: 'board0', kind: 'board' }] },
  { family: 'none', faults: [spec('never', ['board'])], targets: [] },
];
const begun = (): NodeFaults => new NodeFaults(() => families);
const refusalOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof FaultRefusal) return [error.message, ...(error.unknown?.known ?? [])].join(' ');
    throw error;
  }
  return 'nothing was refused';
};

describe('faults of a node', () => {
  it('begin on a device by any of its names, and on a whole family', () => {
    const faults = begun();
    for (const name of ['card0', '0000:01:00.0', 'ONE/card0']) faults.begin('hot', name, 5);
    faults.begin('hot', 'board0', 6);
    faults.begin('hung', undefined, 7);
    expect(faults.of('one')).toEqual([
      expect.objectContaining({ name: 'hot', device: 'card0', fromMs: 5 }),
      expect.objectContaining({ name: 'hung', fromMs: 7 }),
    ]);
    expect(faults.of('two')).toHaveLength(1);
    expect(faults.list().find(({ name }) => name === 'torn')).toMatchObject({ devices: ['card0'], running: [] });
  });

  it.each([
    ['hto', 'card0', 'there is no fault hto hot torn hung hot'],
    ['never', undefined, 'there is no fault never hot torn hung hot'],
    ['hot', 'car0', 'there is no device car0 card0 0000:01:00.0 one/card0 card1 one/card1 board0 two/board0'],
    ['hot', undefined, 'the fault hot needs a device: card0, card1, board0'],
    ['torn', 'card1', 'card1 cannot have the fault torn; card0 can'],
    ['torn', 'board0', 'board0 cannot have the fault torn; card0 can'],
    ['hung', 'card0', 'the fault hung concerns all devices of the family one: name no device'],
  ])('refuse %s on %s in one sentence, with the names that are known', (name, device, message) => {
    expect(refusalOf(() => begun().begin(name, device, 0))).toBe(message);
  });

  it('end all at once, or by a name or a device, and stay in the past', () => {
    const faults = begun();
    for (const [name, device] of [
      ['hot', 'card0'],
      ['hot', 'card1'],
      ['torn', 'card0'],
      ['hung', undefined],
    ] as const)
      faults.begin(name, device, 0);
    expect(faults.clear('torn', 1)).toHaveLength(1);
    expect(faults.clear('torn', 1)).toEqual([]);
    expect(faults.clear('0000:01:00.0', 2).map(({ name }) => name)).toEqual(['hot']);
    expect(refusalOf(() => faults.clear('crad1', 3))).toMatch(/^there is no fault and no device crad1 .*\bcard1\b/);
    expect(faults.clear(undefined, 4).map(({ name, device }) => [name, device])).toEqual([
      ['hot', 'card1'],
      ['hung', undefined],
    ]);
    expect(faults.of('one').map(({ untilMs }) => untilMs)).toEqual([2, 4, 1, 4]);
  });

  it('are begun a hundred times at most on one device', () => {
    const faults = begun();
    for (let n = 0; n < 100; n += 1) {
      faults.begin('hot', 'card0', n);
      faults.clear('hot', n);
    }
    expect(refusalOf(() => faults.begin('hot', 'card0', 100))).toContain('already began 100 times');
    expect(faults.begin('hot', 'card1', 100)).toMatchObject({ device: 'card1' });
  });
});

describe('the past of a fault', () => {
  it('counts each beginning and all time, and nothing of the future', () => {
    const faults = [
      { name: 'hot', device: 'a', fromMs: 10, untilMs: 30 },
      { name: 'hot', device: 'b', fromMs: 10 },
      { name: 'hot', device: 'a', fromMs: 50 },
    ];
    const at = (elapsedMs: number) => pastOf({ faults, elapsedMs }, 'hot', 'a');
    expect(at(9)).toEqual({ isOn: false, times: 0, totalMs: 0 });
    expect(at(20)).toEqual({ isOn: true, times: 1, totalMs: 10 });
    expect(at(40)).toEqual({ isOn: false, times: 1, totalMs: 20 });
    expect(at(60)).toEqual({ isOn: true, times: 2, totalMs: 30 });
    expect(pastOf({ elapsedMs: 60 }, 'hot')).toEqual({ isOn: false, times: 0, totalMs: 0 });
  });
});

describe('a program on a port that is down', () => {
  it('moves no data until the port is up again', async () => {
    const size = {
      ...defaultValues(simulationOptions),
      devices: ['all=0', 'infiniband=2'],
      pods: 4,
      story: 'off',
      'pod-change': millis(0),
    };
    const node = new SimulatedNode(simulatedFamilies, size, new ManualClock());
    const received = (): bigint =>
      BigInt(readFileSync(join(node.root, 'sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data'), 'utf8').trim());
    const grownAt = (seconds: number): bigint => {
      const before = received();
      node.step(seconds * 1_000);
      return received() - before;
    };
    try {
      for (const at of [0, 1, 2]) node.step(at * 1_000);
      expect(grownAt(3)).toBeGreaterThan(1_000_000_000n);
      node.faults.begin('port-down', 'mlx5_0', 4_000);
      // Programs notice it a step later.
      for (const at of [4, 5]) node.step(at * 1_000);
      expect([grownAt(6), grownAt(7)]).toEqual([0n, 0n]);
      node.faults.clear(undefined, 8_000);
      for (const at of [8, 9]) node.step(at * 1_000);
      expect(grownAt(10)).toBeGreaterThan(1_000_000_000n);
    } finally {
      await node.stop();
    }
  });
});

describe('a pod of the node', () => {
  it('does not begin on a GPU that is lost, and begins when the GPU is back; one that runs there stays', async () => {
    const size = {
      ...defaultValues(simulationOptions),
      devices: ['all=0', 'nvidia=1'],
      pods: 1,
      story: 'off',
      'pod-change': millis(10_000),
    };
    const node = new SimulatedNode(simulatedFamilies, size, new ManualClock());
    const pods = (): readonly string[] => node.kubelet.pods().map(({ name }) => name);
    try {
      node.step(0);
      expect(pods()).toEqual(['llm-0-0']);
      const [gpu = ''] = node.faults.list().find(({ name }) => name === 'xid79')?.devices ?? [];
      node.faults.begin('xid79', gpu, 1_000);
      node.step(2_000);
      expect(pods()).toEqual(['llm-0-0']);
      for (const at of [10_000, 20_000]) {
        node.step(at);
        expect(pods()).toEqual([]);
      }
      node.faults.clear(undefined, 21_000);
      node.step(22_000);
      expect(pods()).toEqual(['llm-0-2']);
    } finally {
      await node.stop();
    }
  });
});

describe('the faults that families declare', async () => {
  const all = await loadFamilies(familyLoaders);
  const scenario: Scenario = {
    counts: { nvidia: 4, infiniband: 2, 'infiniband.vf': 2, fpga: 2, amdgpu: 2, intelgpu: 2, netdev: 2, nvme: 2 },
    elapsedMs: 60_000,
  };
  const cases = simulatedFamilies.flatMap(({ name, simulation }) =>
    simulation.faults.map((fault) => ({ family: name, simulation, fault, name: `${name} ${fault.name}` })),
  );

  it('exist for each family in code', () => {
    const inCode = all.filter(({ declared }) => declared === undefined).map(({ name }) => name);
    expect(new Set(cases.map(({ family }) => family))).toEqual(new Set(inCode));
  });

  it.each(cases)(
    '$name changes the hardware of each device that can have it, and ends without a trace but counters and lines',
    ({ family, simulation, fault }) => {
      expect(fault.name).toMatch(/^[a-z][a-z0-9-]*$/);
      for (const kind of fault.kinds) expect(all.find(({ name }) => name === family)?.kinds).toContain(kind);
      const before = simulation.simulate(scenario);
      const able = (before.targets ?? []).filter(({ kind, lacks = [] }) => fault.kinds.includes(kind) && !lacks.includes(fault.name));
      const devices = fault.kinds.length === 0 ? [undefined] : able.map(({ id }) => id);
      expect(devices.length).toBeGreaterThan(0);
      for (const device of devices) {
        const begunFault = { name: fault.name, ...(device !== undefined && { device }), fromMs: 30_000 };
        const during = simulation.simulate({ ...scenario, faults: [begunFault] });
        expect([during.files, during.links, during.kernelLog]).not.toEqual([before.files, before.links, before.kernelLog]);
        const after = simulation.simulate({ ...scenario, faults: [{ ...begunFault, untilMs: 45_000 }] });
        expect(Object.keys(after.files)).toEqual(Object.keys(before.files));
        expect(after.links).toEqual(before.links);
      }
    },
  );
});
