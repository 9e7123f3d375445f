import type { Scenario, SimulatedHardware } from '../../family-simulation.ts';
import { simulateAlveo } from './alveo.ts';
import { simulateDfl } from './dfl.ts';

/** Simulates alternating boards: Intel D5005 with DFL, AMD U250 with XRT. */
export function simulate(scenario: Scenario): SimulatedHardware {
  const boards = Array.from({ length: scenario.counts.fpga ?? 0 }, (_, board) =>
    board % 2 === 0 ? simulateDfl(board, board / 2, scenario) : simulateAlveo(board, scenario),
  );
  const resources = new Map<string, { readonly deviceIds: string[]; readonly numaNodes: number[] }>();
  for (const { resource, deviceId, numaNode } of boards) {
    const entry = resources.get(resource) ?? { deviceIds: [], numaNodes: [] };
    entry.deviceIds.push(deviceId);
    entry.numaNodes.push(numaNode);
    resources.set(resource, entry);
  }
  return {
    files: Object.assign({}, ...boards.map(({ files }) => files)),
    links: Object.assign({}, ...boards.map(({ links }) => links)),
    resources: [...resources].map(([resource, entry]) => ({ resource, ...entry })),
    ...(boards.length > 0 && { targets: boards.map(({ target }) => target) }),
  };
}
