import { expect, it } from 'vitest';
import { Accounts } from '../../src/accounting/accounts.ts';
import type { UsageInput } from '../../src/accounting/holders.ts';
import { entriesOf } from '../../src/accounting/ledger.ts';
import type { PodFacts } from '../../src/model/pod-resources.ts';
import { Readings } from '../../src/model/readings.ts';
import { gpu, holds, settings } from './small-node.ts';

it('an account has the model of its device and the labels of its own pod, also after the kubelet forgot the pod', () => {
  const accounts = new Accounts(settings);
  const pod = (uid: string): PodFacts => ({
    namespace: 'ml',
    pod: 'a',
    uid,
    phase: 'Running',
    labels: { team: `of ${uid}` },
    containers: [],
  });
  const step = (atMs: number, uid: string, pods: readonly PodFacts[], isHeld = true) => {
    const device = { key: 'gpu/g0', device: gpu('g0', { model: 'T1' }), holders: isHeld ? [holds('g0', 'a')] : [] };
    const input: UsageInput = {
      ...{ nowMs: atMs, monotonicMs: atMs, answeredAtMs: atMs, containerReadings: [] },
      devices: [{ ...device, readings: Readings.NONE, processes: [], current: undefined }],
      pods: new Map(pods.map((one) => ['ml\u0000a', one])),
      uidOf: () => uid,
    };
    return entriesOf(accounts.step(input), atMs).map(({ uid, labels, model }) => [uid, labels?.team, model]);
  };
  expect(step(1_000, 'u-1', [pod('u-2')]), 'of a successor').toEqual([['u-1', undefined, 'T1']]);
  expect(step(2_000, 'u-1', [pod('u-1')])).toEqual([['u-1', 'of u-1', 'T1']]);
  expect(step(3_000, 'u-2', [pod('u-2')])).toEqual([
    ['u-2', 'of u-2', 'T1'],
    ['u-1', 'of u-1', 'T1'],
  ]);
  for (const atMs of [4_000, 40_000]) step(atMs, 'u-2', [], false);
  expect(step(41_000, 'u-2', [], false).sort()).toEqual([
    ['u-1', 'of u-1', 'T1'],
    ['u-2', 'of u-2', 'T1'],
  ]);
});
