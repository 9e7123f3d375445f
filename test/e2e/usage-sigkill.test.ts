import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { withUsageTimes } from '../support/constants.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const HCA = 'example.com/hca';
const KILLS = 4;
const OF = { pod: 'train', device: 'mlx5_0' };
const TOTALS = [
  'container_device_allocated_seconds_total',
  'container_device_share_seconds_total',
  'container_device_busy_seconds_total',
  'container_device_unobserved_seconds_total',
  'container_device_received_bytes_total',
];

let node: ServedNode;
let bytes = 10_000_000;

beforeAll(async () => {
  node = new ServedNode({
    family: infiniband,
    counts: { infiniband: 2 },
    resource: HCA,
    config: {},
    flags: ['--refresh.interval=200ms'],
    env: withUsageTimes({ 'zero-for': 200 }),
  });
  node.kubelet.admitPod({
    namespace: 'ml',
    name: 'train',
    uid: 'uid-train',
    containers: [{ name: 'main', devices: [{ resource: HCA, id: 'mlx5_0' }] }],
  });
  await node.start();
});
afterAll(() => node.stop());

const valuesOf = (page: string): ReadonlyMap<string, number | undefined> =>
  new Map(TOTALS.map((name) => [name, seriesValue(page, name, OF)]));

/** The page once the totals of use and the counter of the hardware have grown. */
async function grown(before: ReadonlyMap<string, number | undefined>): Promise<ReadonlyMap<string, number | undefined>> {
  const page = await node.agent?.until('growth', (text) => {
    bytes += 1_000_000;
    node.change({ 'mlx5_0/ports/1/counters/port_rcv_data': `${bytes}` });
    const now = valuesOf(text);
    return ['container_device_busy_seconds_total', 'container_device_received_bytes_total'].every(
      (name) => (now.get(name) ?? 0) > (before.get(name) ?? 0),
    );
  });
  return valuesOf(page ?? '');
}

it(`no total of a container falls over ${KILLS} kills of the agent`, async () => {
  let before = await grown(new Map());
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const child = node.agent?.child;
    if (child === undefined) throw new Error('no agent');
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
    const agent = await node.startAgent();
    const back = valuesOf(
      await agent.until('the pod is seen again', (page) => seriesValue(page, 'container_device_received_bytes_total', OF) !== undefined),
    );
    for (const name of TOTALS) expect(back.get(name), `${name} after kill ${kill}`).toBeGreaterThanOrEqual(before.get(name) ?? 0);
    expect(agent.log()).not.toContain('the saved usage is not used');
    before = await grown(back);
  }
});
