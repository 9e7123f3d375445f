import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeState } from '../../src/health/journal/state-file.ts';
import type { IncidentRecord } from '../../src/incidents/record.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const BOOT = '0d5e3b1c-5a0e-4bfa-9a53-52d5a1c5b0de';
const HCAS = 3;

let node: ServedNode;
beforeAll(async () => {
  node = new ServedNode({
    family: infiniband,
    counts: { infiniband: HCAS + 1 },
    resource: 'example.com/hca',
    config: { health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } } },
    flags: ['--refresh.interval=100ms'],
  });
  mkdirSync(join(node.root, 'proc/sys/kernel/random'), { recursive: true });
  writeFileSync(join(node.root, 'proc/sys/kernel/random/boot_id'), `${BOOT}\n`);
  await node.start();
});
afterAll(() => node.stop());

const directory = (): string => join(node.root, 'state/incidents');

/** Every file with the ending of a record is whole. */
function records(): IncidentRecord[] {
  const names = existsSync(directory()) ? readdirSync(directory()).filter((name) => name.endsWith('.json')) : [];
  return names.map((name) => (JSON.parse(readFileSync(join(directory(), name), 'utf8')) as { record: IncidentRecord }).record);
}

describe('an agent that is killed right after a verdict', () => {
  it('has the record of each event that it will not announce again, and in the end one of each fault', async () => {
    for (let hca = 0; hca < HCAS; hca += 1) {
      const agent = node.agent ?? (await node.startAgent());
      const device = `mlx5_${hca}`;
      await agent.until('it is up', (page) => seriesValue(page, 'device_healthy', { device }) === 1);
      node.change({ [`${device}/ports/1/state`]: '1: DOWN', [`${device}/ports/1/phys_state`]: '2: Polling' });
      await agent.until('the verdict', (page) => seriesValue(page, 'device_healthy', { device }) === 0);
      const closed = once(agent.child, 'close');
      agent.child.kill('SIGKILL');
      await closed;
      node.agent = undefined;
      const { state, ignored } = await decodeState(readFileSync(join(node.root, 'state/health.json'), 'utf8'), BOOT);
      expect(ignored).toBeUndefined();
      const known = (state?.events ?? []).filter(({ transition, to }) => transition === 'state' && to !== 'healthy');
      const recorded = records().flatMap((record) => record.changes.map(({ time }) => `${record.device.key} ${time}`));
      for (const event of known) expect(recorded).toContain(`${event.device} ${new Date(event.timeMs).toISOString()}`);
    }
    const last = await node.startAgent();
    await last.until('a read', (page) => seriesValue(page, 'device_healthy', { device: `mlx5_${HCAS}` }) === 1);
    const names = Array.from({ length: HCAS }, (_, hca) => `infiniband/mlx5_${hca}`);
    await expect.poll(() => [...new Set(records().map(({ device }) => device.key))].sort()).toEqual(names);
    expect(await last.stop()).toBe(0);
    // Without a writer, a file of an interrupted write would be seen now.
    expect(readdirSync(directory()).filter((name) => !name.endsWith('.json'))).toEqual([]);
  });
});
