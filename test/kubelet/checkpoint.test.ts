import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { CheckpointReader, parseCheckpoint } from '../../src/kubelet/checkpoint/checkpoint.ts';

import type { CheckpointReason } from '../../src/model/pod-resources.ts';
import { checkpointData } from '../../src/sim/kubelet/checkpoint.ts';
import { builtDocumentThread } from '../support/documents.ts';
import { eventually } from '../support/until.ts';
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
    expect(
      parseCheckpoint(JSON.stringify({ Data: checkpointData([pod], { devices: [device], cpus: [], memory: [] }), Checksum: 0 })),
    ).toEqual([parsed]);
  });
});

const thread = builtDocumentThread();
afterAll(() => thread.close());
const readerOf = (path: string): CheckpointReader => new CheckpointReader(path, thread, systemClock);

describe('reading the checkpoint', () => {
  it('reads a file that was absent once it is there, and reports nothing while it is absent', async () => {
    const path = join(temporaryDirectory(), 'kubelet_internal_checkpoint');
    const reader = readerOf(path);
    expect(await reader.read()).toEqual({ entries: [] });
    writeFileSync(path, checkpoint([entry]));
    expect(await reader.read()).toEqual({ entries: [parsed], isComplete: true });
    writeFileSync(path, checkpoint([{ ...entry, PodUID: 'u2' }]));
    expect(await reader.read()).toEqual({ entries: [{ ...parsed, podUid: 'u2' }], isComplete: true });
    expect(await readerOf('').read()).toEqual({ entries: [] });
  });

  it.each<[string, CheckpointReason, (path: string) => void]>([
    ['a pipe that nobody writes', 'not-a-file', (path) => execFileSync('mkfifo', [path])],
    [
      'a link to a pipe',
      'not-a-file',
      (path) => {
        execFileSync('mkfifo', [`${path}.pipe`]);
        symlinkSync(`${path}.pipe`, path);
      },
    ],
    ['a link to an endless device', 'not-a-file', (path) => symlinkSync('/dev/zero', path)],
    ['a directory', 'not-a-file', (path) => mkdirSync(path)],
    ['a loop of links', 'not-a-file', (path) => symlinkSync(path, path)],
    ['46 MB', 'too-large', (path) => writeFileSync(path, Buffer.alloc(46_000_000, 32))],
    ['half a checkpoint', 'not-a-checkpoint', (path) => writeFileSync(path, checkpoint([entry]).slice(0, 40))],
  ])('reports %s as %s, and reads the checkpoint once it is back', async (_, code, place) => {
    const path = join(temporaryDirectory(), 'kubelet_internal_checkpoint');
    const reader = readerOf(path);
    place(path);
    // On a busy machine the thread of a large document can start later than a read waits.
    await eventually(async () => expect((await reader.read()).problem?.code).toBe(code));
    for (let time = 0; time < 8; time += 1)
      expect(await reader.read()).toEqual({ entries: expect.anything(), problem: expect.objectContaining({ code }) });
    expect(reader.isPending).toBe(false);
    rmSync(path, { recursive: true });
    writeFileSync(path, checkpoint([entry]));
    expect(await reader.read()).toEqual({ entries: [parsed], isComplete: true });
  });
});
