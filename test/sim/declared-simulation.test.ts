import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Declaration } from '../../src/probes/declared/declaration.ts';
import { familyOf } from '../../src/probes/declared/family.ts';
import { simulationOf } from '../../src/sim/declared-simulation.ts';
import type { FamilySimulation } from '../../src/sim/family-simulation.ts';
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
  const show = () => {
    const hardware = simulation.simulate({ counts: { [declaration.family]: 2 }, elapsedMs: clock.nowMs });
    writer.apply(hardware);
    return hardware;
  };
  const [supply] = show().resources;
  const probe = probeOn(familyOf({ declaration, origin: 'administrator' }), machine.root, clock);
  onTestFinished(() => {
    void probe.close?.();
    machine.remove();
  });
  return { clock, show, probe, supply };
}

it('has families to simulate', () => expect(simulated.map(([name]) => name)).toEqual(['borealis', 'intelnpu', 'tenstorrent']));

describe.each(simulated)('the simulated devices of %s', (_, declaration, simulation) => {
  it('are found, and each row with an example has a value, which moves where it counts', async () => {
    const { clock, show, probe, supply } = start(declaration, simulation);
    const first = await probe.collect();
    clock.nowMs += 60_000;
    show();
    const { reports, problems, listing } = await probe.collect();
    expect([reports.length, supply?.deviceIds.length, problems, listing]).toEqual([2, 2, [], 'complete']);
    for (const [at, { device, read }] of reports.entries())
      for (const { metric, type, example } of declaration.readings ?? []) {
        if (example === undefined) continue;
        const now = [...(read?.readings ?? [])].find((one) => one.metric === metric)?.value;
        const before = [...(first.reports[at]?.read?.readings ?? [])].find((one) => one.metric === metric)?.value;
        expect([device.id, metric, typeof now]).toEqual([device.id, metric, 'number']);
        if (type === 'counter') expect(now).toBeGreaterThan(before as number);
      }
  });
});
