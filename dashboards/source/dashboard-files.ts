import { agent } from './agent.ts';
import { buildBoard } from './board.ts';
import { device } from './device.ts';
import { fleet } from './fleet.ts';
import { fpga } from './fpga.ts';
import { health } from './health.ts';
import { infiniband } from './infiniband.ts';
import { node } from './node.ts';
import { workload } from './workload.ts';

/** The generated dashboards by path. */
export function dashboardFiles(): Readonly<Record<string, string>> {
  const boards = [fleet, node, workload, device, health, infiniband, fpga, agent];
  return Object.fromEntries(boards.map((board) => [`dashboards/${board.name}.json`, `${JSON.stringify(buildBoard(board), null, 2)}\n`]));
}
