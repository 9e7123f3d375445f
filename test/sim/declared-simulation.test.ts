import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Declaration } from '../../src/probes/declared/declaration.ts';
import { familyOf } from '../../src/probes/declared/family.ts';
import { simulationOf } from '../../src/sim/declared-simulation.ts';
import type { FamilySimulation, Scenario } from '../../src/sim/family-simulation.ts';
import { kernelLogText } from '../../src/sim/kernel-log.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { declarationOf, HandClock, probeOn } from '../probes/declared/support.ts';
import { buildMachine } from '../support/machine.ts';

const paths = [
  'test/probes/declared/borealis.yaml',
  ...readdirSync('families').flatMap((name) => (name.endsWith('.yaml') ? [`families/${name}`] : [])),
];
const declarations = await Promise.all(paths.map((path) => declarationOf(readFileSync(path, 'utf8'))));
const simulated = declarations.flatMap((declaration): [string, Declaration, FamilySimulation][] => {
  const simulation = simulationOf(declaration);
  return simulation === undefined ? [] : [[declaration.family, declaration, simulation]];
});

/** A probe of the family on its simulated files, which a scenario changes. */
function start(declaration: Declaration, simulation: FamilySimulation) {
  const machine = buildMachine({ about: '', directories: ['sys', 'proc', 'dev'] });
  const writer = new TreeWriter(machine.root);
  const clock = new HandClock();
  const show = (more: Partial<Scenario>) => {
    const hardware = simulation.simulate({ counts: { [declaration.family]: 2 }, elapsedMs: clock.nowMs, ...more });
    const log = kernelLogText(hardware.kernelLog ?? []);
    writer.apply({ ...hardware, files: { ...hardware.files, 'dev/kmsg': log } });
    return hardware;
  };
  const { targets = [] } = show({});
  const probe = probeOn(familyOf({ declaration, origin: 'administrator' }), machine.root, clock);
  onTestFinished(() => {
    void probe.close?.();
    machine.remove();
  });
  return { clock, show, probe, targets };
}

it('has families to simulate', () => expect(simulated.map(([name]) => name)).toEqual(['borealis', 'intelnpu', 'tenstorrent']));

describe.each(simulated)('the simulated devices of %s', (_, declaration, simulation) => {
  it('are found, and each row with an example has a value, which moves where it counts', async () => {
    const { clock, show, probe, targets } = start(declaration, simulation);
    const first = await probe.collect();
    clock.nowMs += 60_000;
    show({});
    const { reports, problems, listing } = await probe.collect();
    expect([reports.map(({ device }) => device.id), problems, listing]).toEqual([targets.map(({ id }) => id), [], 'complete']);
    for (const [at, { device, read }] of reports.entries())
      for (const { metric, type, example } of declaration.readings ?? []) {
        if (example === undefined) continue;
        const now = read?.readings.find((one) => one.metric === metric)?.value;
        const before = first.reports[at]?.read?.readings.find((one) => one.metric === metric)?.value;
        expect([device.id, metric, typeof now]).toEqual([device.id, metric, 'number']);
        if (type === 'counter') expect(now).toBeGreaterThan(before as number);
      }
  });

  it.each(simulation.faults)('can have the fault $name, which raises its condition and ends', async ({ name }) => {
    const { clock, show, probe, targets } = start(declaration, simulation);
    const [device = ''] = targets.map(({ id }) => id);
    const type = declaration.conditions?.find((one) => one.type.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase() === name)?.type;
    const look = async (): Promise<readonly unknown[]> => {
      const { reports } = await probe.collect();
      return reports.map(({ read, outOfBand }) => {
        const found = [...(read?.findings ?? []), ...(outOfBand?.findings ?? [])].find((one) => one.type === type);
        return found?.status ?? found?.count;
      });
    };
    for (const _ of [1, 2]) {
      await look();
      clock.nowMs += 60_000;
      show({});
    }
    const [sound] = await look();
    const fromMs = clock.nowMs;
    for (const _ of [1, 2]) {
      clock.nowMs += 61_000;
      show({ faults: [{ name, device, fromMs }] });
      await look();
    }
    const [sick, other] = await look();
    expect([sick, other]).toEqual([sound === 0 ? 1 : true, sound]);
    const ended = { name, device, fromMs, untilMs: clock.nowMs };
    clock.nowMs += 5_000;
    show({ faults: [ended] });
    const [after] = await look();
    expect(after).toBe(sound === 0 ? 1 : false);
  });
});
