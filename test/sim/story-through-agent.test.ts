// Project: programs. It goes through the whole story of the demo.
import { afterEach, describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../src/model/duration.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import type { SimulationOptions } from '../../src/sim/options.ts';
import { repetitions } from '../support/repetitions.ts';
import { ToldNode } from './told-node.ts';

let told: ToldNode;
async function startedNode(size: Partial<SimulationOptions> = {}): Promise<ToldNode> {
  told = new ToldNode(size);
  await told.start();
  return told;
}
afterEach(async () => {
  await told.stop();
});

/** A fault of the story. The devices that have its condition are the one that has the fault, and those that depend on it. */
function scene(fault: string, device: string, verdict: string, ...dependent: readonly string[]): readonly string[] {
  const verdicts = [device, ...dependent].map((id) => `${id} is ${verdict}`).join('; ');
  return [`${fault} of ${device}`, verdicts, 'no fault', 'all are healthy'];
}
const board = '0010:21:00.0';
const nonfatalError = scene('nonfatal-error', board, 'degraded: NonfatalError');
/** A virtual function follows the port of its card. */
const portDown = (n: number): readonly string[] => scene('port-down', `mlx5_${n}`, 'unhealthy: PortDown', `mlx5_${n + 4}`);
const hot = (n: number): readonly string[] => scene('hot', `GPU-5e1f0000-0000-4000-8000-00000000000${n}`, 'degraded: ThermalSlowdown');

describe('what the agent says of the story', () => {
  it('is one condition for each fault, on its own device, and health between them, in rounds of the demo', async () => {
    const { told: lines, node, pass } = await startedNode();
    const scenes = [nonfatalError, portDown(0), hot(1), portDown(1), hot(2), portDown(2), hot(3)].slice(0, repetitions(3, 7));
    await pass(minutes(repetitions(7, 18)));
    expect(lines).toEqual(scenes.flat());
    expect(node.kubelet.pods().length).toBeGreaterThan(8);
  });

  it('is the same with a device of each family that has a part in it', async () => {
    const parts = simulatedFamilies.filter(({ simulation }) => simulation.faults.some(({ story }) => story !== undefined));
    const { told: lines, pass } = await startedNode({ devices: ['all=0', ...parts.map(({ name }) => `${name}=1`)] });
    await pass(minutes(16));
    const [begins, isHot, ...ends] = scene('hot', '0030:10:00.0', 'degraded: OverTemperature') as [string, string];
    expect(lines).toEqual([
      ...scene('hot', '0020:10:00.0', 'degraded: OverTemperature'),
      ...nonfatalError,
      ...scene('port-down', 'mlx5_0', 'unhealthy: PortDown'),
      // That it runs slower than asked counts later, and for the record only.
      ...[begins, isHot, `${isHot},Throttled`, ...ends],
      ...scene('port-down', '0040:10:00.0', 'unhealthy: PortDown', ...[1, 2, 3, 4].map((n) => `0040:10:00.${n}`)),
      ...hot(1),
      ...scene('hot', '0050:10:00.0', 'degraded: OverTemperature'),
    ]);
  });

  it('would end in Flapping if a device had its fault three times in short order', async () => {
    const { told: lines, node, pass } = await startedNode({ story: 'off', devices: ['all=0', 'fpga=1'] });
    for (let times = 0; times < 3; times += 1) {
      node.begin('nonfatal-error', board);
      await pass(seconds(40));
      node.clear();
      await pass(minutes(5));
    }
    const third = [
      `nonfatal-error of ${board}`,
      `${board} is degraded: Flapping,NonfatalError`,
      'no fault',
      `${board} is degraded: Flapping`,
    ];
    expect(lines).toEqual([...nonfatalError, ...nonfatalError, ...third]);
  });
});
