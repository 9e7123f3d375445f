import { expect, it } from 'vitest';
import type { DeviceAccess } from '../../../src/model/access.ts';
import type { PluginResource } from '../../../src/model/plugin-resource.ts';
import { withUsageTimes } from '../../support/constants.ts';
import { seriesValue } from '../../support/serve.ts';
import type { RunOptions } from './support/exchanged.ts';
import { familyNamed } from './support/machine.ts';
import { describeReal } from './support/real-kubelet.ts';
import { closeAfterEach, podNamed, seriesOf, type ToldDevice, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const GPU = 'example.com/gpu';
const HCA = 'example.com/hca';
const VF = 'example.com/vf';
const PORT = 'example.com/fpga-port';
const CARD = 'example.com/alveo';

/** Each way in which a container is given a device, on hardware of every family. */
const RESOURCES: readonly PluginResource[] = [
  {
    resource: GPU,
    select: { family: 'nvidia', kind: 'gpu', hasParts: false },
    allocation: { strategies: ['envvar', 'device-specs', 'cdi-cri', 'cdi-annotations'] },
  },
  {
    resource: HCA,
    select: { family: 'infiniband', kind: 'pf' },
    allocation: {
      env: { '{RESOURCE}': '{id}' },
      annotations: { 'example.com/hcas': '{id}' },
      mounts: [{ path: '/etc/hca/{id}', hostPath: '/etc/hosts', readOnly: true }],
    },
  },
  { resource: VF, select: { family: 'infiniband', kind: 'vf' }, idStrategy: 'bdf' },
  { resource: PORT, select: { family: 'fpga', kind: 'port' } },
  { resource: CARD, select: { family: 'fpga', pciVendor: '10ee' } },
];

const COUNTS = { nvidia: 3, infiniband: 2, 'infiniband.vf': 4, fpga: 4 };

/** The union of what the families say of the devices that a container was given. */
function declared(devices: readonly ToldDevice[]): DeviceAccess[] {
  return devices.map((device) => {
    const access = familyNamed(device.family).access?.(device);
    if (access === undefined) throw new Error(`${device.family} says nothing of access`);
    return access;
  });
}

const byPath = <T extends { readonly containerPath: string }>(entries: readonly T[]): T[] =>
  [...new Map(entries.map((entry) => [entry.containerPath, entry])).values()].sort((a, b) => (a.containerPath < b.containerPath ? -1 : 1));

const nodesOf = (access: readonly DeviceAccess[]): RunOptions['nodes'] =>
  byPath(
    access.flatMap(({ deviceNodes }) =>
      deviceNodes.map(({ path, hostPath = path, permissions }) => ({ containerPath: path, hostPath, permissions })),
    ),
  );

const mountsOf = (access: readonly DeviceAccess[]): RunOptions['mounts'] =>
  byPath(access.flatMap(({ mounts = [] }) => mounts.map(({ path, hostPath, readOnly }) => ({ containerPath: path, hostPath, readOnly }))));

describeReal.each(['direct', 'watcher'] as const)(
  "the kubelet's own device manager and the agent's resources, registered %s",
  (registration) => {
    it('has every resource with all its devices, gives containers what the families declare, and has them attributed', async () => {
      const flags = [`--plugin.registration=${registration}`];
      const { kubelet, agent, devices } = await watchedNode({ counts: COUNTS, resources: RESOURCES, flags });
      const amounts = async (): Promise<Record<string, number>> => ({ ...(await kubelet.capacity()).allocatable });
      await expect.poll(amounts).toEqual({ [GPU]: 3, [HCA]: 2, [VF]: 4, [PORT]: 2, [CARD]: 2 });
      expect((await kubelet.capacity()).capacity, 'no device is told of that cannot be used').toEqual(await amounts());

      const wants = { [GPU]: 2, [HCA]: 2, [VF]: 1, [PORT]: 1, [CARD]: 2 };
      const containers = Object.entries(wants).map(([resource, count], at) => ({ name: `c${at}`, wants: { [resource]: count } }));
      const given = await kubelet.run({ ...podNamed('train'), containers });
      const page = await agent.until('all of it on the page', (text) => seriesOf(text, 'container_device_allocation').length === 8);

      const all = await devices();
      for (const [at, [resource, count]] of Object.entries(wants).entries()) {
        const container = given[`c${at}`];
        const ids = container?.devices[resource] ?? [];
        expect(ids).toHaveLength(count);
        const named = ids.map((id) => all.find((device) => device.id === id || device.aliases.includes(id)) as ToldDevice);
        const access = declared(named);
        const options = container?.options as RunOptions;
        expect(byPath(options.nodes), `device nodes of ${resource}`).toEqual(nodesOf(access));
        for (const mount of mountsOf(access)) expect(options.mounts).toContainEqual(mount);
        for (const { annotations = {} } of access) expect(options.annotations).toMatchObject(annotations);
        const attributed = seriesOf(page, 'container_device_allocation').filter((labels) => labels.container === `c${at}`);
        expect(attributed.map((labels) => labels.device_id).sort()).toEqual([...ids].sort());
        expect(attributed.map((labels) => labels.device).sort()).toEqual(named.map(({ id }) => id).sort());
      }
      expect(seriesOf(page, 'container_device_unresolved')).toEqual([]);
    });

    it('passes configured variables, annotations, mounts and CDI names on', async () => {
      const flags = [`--plugin.registration=${registration}`];
      const { kubelet } = await watchedNode({ counts: COUNTS, resources: RESOURCES, flags });
      await expect.poll(async () => (await kubelet.capacity()).allocatable).toMatchObject({ [GPU]: 3, [HCA]: 2 });
      const containers = [
        { name: 'gpus', wants: { [GPU]: 2 } },
        { name: 'hcas', wants: { [HCA]: 2 } },
      ];
      const { gpus, hcas } = await kubelet.run({ ...podNamed('train'), containers });
      const uuids = gpus?.devices[GPU] ?? [];
      expect(gpus?.options?.env.NVIDIA_VISIBLE_DEVICES?.split(',').sort()).toEqual([...uuids].sort());
      const names = uuids.map((uuid) => `nvidia.com/gpu=${uuid}`).sort();
      expect([...(gpus?.options?.cdi ?? [])].sort()).toEqual(names);
      const cdi = Object.entries(gpus?.options?.annotations ?? {});
      expect(cdi.map(([key, value]) => [key.replace(/_.*/, ''), value.split(',').sort()])).toEqual([['cdi.k8s.io/device-agent', names]]);

      expect(hcas?.options?.env).toEqual({
        EXAMPLE_COM_HCA: 'mlx5_0,mlx5_1',
        DEVICE_AGENT_DEVICES_EXAMPLE_COM_HCA: 'mlx5_0,mlx5_1',
        PCIDEVICE_EXAMPLE_COM_HCA: '0000:10:00.0,0000:20:00.0',
      });
      expect(hcas?.options?.annotations).toEqual({ 'example.com/hcas': 'mlx5_0,mlx5_1' });
      expect(byPath(hcas?.options?.mounts ?? [])).toEqual(
        ['mlx5_0', 'mlx5_1'].map((id) => ({ containerPath: `/etc/hca/${id}`, hostPath: '/etc/hosts', readOnly: true })),
      );
    });

    it('lists what was given, keeps it in the checkpoint, and drops its series three refreshes after the pod', async () => {
      // The totals of an ended container stay for a time, three refreshes of 1 s at least; more would hide what else stays.
      const flags = [`--plugin.registration=${registration}`];
      const env = withUsageTimes({ 'zero-for': 0, linger: 0, 'absent-for': 0 });
      const resources = RESOURCES.filter(({ resource }) => resource === HCA);
      const { kubelet, agent } = await watchedNode({ counts: COUNTS, resources, flags, env });
      await expect.poll(() => kubelet.amounts(HCA)).toBe('2/2');
      const pod = { ...podNamed('train'), containers: [{ name: 'rank', wants: { [HCA]: 1 } }, { name: 'idle' }] };
      const { rank } = await kubelet.run(pod);
      const [id] = rank?.devices[HCA] ?? [];
      const [listed] = await kubelet.list();
      expect(
        listed?.containers?.map(({ name, devices }) => [name, devices?.map((entry) => [entry.resource_name, entry.device_ids])]),
      ).toEqual([
        ['rank', [[HCA, [id]]]],
        ['idle', undefined],
      ]);
      const { Data } = await kubelet.ask<{ Data: { PodDeviceEntries: { ContainerName: string; AllocResp: string }[] } }>('checkpoint');
      expect(Data.PodDeviceEntries.map(({ ContainerName }) => ContainerName)).toEqual(['rank']);
      expect(Buffer.from(Data.PodDeviceEntries[0]?.AllocResp ?? '', 'base64').toString('latin1')).toContain('EXAMPLE_COM_HCA');

      await agent.until('attributed', (page) => seriesValue(page, 'container_device_allocation', { pod: 'train', device: `${id}` }) === 1);
      await kubelet.remove(pod);
      await agent.until('gone', (page) => !page.includes('pod="train"'));
      expect(await kubelet.amounts(HCA), 'the devices stay').toBe('2/2');
    });
  },
);
