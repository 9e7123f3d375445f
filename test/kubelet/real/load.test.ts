import { expect, it } from 'vitest';
import { seriesValue } from '../../support/serve.ts';
import { describeReal } from './support/real-kubelet.ts';
import { closeAfterEach, podNamed, seriesOf, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const SHARE = 'example.com/hca-share';
const PODS = 250;
const EACH = 4;
const DEVICES = 40;
const SETTINGS = {
  counts: { infiniband: DEVICES },
  resources: [{ resource: SHARE, select: { family: 'infiniband', kind: 'pf' }, replicas: (PODS * EACH) / DEVICES }],
};
const WAIT = { interval: 50 };

describeReal("a full node before the kubelet's own code", () => {
  it(`attributes ${PODS} pods of ${EACH} devices, and keeps them while another client uses the rate limit up`, async () => {
    const { kubelet, agent } = await watchedNode(SETTINGS);
    await expect.poll(() => kubelet.amounts(SHARE), WAIT).toBe(`${PODS * EACH}/${PODS * EACH}`);
    const expected = new Map<string, string>();
    for (let at = 0; at < PODS; at += 1) {
      const { main } = await kubelet.run({ ...podNamed(`p${at}`), containers: [{ name: 'main', wants: { [SHARE]: EACH } }] });
      for (const id of main?.devices[SHARE] ?? []) expected.set(id, `p${at}`);
    }
    expect(expected.size, 'ids handed out, none of them twice').toBe(PODS * EACH);
    const isComplete = (page: string): boolean => {
      const told = seriesOf(page, 'container_device_allocation');
      return told.length === expected.size && told.every(({ device_id, pod }) => expected.get(device_id as string) === pod);
    };
    const page = await agent.until('all attributed', isComplete);
    for (const { device_id, device } of seriesOf(page, 'container_device_allocation')) expect(device_id).toMatch(`${device}::`);
    expect(seriesValue(page, 'device_agent_kubelet_allocated_devices', { resource: SHARE })).toBe(expected.size);
    const refused = (await kubelet.admit({ ...podNamed('late'), containers: [{ name: 'main', wants: { [SHARE]: 1 } }] })).refused;
    expect(refused?.message).toContain(`requested number of devices unavailable for ${SHARE}. Requested: 1, Available: 0`);

    const flood = kubelet.flood(6_000);
    const limited = await agent.until(
      'refused',
      (text) => seriesValue(text, 'device_agent_podresources_problem', { reason: 'rate-limited' }) === 1,
    );
    expect(isComplete(limited)).toBe(true);
    const refusals = (text: string): number =>
      seriesValue(text, 'device_agent_podresources_requests_total', { method: 'List', code: 'RESOURCE_EXHAUSTED' }) ?? 0;
    let isOver = false;
    const flooded = flood.finally(() => {
      isOver = true;
    });
    let last = limited;
    while (!isOver) {
      last = await agent.metrics();
      expect(isComplete(last)).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { asked, rejected } = await flooded;
    expect(rejected / asked, 'the limit was used up by the other client').toBeGreaterThan(0.5);
    // Waits of 0.5, 1, 2 and 4 s: each is twice the one before, so that few fit into six seconds.
    expect(refusals(last)).toBeLessThanOrEqual(6);
    await agent.until('asked again', (text) => seriesValue(text, 'device_agent_podresources_up') === 1);

    await kubelet.remove(podNamed('p7'));
    await agent.until('one pod less', (text) => seriesOf(text, 'container_device_allocation').length === (PODS - 1) * EACH);
  });
});
