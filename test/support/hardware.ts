import { simulatedFamilies } from '../../src/sim/families.ts';
import type { FamilySimulation, Scenario, SimulatedFamily, SimulatedHardware } from '../../src/sim/family-simulation.ts';
import { kernelLogText } from '../../src/sim/kernel-log.ts';

/** Returns the family's part of the simulated node. */
export function simulationOf(name: string): FamilySimulation {
  const found = simulatedFamilies.find((family) => family.name === name);
  if (found === undefined) throw new Error(`${name} cannot be simulated`);
  return found.simulation;
}

/** Returns the simulated hardware of a family, with its kernel log as a file: `counts` by the names of its sizes, at a moment. */
export function hardwareOf(
  { name, simulation = simulationOf(name) }: Partial<SimulatedFamily> & Pick<SimulatedFamily, 'name'>,
  counts: Scenario['counts'],
  elapsedMs = 0,
): SimulatedHardware {
  const hardware = simulation.simulate({ counts, elapsedMs });
  const { kernelLog, files } = hardware;
  return kernelLog === undefined ? hardware : { ...hardware, files: { ...files, 'dev/kmsg': kernelLogText(kernelLog) } };
}
