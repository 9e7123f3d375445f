import { once } from 'node:events';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { defaultValues } from '../../src/model/options.ts';
import { type PluginResource, pluginResourceProblems, pluginSchema, resourceNameProblem } from '../../src/model/plugin-resource.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { findPaths, mergePaths, PathWatch } from '../../src/plugin/offers/device-paths.ts';
import { compareIds, healthByState, kubeletDevices, selectDevices, takeInventory } from '../../src/plugin/offers/inventory.ts';
import { type PluginOptions, pluginOptions } from '../../src/plugin/options.ts';
import { createDevicePlugin } from '../../src/plugin/plugin.ts';
import { socketPath } from '../../src/plugin/registration/sockets.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { deviceState, TestStore, TOY, toyAccess } from './support.ts';

const ids = (resource: PluginResource, states: readonly DeviceState[]): string[] =>
  takeInventory(resource, states, healthByState).map(({ id, health }) => `${id}=${health}`);

describe('takeInventory', () => {
  it('has no device of a family whose devices containers cannot get, whatever it calls itself', () => {
    const store = new TestStore();
    store.publish([deviceState({ id: 'GPU-a', model: 'H100' }), deviceState({ family: 'evil', id: 'GPU-b', model: 'H100' })]);
    const resource: PluginResource = { resource: 'example.com/gpu', select: { model: 'H100' } };
    const { stats } = createDevicePlugin({
      resources: [resource],
      options: defaultValues(pluginOptions) as PluginOptions,
      store,
      access: { toy: toyAccess, evil: undefined },
      missingRetentionMs: 60_000,
      clock: new ManualClock(),
      changes: { update() {}, begin() {}, end() {} },
    });
    expect(stats().resources).toMatchObject([{ healthy: 1, unhealthy: 0 }]);
  });

  it('ends soon with an expression of exponential time, which then selects nothing and is told', async () => {
    const told = once(process, 'warning');
    const states = ['Aaaaa', `${'a'.repeat(60)}!`, 'aa'].map((model, id) => deviceState({ id: `x${id}`, model }));
    const resource: PluginResource = { resource: 'example.com/toy', select: { model: '(a+)+' } };
    expect(ids(resource, states)).toEqual(['x0=Healthy']);
    const [warning] = await told;
    expect(String(warning)).toContain('(a+)+');
    expect(ids({ ...resource, select: { model: 'A+!' } }, states)).toEqual(['x1=Healthy']);
  });

  it('orders by id, numbers by value, whatever the order of the snapshot', () => {
    const states = ['mlx5_10', 'mlx5_2', 'mlx5_1'].map((id) => deviceState({ id }));
    expect(ids(TOY, states)).toEqual(ids(TOY, [...states].reverse()));
    expect(ids(TOY, states)).toEqual(['mlx5_1=Healthy', 'mlx5_2=Healthy', 'mlx5_10=Healthy']);
    expect(['a', 'a1', 'a01', 'b', 'a10', 'A'].sort(compareIds)).toEqual(['A', 'a', 'a01', 'a1', 'a10', 'b']);
  });

  it('names devices in the form asked for, and by their own id where they lack it', () => {
    const states = [deviceState({ id: 'x', uuid: 'U-1', pciAddress: '0000:3b:00.0', index: '4' }), deviceState({ id: 'y' })];
    expect(ids({ ...TOY, idStrategy: 'uuid' }, states)).toEqual(['U-1=Healthy', 'y=Healthy']);
    expect(ids({ ...TOY, idStrategy: 'bdf' }, states)).toEqual(['0000:3b:00.0=Healthy', 'y=Healthy']);
    expect(ids({ ...TOY, idStrategy: 'index' }, states)).toEqual(['4=Healthy', 'y=Healthy']);
    expect(ids(TOY, states)).toEqual(['x=Healthy', 'y=Healthy']);
  });

  it('gives an id that moved to the device that has it now, not to the one that went missing', () => {
    const gone = { ...deviceState({ id: 'x', index: '0' }), missingSinceMs: 1 };
    const here = deviceState({ id: 'y', index: '0' });
    expect(ids({ ...TOY, idStrategy: 'index' }, [gone, here])).toEqual(['0=Healthy']);
    expect(ids({ ...TOY, idStrategy: 'index' }, [here, gone])).toEqual(['0=Healthy']);
  });

  it('loses no device to another that has the same index: both go by their own ids', () => {
    const states = ['GPU-a', 'GPU-b'].map((parent) => deviceState({ id: `MIG-${parent}`, parent, index: '0' }));
    const alone = deviceState({ id: 'GPU-c', index: '2' });
    expect(ids({ ...TOY, idStrategy: 'index' }, [...states, alone])).toEqual(['2=Healthy', 'MIG-GPU-a=Healthy', 'MIG-GPU-b=Healthy']);
  });

  it('offers every replica, all of them unhealthy when their device is', () => {
    const states = [deviceState({ id: 'x', numaNode: 0 }, 'unhealthy'), deviceState({ id: 'y' })];
    expect(ids({ ...TOY, replicas: 2 }, states)).toEqual(['x::0=Unhealthy', 'x::1=Unhealthy', 'y::0=Healthy', 'y::1=Healthy']);
  });

  it('asks the policy about unknown devices, and about nothing else when they are missing', () => {
    const states = [deviceState({ id: 'x' }, 'unknown'), { ...deviceState({ id: 'y' }), missingSinceMs: 1 }];
    const offers = takeInventory(TOY, states, () => 'Healthy');
    expect(offers.map(({ health }) => health)).toEqual(['Healthy', 'Unhealthy']);
    expect(offers.map(({ why }) => why)).toEqual(['', 'missing since 1970-01-01T00:00:00.001Z']);
  });

  it('tells no NUMA node rather than a wrong one', () => {
    const of = (resource: PluginResource, ...nodes: (number | undefined)[]) =>
      kubeletDevices(
        takeInventory(
          resource,
          nodes.map((numaNode, at) => deviceState(numaNode === undefined ? { id: `t${at}` } : { id: `t${at}`, numaNode })),
          healthByState,
        ),
      ).map(({ topology }) => topology?.nodes.map(({ ID }) => ID));
    expect(of(TOY, 0, undefined, 1)).toEqual([[0n], undefined, [1n]]);
    expect(of({ ...TOY, pool: 1 }, 1, 1)).toEqual([[1n]]);
    expect(of({ ...TOY, pool: 1 }, 0, 1)).toEqual([undefined]);
    expect(of({ ...TOY, pool: 1 }, 0, undefined)).toEqual([undefined]);
  });

  it('keeps a pool in service while one of its devices works', () => {
    const [good, bad] = [deviceState({ id: 'x' }), deviceState({ id: 'y' }, 'unhealthy')];
    expect(ids({ ...TOY, pool: 2 }, [good, bad])).toEqual(['0=Healthy', '1=Healthy']);
    expect(ids({ ...TOY, pool: 2 }, [bad])).toEqual(['0=Unhealthy', '1=Unhealthy']);
    expect(ids({ ...TOY, pool: 2 }, [])).toEqual([]);
  });
});

describe('selectDevices', () => {
  const gpu = deviceState({
    family: 'nvidia',
    kind: 'gpu',
    id: 'GPU-1',
    aliases: ['gpu-1', '0000:3b:00.0'],
    model: 'NVIDIA H100 80GB HBM3',
    driver: 'nvidia',
    numaNode: 1,
    pciVendor: '0x10de',
    pciDevice: '0x2330',
  });
  const mig = deviceState({ family: 'nvidia', kind: 'mig', id: 'MIG-1', parent: 'GPU-0', profile: '1g.10gb' });
  const cut = deviceState({ family: 'nvidia', kind: 'gpu', id: 'GPU-0' });
  const pf = deviceState({ family: 'infiniband', kind: 'pf', id: 'mlx5_0', linkLayers: ['InfiniBand'] });
  const vf = deviceState({
    family: 'infiniband',
    kind: 'vf',
    id: 'mlx5_4',
    parent: 'mlx5_0',
    physicalFunction: '0000:10:00.0',
    linkLayers: ['Ethernet'],
  });
  const all = [gpu, mig, cut, pf, vf];

  it.each([
    [{ family: 'nvidia' }, ['GPU-1', 'MIG-1']],
    [{ kind: ['mig', 'vf'] }, ['MIG-1', 'mlx5_4']],
    [{ model: '.*h100.*' }, ['GPU-1']],
    [{ model: 'h100' }, []],
    [{ pciVendor: '10de' }, ['GPU-1']],
    [{ pciVendor: '0x10DE', pciDevice: '2330' }, ['GPU-1']],
    [{ pciVendor: '0x10de', pciDevice: '0x2331' }, []],
    [{ driver: 'nvidia' }, ['GPU-1']],
    [{ linkLayer: 'infiniband' }, ['mlx5_0']],
    [{ kind: 'vf', pfName: 'mlx5_0' }, ['mlx5_4']],
    [{ pfName: '0000:10:00\\..' }, ['mlx5_4']],
    [{ profile: '1g\\..*' }, ['MIG-1']],
    [{ numaNode: 1 }, ['GPU-1']],
    [{ devices: ['0000:3B:00.0', 'mlx5_4'] }, ['GPU-1', 'mlx5_4']],
    [{ family: 'nvidia', hasParts: false }, ['GPU-1', 'MIG-1']],
    [{ hasParts: true }, ['GPU-0', 'mlx5_0']],
    [
      [{ kind: 'mig' }, { kind: 'pf' }],
      ['MIG-1', 'mlx5_0'],
    ],
  ] as const)('%j', (select, expected) => {
    expect(selectDevices({ resource: 'example.com/x', select }, all).map(({ device }) => device.id)).toEqual(expected);
  });
});

describe('findPaths', () => {
  const tree: Readonly<Record<string, readonly string[]>> = {
    '.': ['input', 'null', 'ttyS0', 'ttyUSB0', 'ttyUSB1', 'ttyUSB10'],
    input: ['event0', 'event1', 'mice'],
  };
  const dev = {
    list: (path: string) => tree[path] ?? [],
    exists: (path: string) => tree['.']?.includes(path) === true || path === 'input/mice',
  };

  it.each([
    ['/dev/ttyUSB*', ['/dev/ttyUSB0', '/dev/ttyUSB1', '/dev/ttyUSB10']],
    ['/dev/ttyUSB?', ['/dev/ttyUSB0', '/dev/ttyUSB1']],
    ['/dev/tty[!U]*', ['/dev/ttyS0']],
    ['/dev/input/event[1-9]', ['/dev/input/event1']],
    ['/dev/*/mice', ['/dev/input/mice']],
    ['/dev/null', ['/dev/null']],
    ['/dev/zero', []],
    ['/dev/ttyUSB[9-0]', []],
    ['/dev/ttyUSB[^1]', ['/dev/ttyUSB0']],
    ['/dev/ttyUSB[]0]', []],
    ['/dev/tty.*', []],
  ])('%s', (glob, expected) => {
    expect(findPaths([glob], dev)).toEqual(expected);
  });

  it('ends soon, however many stars a glob has', () => {
    const names = ['a'.repeat(255), `${'a'.repeat(254)}b`];
    expect(findPaths([`/dev/${'a*'.repeat(60)}b`], { list: () => names, exists: () => true })).toEqual([`/dev/${names[1]}`]);
  });

  it('remembers what was there', () => {
    const first = mergePaths([], ['/dev/b', '/dev/a']);
    expect(mergePaths(first, ['/dev/b', '/dev/c'])).toEqual([
      { path: '/dev/a', present: false },
      { path: '/dev/b', present: true },
      { path: '/dev/c', present: true },
    ]);
  });
});

describe('PathWatch', () => {
  const setting = () => {
    const names = new Set(['ttyUSB0', 'ttyUSB1']);
    const dev = { shortages: 0, list: () => [...names], exists: (path: string) => names.has(path) };
    const clock = new ManualClock();
    const watch = new PathWatch({ globs: ['/dev/ttyUSB*'], dev, clock, retentionMs: 10_000 });
    watch.start(() => {});
    return { names, dev, clock, told: () => watch.paths().map(({ path, present }) => `${path}=${present}`) };
  };

  it('forgets what has not come back for the retention, so that names that are made anew each time do not add up', () => {
    const { names, clock, told } = setting();
    names.delete('ttyUSB0');
    names.add('ttyUSB2');
    clock.advance(9_000);
    expect(told()).toEqual(['/dev/ttyUSB0=false', '/dev/ttyUSB1=true', '/dev/ttyUSB2=true']);
    clock.advance(1_000);
    expect(told()).toEqual(['/dev/ttyUSB1=true', '/dev/ttyUSB2=true']);
    names.add('ttyUSB0');
    clock.advance(1_000);
    expect(told()).toEqual(['/dev/ttyUSB0=true', '/dev/ttyUSB1=true', '/dev/ttyUSB2=true']);
  });

  it('takes nothing for gone for want of descriptors', () => {
    const { dev, clock, told } = setting();
    dev.list = () => {
      dev.shortages += 1;
      return [];
    };
    clock.advance(1_000);
    expect(told()).toEqual(['/dev/ttyUSB0=true', '/dev/ttyUSB1=true']);
    dev.list = () => [];
    clock.advance(1_000);
    expect(told()).toEqual(['/dev/ttyUSB0=false', '/dev/ttyUSB1=false']);
  });
});

describe('configured resources', () => {
  const validate = new Ajv({ strict: false }).compile(pluginSchema);

  it('passes the schema with everything there is', () => {
    const whole: PluginResource = {
      resource: 'nvidia.com/gpu',
      select: [{ family: 'nvidia', kind: ['gpu', 'mig'], model: '.*', pciVendor: '10de', pciDevice: '0x2330', hasParts: false }],
      replicas: 4,
      idStrategy: 'uuid',
      allocation: {
        strategies: ['envvar', 'device-specs', 'volume-mounts', 'cdi-annotations', 'cdi-cri'],
        visibleBy: 'index',
        env: { A: '{id}' },
        annotations: { a: 'b' },
        mounts: [{ path: '/a', hostPath: '/b', readOnly: true }],
        deviceNodes: [{ path: '/dev/a', permissions: 'rwm' }],
        cdiDevices: ['nvidia.com/gpu={uuid}'],
        permissions: 'rw',
      },
      preferred: 'packed',
      preStart: true,
    };
    validate([whole, { resource: 'a.b/c', paths: ['/dev/tty*'] }]);
    expect(validate.errors).toBeNull();
    expect(pluginResourceProblems([whole, { resource: 'a.b/c', paths: ['/dev/tty*'] }])).toEqual([]);
  });

  it.each([
    [{ resource: 'a/b', select: {} }],
    [{ select: { family: 'x' } }],
    [{ resource: 'a/b', paths: ['/etc/passwd'] }],
    [{ resource: 'a/b', select: { family: 'x' }, replicas: 0 }],
    [{ resource: 'a/b', select: { family: 'x' }, prefered: 'packed' }],
    [{ resource: 'a/b', select: { family: 'x' }, allocation: { permissions: 'x' } }],
  ])('fails the schema: %j', (resource) => {
    expect(validate([resource])).toBe(false);
  });

  it.each([
    ['nvidia.com/gpu', undefined],
    ['amd.com/xilinx_u250_gen3x16_xdma_shell_4_1-0', undefined],
    ['gpu', 'it has no "/"'],
    ['kubernetes.io/gpu', '"kubernetes.io/" is reserved'],
    ['requests.nvidia.com/gpu', '"requests." is reserved'],
    ['Nvidia.com/gpu', 'what precedes "/" is not a DNS name'],
    ['/gpu', 'what precedes "/" is not a DNS name'],
    ['nvidia.com/', 'what follows "/" is not a name of at most 63 letters, digits, "-", "_" and "."'],
    [`nvidia.com/${'x'.repeat(64)}`, 'what follows "/" is not a name of at most 63 letters, digits, "-", "_" and "."'],
    ['nvidia.com/a/b', 'what follows "/" is not a name of at most 63 letters, digits, "-", "_" and "."'],
  ])('%s', (name, problem) => {
    expect(resourceNameProblem(name)).toBe(problem);
  });

  it('says what the schema cannot', () => {
    const select = { model: '(' };
    expect(pluginResourceProblems([{ resource: 'a.b/c', select, paths: ['/dev/x'], pool: 1, replicas: 2 }, { resource: 'a.b/c' }])).toEqual(
      [
        'resource "a.b/c" needs either "select" or "paths"',
        'resource "a.b/c" cannot have both "pool" and "replicas"',
        'resource "a.b/c": "(" is not a regular expression',
        'resource "a.b/c" is configured twice',
        'resource "a.b/c" needs either "select" or "paths"',
      ],
    );
  });
});

describe('socketPath', () => {
  it('fits into a socket address however long names and directories are, and differs by resource and start', () => {
    const long = `${'x'.repeat(60)}.com/${'y'.repeat(63)}`;
    expect(socketPath('/var/lib/kubelet/device-plugins', long, '01234567-1000').length).toBeLessThanOrEqual(107);
    expect(socketPath(`/${'d'.repeat(60)}`, long, '01234567-1').length).toBeLessThanOrEqual(107);
    expect(socketPath('/d', 'a.b/c', '1')).not.toBe(socketPath('/d', 'a.b_c', '1'));
    expect(socketPath('/d', 'a.b/c', '1')).not.toBe(socketPath('/d', 'a.b/c', '2'));
  });
});
