import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { run } from '../cli/command-line.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode, type ToldEvent } from './served-node.ts';

const HCA = 'example.com/hca';

let node: ServedNode;

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
  await node.start();
});
afterAll(async () => await node.stop());

async function port(state: 'up' | 'down'): Promise<void> {
  const values = state === 'up' ? { state: '4: ACTIVE', phys_state: '5: LinkUp' } : { state: '1: DOWN', phys_state: '2: Polling' };
  node.change(Object.fromEntries(Object.entries(values).map(([file, text]) => [`mlx5_0/ports/1/${file}`, text])));
  const wanted = state === 'up' ? 'healthy' : 'unhealthy';
  await node.agent?.until(wanted, (page) => seriesValue(page, 'device_health', { device: 'mlx5_0', state: wanted }) === 1);
}

/** The API tells an event when it is on disk. */
async function outagesTold(count: number): Promise<readonly ToldEvent[]> {
  for (;;) {
    const told = (await node.events()).filter(({ to }) => to === 'unhealthy');
    if (told.length >= count) return told;
  }
}

describe('the record of a real agent', () => {
  it('has what the agent saw in two runs, and is tried with another policy', async () => {
    // A port that was never seen up may have no cable.
    await port('up');
    await port('down');
    await port('up');
    expect(await node.agent?.stop('SIGTERM')).toBe(0);
    await node.startAgent();
    await port('down');
    const outages = await outagesTold(2);
    expect(await node.agent?.stop('SIGTERM')).toBe(0);
    expect(readdirSync(join(node.root, 'state/findings'))).toHaveLength(1);

    const policy = join(node.root, 'policy.yaml');
    writeFileSync(policy, 'conditions:\n  infiniband.PortDown:\n    for: 1h\n');
    const ran = await run(['health', `--what-if=${policy}`, '-o', 'json', ...node.flags()]);
    expect(ran.stderr).toBe('');
    const answer = JSON.parse(ran.stdout);
    expect(answer.record).toEqual({ unlikePresent: 0, policyChanges: [], broken: 0 });
    expect(answer.present.outages).toBe(2);
    expect(answer.other).toEqual({ outOfServiceSeconds: 0, outages: 0, podsHit: [] });
    const [device] = answer.devices;
    expect(device.device).toBe('infiniband/mlx5_0');
    const times = device.present.flatMap(({ state, from }: { state: string; from: string }) => (state === 'unhealthy' ? [from] : []));
    expect(times).toEqual(outages.map(({ time }) => time));
    expect(ran.status).toBe(1);
  });

  it('is not written when it is switched off', async () => {
    const directory = join(node.root, 'other');
    await node.startAgent([`--state.file=${directory}/health.json`, '--state.journal-days=0']);
    await node.agent?.until('a device', (page) => page.includes('device="mlx5_0"'));
    await node.agent?.stop('SIGTERM');
    expect(readdirSync(directory)).toContain('health.json');
    expect(readdirSync(directory)).not.toContain('findings');
  });
});
