import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type ServedAgent, seriesValue } from '../../support/serve.ts';
import { describeReal, type RealKubelet } from './support/real-kubelet.ts';
import { closeAfterEach, closing, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const KILLS = Number(process.env.TEST_KILLS ?? 3);
const HCA = 'example.com/hca';
const NAMES = ['mlx5_0', 'mlx5_1', 'mlx5_2', 'mlx5_3'];
/** An agent on a busy machine still reads within this time after its start. */
const STALE_AFTER_MS = 5_000;
const SETTINGS = {
  counts: { infiniband: NAMES.length },
  resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }],
  flags: ['--refresh.interval=200ms', `--refresh.stale-after=${STALE_AFTER_MS}ms`],
};
/** What is promised is 3 s. */
const WAIT = { interval: 5 };
const LOOK_MS = 5;

/** Looks at what the kubelet can hand out, over and over. */
function watch(kubelet: RealKubelet, hung: readonly string[]): { end(): Promise<{ readonly looks: number; readonly wrong: string[] }> } {
  let isOver = false;
  let looks = 0;
  const wrong: string[] = [];
  const looking = (async () => {
    while (!isOver) {
      const now = await kubelet.allocatable(HCA);
      looks += 1;
      if (now.some((device) => hung.includes(device))) wrong.push(now.join());
      await sleep(LOOK_MS);
    }
  })();
  const end = async (): Promise<{ looks: number; wrong: string[] }> => {
    isOver = true;
    await looking;
    return { looks, wrong };
  };
  return { end };
}

/** All of them are read from now on, and not only remembered. */
async function areRead(agent: ServedAgent, devices: readonly string[]): Promise<void> {
  const fromS = Date.now() / 1_000;
  const readS = (page: string, device: string): number => seriesValue(page, 'device_last_read_timestamp_seconds', { device }) ?? 0;
  await agent.until(`${devices} are read`, (page) => devices.every((device) => readS(page, device) > fromS));
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

describeReal.each([1, 2, 3])("%i of four HCAs that hang, before the kubelet's own device manager", (count) => {
  const [hung, sound] = [NAMES.slice(0, count), NAMES.slice(count)];
  const told = Object.fromEntries(NAMES.map((device) => [device, hung.includes(device) ? 'Unhealthy' : 'Healthy']));

  it(`are not to be had over ${KILLS} kills of the agent, while the others are offered at once and read`, async () => {
    const node = await watchedNode(SETTINGS);
    const { kubelet, machine } = node;
    await expect.poll(() => kubelet.allocatable(HCA), WAIT).toEqual(NAMES);
    for (const device of hung) machine.hang(`${device}/ports/1/counters/port_rcv_data`);
    await expect.poll(() => kubelet.allocatable(HCA), WAIT).toEqual(sound);
    const unknown = (await node.devices()).filter(({ health }) => health.state === 'unknown').map(({ id }) => id);
    expect(unknown).toEqual(hung);

    const watching = watch(kubelet, hung);
    closing({ close: () => watching.end() });
    const before = kubelet.lists.length;
    const waits: number[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      // Every other agent is killed before it has read anything.
      if (kill % 2 === 0) await areRead(node.agent, sound);
      const seen = kubelet.lists.length;
      const killedMs = Date.now();
      await node.restart();
      await expect.poll(() => kubelet.lists.length, WAIT).toBeGreaterThan(seen);
      await expect.poll(() => kubelet.allocatable(HCA), WAIT).toEqual(sound);
      waits.push((kubelet.lists[seen]?.atMs ?? Number.NaN) - killedMs);
    }
    // What is remembered does not hold for ever: by now each device was read, or is unknown because it was not.
    await sleep(STALE_AFTER_MS);
    await areRead(node.agent, sound);
    const { looks, wrong } = await watching.end();
    const lists = kubelet.lists.slice(before).map(({ devices }) => devices);
    const figures = `sound ones back after ${median(waits)} ms, at most ${Math.max(...waits)}; ${lists.length} lists, ${looks} looks`;
    process.stdout.write(`${count} of ${NAMES.length} hang, ${KILLS} kills: ${figures}, ${wrong.length} with a hung one\n`);
    expect([...new Set(wrong)]).toEqual([]);
    for (const list of lists) expect(list).toEqual(told);
    expect(lists.length).toBeGreaterThanOrEqual(KILLS);
  });
});
