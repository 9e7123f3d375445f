import { mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CheckpointReader, parseCheckpoint } from '../../src/kubelet/checkpoint.ts';
import { checkpointText } from '../../src/simulator/kubelet/checkpoint-file.ts';
import { ManualClock } from './support/manual-clock.ts';
import { temporaryDirectory } from './support/node.ts';

const entry = {
  PodUID: 'u1',
  ContainerName: 'main',
  ResourceName: 'vendor.com/x',
  DeviceIDs: { '-1': ['b'], '0': ['a'] },
  AllocResp: 'Cg==',
};
const checkpoint = (entries: unknown): string =>
  JSON.stringify({ Data: { PodDeviceEntries: entries, RegisteredDevices: { 'vendor.com/x': ['a', 'b'] } }, Checksum: 1234567890 });
const parsed = { podUid: 'u1', container: 'main', resource: 'vendor.com/x', deviceIds: ['a', 'b'] };

describe('parseCheckpoint', () => {
  it('reads ids from under their NUMA nodes', () => {
    expect(parseCheckpoint(checkpoint([entry]))).toEqual([parsed]);
  });

  it('names a device with several nodes once', () => {
    expect(parseCheckpoint(checkpoint([{ ...entry, DeviceIDs: { '0': ['a', 'b'], '1': ['b', 'a'] } }]))).toEqual([parsed]);
  });

  it('reads the plain list of kubelets before 1.20', () => {
    expect(parseCheckpoint(checkpoint([{ ...entry, DeviceIDs: ['b', 'a'] }]))).toEqual([parsed]);
  });

  it('reads null as no entries', () => {
    expect(parseCheckpoint(checkpoint(null))).toEqual([]);
  });

  it.each([
    ['an empty file', ''],
    ['a file cut short', checkpoint([entry]).slice(0, -40)],
    ['something that is no JSON', 'kubelet'],
    ['JSON of another kind', '[1,2]'],
    ['the checkpoint of another manager', '{"policyName":"static","defaultCpuSet":"0-3","checksum":1}'],
    ['a bare null', 'null'],
    ['entries that are no list', checkpoint('all')],
  ])('does not read %s', (_, text) => {
    expect(parseCheckpoint(text)).toBeUndefined();
  });

  it.each([
    ['no pod', { ...entry, PodUID: '' }],
    ['a number for its resource', { ...entry, ResourceName: 7 }],
    ['no devices', { ...entry, DeviceIDs: {} }],
    ['devices that are no names', { ...entry, DeviceIDs: { '0': [1, null] } }],
    ['nothing in it', null],
  ])('leaves out an entry with %s and reads the others', (_, odd) => {
    expect(parseCheckpoint(checkpoint([odd, entry]))).toEqual([parsed]);
  });

  it('reads what the simulated kubelet writes', () => {
    const device = { resource: 'vendor.com/x', id: 'a', numaNodes: [0, 1] };
    const pod = {
      namespace: 'n',
      name: 'p',
      uid: 'u1',
      containers: [{ name: 'main', devices: [device, { resource: 'vendor.com/x', id: 'b' }] }],
    };
    expect(parseCheckpoint(checkpointText([pod], { devices: [device], cpus: [], memory: [] }))).toEqual([parsed]);
  });
});

describe('reading the checkpoint time and again', () => {
  const written = (text: string, clock: ManualClock, path = join(temporaryDirectory(), 'kubelet_internal_checkpoint')): string => {
    writeFileSync(`${path}.new`, text);
    const seconds = clock.now() / 1_000;
    utimesSync(`${path}.new`, seconds, seconds);
    renameSync(`${path}.new`, path);
    return path;
  };

  it('opens a file that has long been as it is once, and one that took its place again', async () => {
    const clock = new ManualClock();
    const path = written(checkpoint([entry]), clock);
    const reader = new CheckpointReader(path, clock);
    clock.advance(2_000);
    const first = await reader.read();
    expect(first).toEqual([parsed]);
    expect(await reader.read()).toBe(first);
    written(checkpoint([{ ...entry, PodUID: 'u2' }]), clock, path);
    expect(await reader.read()).toEqual([{ ...parsed, podUid: 'u2' }]);
  });

  it('opens a file that has just been written each time: its next content may have the same times', async () => {
    const clock = new ManualClock();
    const path = written(checkpoint([entry]), clock);
    const reader = new CheckpointReader(path, clock);
    expect(await reader.read()).toEqual([parsed]);
    const { atime, mtime } = statSync(path);
    writeFileSync(path, checkpoint([{ ...entry, PodUID: 'u2' }]));
    utimesSync(path, atime, mtime);
    expect(await reader.read()).toEqual([{ ...parsed, podUid: 'u2' }]);
  });

  it('says nothing of a file that went away or is no file, and reads it once it is back', async () => {
    const clock = new ManualClock();
    const path = written(checkpoint([entry]), clock);
    const reader = new CheckpointReader(path, clock);
    clock.advance(2_000);
    expect(await reader.read()).toEqual([parsed]);
    rmSync(path);
    expect(await reader.read()).toBeUndefined();
    mkdirSync(path);
    utimesSync(path, 1, 1);
    expect(await reader.read()).toBeUndefined();
    rmSync(path, { recursive: true });
    written(checkpoint([entry]), clock, path);
    expect(await reader.read()).toEqual([parsed]);
    expect(await new CheckpointReader('', clock).read()).toBeUndefined();
  });
});
