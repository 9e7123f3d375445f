import type { Scenario, SimulatedHardware } from '../../src/model/simulated.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';

/** Returns the simulated hardware of a family: `counts` by the names of its sizes, at a moment. */
export function hardwareOf(
  { name, simulation }: Pick<DeviceFamily, 'name' | 'simulation'>,
  counts: Scenario['counts'],
  elapsedMs = 0,
): SimulatedHardware {
  if (simulation === undefined) throw new Error(`${name} cannot be simulated`);
  return simulation.simulate({ counts, elapsedMs });
}
