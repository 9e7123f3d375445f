import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeState } from '../../src/health/journal/state-file.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { repetitions } from '../support/repetitions.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const KILLS = repetitions(4, 25);
const BOOT = '0d5e3b1c-5a0e-4bfa-9a53-52d5a1c5b0de';
const HCA = 'example.com/hca';

interface Told {
  readonly id: number;
  readonly message: string;
  readonly device: string;
  readonly condition?: string;
}

/** Transitions as the log tells them; a last line that the kill cut short is no line. */
function announced(log: string): Told[] {
  return log
    .slice(0, log.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => /"message":"(?:a condition was|health of a device changed)/.test(line))
    .map((line) => JSON.parse(line) as Told);
}

let node: ServedNode;
let toggling: NodeJS.Timeout;

beforeAll(async () => {
  node = new ServedNode({
    family: infiniband,
    counts: { infiniband: 2 },
    resource: HCA,
    config: {
      plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] },
      health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } },
    },
    flags: ['--refresh.interval=100ms'],
  });
  mkdirSync(join(node.root, 'proc/sys/kernel/random'), { recursive: true });
  writeFileSync(join(node.root, 'proc/sys/kernel/random/boot_id'), `${BOOT}\n`);
  await node.start();
});
afterAll(async () => {
  clearInterval(toggling);
  await node.stop();
});

const lasting = (transition: string) => (told: Told) =>
  told.message === `a condition was ${transition}` && told.device === 'infiniband/mlx5_0' && told.condition === 'PortDown';

describe('a serving agent killed at random moments', () => {
  it(`keeps its state over ${KILLS} kills, still knows the fault that no new probe can see, and tells no transition twice`, async () => {
    const { agent } = node;
    if (agent === undefined) throw new Error('no agent');
    await agent.until('both are up', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 1);
    // To a probe that starts now this port was never up, which is no fault: only the memory knows better.
    node.change({ 'mlx5_0/ports/1/state': '1: DOWN', 'mlx5_0/ports/1/phys_state': '2: Polling' });
    await agent.until('the fault', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 0);
    // The page does not wait for the disk. The log does.
    while (!announced(agent.log()).some(lasting('raised'))) await sleep(20);
    let isUp = true;
    toggling = setInterval(() => {
      isUp = !isUp;
      node.change({
        'mlx5_1/ports/1/state': isUp ? '4: ACTIVE' : '1: DOWN',
        'mlx5_1/ports/1/phys_state': isUp ? '5: LinkUp' : '2: Polling',
      });
    }, 130);

    const told: Told[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const { child, log } = node.agent ?? (await node.startAgent());
      await sleep(Math.random() * 1_500);
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
      node.agent = undefined;
      told.push(...announced(log()));
      const read = await decodeState(readFileSync(join(node.root, 'state/health.json'), 'utf8'), BOOT);
      expect(read.ignored, `after kill ${kill + 1}`).toBeUndefined();
      const memory = Object.values(read.state?.devices ?? {}).find(({ device }) => device.id === 'mlx5_0');
      expect(memory?.conditions['PortDown/1'], `after kill ${kill + 1}`).toMatchObject({ phase: 'active' });
      expect(log(), 'a state that was not taken up').not.toContain('the saved health state is not used');
    }

    const last = await node.startAgent();
    const page = await last.until('the fault is known', (text) => seriesValue(text, 'device_healthy', { device: 'mlx5_0' }) === 0);
    expect(seriesValue(page, 'device_health_condition', { device: 'mlx5_0', condition: 'PortDown' })).toBe(1);
    expect(last.url).not.toBe('');
    const ids = told.map(({ id }) => id);
    expect(new Set(ids).size, 'no transition twice').toBe(ids.length);
    expect(told.filter(lasting('raised'))).toHaveLength(1);
    expect(told.filter(lasting('cleared'))).toEqual([]);
    expect(ids.length, 'transitions in all').toBeGreaterThan(KILLS / 3);
    process.stdout.write(`${KILLS} kills, ${ids.length} transitions told, each once\n`);
  });
});
