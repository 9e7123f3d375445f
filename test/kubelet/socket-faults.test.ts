import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { callFailure, errnoFailure } from '../../src/kubelet/client/client.ts';
import { millis } from '../../src/model/duration.ts';
import type { PodResourcesReason } from '../../src/model/pod-resources.ts';
import { DEADLINE_MS } from '../support/until.ts';
import { gpuPod, holders, makeNode, type TestNode } from './support/node.ts';

interface Fault {
  readonly name: string;
  readonly reason: PodResourcesReason;
  inject(node: TestNode): unknown;
  /** What ends it; by default another start of the kubelet. */
  end?(node: TestNode): unknown;
}

const faults: readonly Fault[] = [
  { name: 'a missing socket', reason: 'socket-missing', inject: ({ kubelet }) => kubelet.close() },
  {
    name: 'a missing directory',
    reason: 'socket-missing',
    inject: async ({ kubelet }) => {
      await kubelet.close();
      rmSync(dirname(kubelet.podResourcesSocket), { recursive: true });
    },
  },
  { name: 'a socket left behind by a kubelet that ended', reason: 'refused', inject: ({ kubelet }) => kubelet.stop() },
  {
    name: 'a file in place of the socket',
    reason: 'not-a-socket',
    inject: async ({ kubelet }) => {
      await kubelet.close();
      writeFileSync(kubelet.podResourcesSocket, 'kubelet');
    },
  },
  {
    name: 'a directory in place of the socket, as a mount of a missing socket makes it',
    reason: 'not-a-socket',
    inject: async ({ kubelet }) => {
      await kubelet.close();
      mkdirSync(kubelet.podResourcesSocket);
    },
  },
  {
    name: 'a kubelet that takes too long',
    reason: 'timeout',
    inject: ({ kubelet }) => kubelet.setFault({ kind: 'slow', delayMs: 60_000 }),
    end: ({ kubelet }) => kubelet.setFault(undefined),
  },
  {
    name: 'a kubelet that never answers',
    reason: 'timeout',
    inject: ({ kubelet }) => kubelet.setFault({ kind: 'hang' }),
    end: ({ kubelet }) => kubelet.setFault(undefined),
  },
  { name: 'a listener that accepts and stays silent', reason: 'timeout', inject: ({ kubelet }) => kubelet.impersonate('silence') },
  { name: 'garbage bytes', reason: 'protocol-error', inject: ({ kubelet }) => kubelet.impersonate('garbage') },
  { name: 'a listener that hangs up', reason: 'protocol-error', inject: ({ kubelet }) => kubelet.impersonate('hang-up') },
  { name: 'half an answer and then the end', reason: 'protocol-error', inject: ({ kubelet }) => kubelet.impersonate('half-answer') },
  {
    name: 'an answer of 20 MiB',
    reason: 'too-large',
    inject: ({ kubelet }) => kubelet.setFault({ kind: 'huge', bytes: 20 * 1_024 * 1_024 }),
    end: ({ kubelet }) => kubelet.setFault(undefined),
  },
  {
    name: 'a kubelet with neither version of the service',
    reason: 'unimplemented',
    inject: ({ kubelet }) => kubelet.restart({ apis: { v1: false, v1alpha1: false, allocatable: 'unimplemented' } }),
    end: ({ kubelet }) => kubelet.restart({ apis: { v1: true, v1alpha1: true, allocatable: 'yes' } }),
  },
];

/** An answer is waited for as long as a busy machine needs, but where none comes. */
const patience = (reason: string) => millis(reason === 'timeout' ? 2_000 : DEADLINE_MS);

describe.each(faults)('$name', ({ reason, inject, end = ({ kubelet }) => kubelet.start() }) => {
  it(`is told as ${reason}, leaves the last answer standing, and is over with the next refresh after it ended`, async () => {
    const node = makeNode();
    await node.kubelet.start();
    node.kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const poller = node.poller({ options: { timeout: patience(reason) } });
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    const { answeredAtMs } = poller.current();

    await inject(node);
    for (const _ of ['begins', 'lasts']) {
      await poller.refresh();
      expect(poller.current()).toMatchObject({ problem: { reason }, answeredAtMs });
      expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    }
    const { message } = poller.current().problem!;
    await poller.refresh();
    expect(poller.current().problem?.message).toBe(message);

    await end(node);
    node.kubelet.admitPod(gpuPod('next', 'gpu-1'));
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(holders(poller)).toEqual(['next/main=vendor.com/gpu:gpu-1', 'train/main=vendor.com/gpu:gpu-0']);
  });

  it('is no obstacle to an agent that starts meanwhile', async () => {
    const node = makeNode();
    await node.kubelet.start();
    node.kubelet.admitPod(gpuPod('train', 'gpu-0'));
    await inject(node);
    const poller = node.poller({ options: { timeout: patience(reason) } });
    await poller.refresh();
    expect(poller.current()).toMatchObject({ problem: { reason }, allocations: [] });
    expect(poller.current().answeredAtMs).toBeUndefined();
    await end(node);
    await poller.refresh();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    expect(poller.stats().restarts).toBe(0);
  });
});

/** Root may do everything, so it puts its rights aside; whoever else runs this needs not. */
async function withoutRootRights<T>(run: () => Promise<T>): Promise<T> {
  const root = process.geteuid?.() === 0;
  if (root) process.seteuid?.('nobody');
  try {
    return await run();
  } finally {
    if (root) process.seteuid?.(0);
  }
}

describe('a socket that may not be used', () => {
  it.each([
    ['because of the socket itself', 0o755, 0o000],
    ['because of its directory', 0o000, 0o777],
  ])('is told as permission-denied %s, and is used once it may be', async (_, directoryMode, socketMode) => {
    const node = makeNode();
    await node.kubelet.start();
    node.kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const directory = dirname(node.kubelet.podResourcesSocket);
    chmodSync(dirname(directory), 0o755);
    node.kubelet.setSocketMode(socketMode);
    chmodSync(directory, directoryMode);
    const poller = node.poller();
    await withoutRootRights(() => poller.refresh());
    expect(poller.current().problem).toMatchObject({ reason: 'permission-denied', message: expect.stringContaining('EACCES') });
    chmodSync(directory, 0o750);
    node.kubelet.setSocketMode(0o755);
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
  });

  it.each([
    ['EACCES', 'permission-denied'],
    ['EPERM', 'permission-denied'],
    ['ECONNREFUSED', 'refused'],
    ['ENOENT', 'socket-missing'],
    ['EAGAIN', 'timeout'],
    ['EPROTOTYPE', 'protocol-error'],
    ['ENAMETOOLONG', 'other'],
  ])('with %s from the system is told as %s', (errno, reason) => {
    expect(errnoFailure('/run/kubelet.sock', errno)).toMatchObject({ reason, message: expect.stringContaining(errno) });
  });
});

describe('a status that is nobody’s fault in particular', () => {
  it.each([
    [2, 'panic', 'other'],
    [7, '', 'permission-denied'],
    [8, 'rejected by rate limit', 'rate-limited'],
    [8, 'grpc: received message larger than max (5 vs. 4)', 'too-large'],
    [8, 'trying to send message larger than max (5 vs. 4)', 'too-large'],
    [8, 'Bandwidth exhausted or memory limit exceeded', 'protocol-error'],
    [13, 'Received RST_STREAM with code 2', 'protocol-error'],
  ])('%i "%s" is told as %s', async (code, details, reason) => {
    expect(await callFailure('/run/kubelet.sock', 'List', { code, details })).toMatchObject({ reason });
  });
});
