import { expect, it } from 'vitest';
import { seriesValue } from '../../support/serve.ts';
import { describeReal } from './support/real-kubelet.ts';
import { closeAfterEach, podNamed, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const HCA = 'example.com/hca';
const SETTINGS = {
  counts: { infiniband: 2 },
  resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }],
  config: { health: { conditions: { 'infiniband.PortDown': { for: '300ms', recovery: '400ms' } } } },
};
const WAIT = { interval: 20 };

const asking = (name: string, count = 1) => ({ ...podNamed(name), containers: [{ name: 'rank', wants: { [HCA]: count } }] });

interface ToldEvent {
  readonly time: string;
  readonly transition: string;
  readonly condition: string;
}

async function timeOf(url: string, transition: string): Promise<number | undefined> {
  const { events } = (await (await fetch(`${url}/api/v1/events`)).json()) as { readonly events: readonly ToldEvent[] };
  const found = events.findLast((event) => event.transition === transition && event.condition === 'PortDown');
  return found === undefined ? undefined : Date.parse(found.time);
}

describeReal("a port that goes down, before the kubelet's own device manager", () => {
  it('is not to be had within two seconds of the verdict, is unhealthy at its pod, and comes back after the recovery', async () => {
    const { kubelet, machine, agent } = await watchedNode(SETTINGS);
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    const holder = asking('holder');
    const [held] = (await kubelet.run(holder)).rank?.devices[HCA] ?? [];
    const other = held === 'mlx5_0' ? 'mlx5_1' : 'mlx5_0';
    expect(await kubelet.status(holder)).toEqual({ rank: { [HCA]: { [`${held}`]: 'Healthy' } } });

    machine.pullCable(`${held}`);
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/1');
    await expect.poll(() => timeOf(agent.url, 'raised'), WAIT).toBeDefined();
    expect(await kubelet.allocatable(HCA)).toEqual([other]);
    expect(await kubelet.status(holder)).toEqual({ rank: { [HCA]: { [`${held}`]: 'Unhealthy' } } });
    const { uid } = await kubelet.admit({ ...podNamed('bystander'), containers: [{ name: 'c' }] });
    const woken = kubelet.events.filter(({ event }) => event === 'health').flatMap((line) => (line as { pods?: string[] }).pods ?? []);
    expect(woken, 'the pods whose status the kubelet renews').toHaveLength(1);
    expect(woken).not.toContain(uid);
    const page = await agent.metrics();
    expect(seriesValue(page, 'container_device_healthy', { pod: 'holder', device: `${held}` })).toBe(0);
    expect(seriesValue(page, 'container_device_allocation', { pod: 'holder', device: `${held}` })).toBe(1);

    machine.plugCable(`${held}`);
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    await expect.poll(() => timeOf(agent.url, 'cleared'), WAIT).toBeDefined();
    expect(await kubelet.status(holder)).toEqual({ rank: { [HCA]: { [`${held}`]: 'Healthy' } } });
  });

  it('is refused to pods that need it, in the words of the kubelet, until it is back', async () => {
    const { kubelet, machine } = await watchedNode(SETTINGS);
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    machine.pullCable('mlx5_1');
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/1');
    const refused = (await kubelet.admit(asking('both', 2))).refused;
    expect(refused?.reason).toBe('UnexpectedAdmissionError');
    expect(refused?.message).toContain(`requested number of devices unavailable for ${HCA}. Requested: 2, Available: 1`);
    expect((await kubelet.run(asking('one'))).rank?.devices[HCA]).toEqual(['mlx5_0']);

    machine.pullCable('mlx5_0');
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/0');
    expect((await kubelet.admit(asking('none'))).refused?.message).toContain(
      'no healthy devices present; cannot allocate unhealthy devices',
    );

    machine.plugCable('mlx5_1');
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/1');
    expect((await kubelet.run(asking('late'))).rank?.devices[HCA]).toEqual(['mlx5_1']);
    expect((await kubelet.list()).map(({ name }) => name).sort(), 'the refused are not listed').toEqual(['late', 'one']);
  });

  it('does not start a container of a resource that is checked first', async () => {
    const resources = SETTINGS.resources.map((resource) => ({ ...resource, preStart: true }));
    const flags = ['--refresh.interval=1h'];
    const config = { health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } } };
    const { kubelet, machine } = await watchedNode({ ...SETTINGS, resources, config, flags });
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    machine.pullCable('mlx5_0');
    const { rank } = await kubelet.run(asking('train', 2));
    expect(rank?.devices[HCA]).toEqual(['mlx5_0', 'mlx5_1']);
    expect(rank?.error).toMatch(/PreStartContainer rpc failed.*mlx5_0.*PortDown/);
  });
});
