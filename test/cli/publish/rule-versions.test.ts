import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeviceRules, rulesIn } from '../../../src/cli/publish/device-rules.ts';
import { hours, minutes, seconds } from '../../../src/model/duration.ts';
import { noOpenssl } from '../../support/certificates.ts';
import { unless } from '../../support/skipped.ts';
import { fans, NODE, PublisherOnClock, toldBoard, toldDevice } from './on-clock.ts';

/** What API servers serve of the group of claims; true: with taint rules. Source: the lifecycle tags in k8s.io/api 0.37. */
const SERVED = {
  '1.34, alpha APIs on': { v1: false, v1beta1: false, v1beta2: false, v1alpha3: true },
  '1.35, alpha APIs on': { v1: false, v1beta2: false, v1alpha3: true },
  '1.36, beta APIs on': { v1: false, v1beta2: true, v1alpha3: true },
  '1.37': { v1: true },
  '1.37, all APIs on': { v1: true, v1beta2: true, v1alpha3: true },
} as const;
const NOT_SERVED = { '1.34': { v1: false }, '1.36': { v1: false }, 'without the group': {} } as const;

let on: PublisherOnClock;
beforeEach(() => {
  on = new PublisherOnClock();
});
afterEach(async () => {
  await on.api.stop();
});
const usedVersions = () => [...new Set(on.api.calls.flatMap((call) => /PATCH .*\/(v\w+)\/devicetaintrules/.exec(call)?.[1] ?? []))];

describe.skipIf(noOpenssl !== undefined)(`taint rules of devices${unless(noOpenssl === undefined, noOpenssl ?? '')}`, () => {
  it.each([
    ['1.34, alpha APIs on', 'v1alpha3'],
    ['1.35, alpha APIs on', 'v1alpha3'],
    ['1.36, beta APIs on', 'v1beta2'],
    ['1.37', 'v1'],
    ['1.37, all APIs on', 'v1'],
  ] as const)('are written and withdrawn on Kubernetes %s by %s', async (cluster, version) => {
    on.api.versions = SERVED[cluster];
    await on.start({ 'device-taint-rules': 'NoSchedule' });
    on.view = fans('UNHEALTHY', 'HEALTHY');
    await on.pass(seconds(20));
    expect([...on.api.rules.values()]).toMatchObject([
      {
        apiVersion: `resource.k8s.io/${version}`,
        metadata: { annotations: { 'device-agent/device': 'fan/fan-0' } },
        spec: { deviceSelector: { driver: 'fan.example.com', pool: NODE, device: 'fan-0' } },
      },
    ]);
    expect(usedVersions()).toEqual([version]);
    on.view = fans('HEALTHY', 'HEALTHY');
    await on.pass(seconds(20));
    expect(on.api.rules.size).toBe(0);
  });

  it.each([
    ['upgrade', '1.36, beta APIs on', '1.37'],
    ['rollback', '1.37', '1.36, beta APIs on'],
  ] as const)('are found and withdrawn after the %s of a cluster from %s to %s', async (_, before, after) => {
    on.api.versions = SERVED[before];
    await on.start({ 'device-taint-rules': 'NoSchedule' });
    on.view = fans('UNHEALTHY');
    await on.pass(seconds(20));
    on.api.versions = SERVED[after];
    await on.pass(minutes(3));
    expect(on.api.rules.size).toBe(1);
    on.view = fans('HEALTHY');
    await on.pass(minutes(2));
    expect(on.api.rules.size).toBe(0);
  });

  it('take the newer version within an hour after the upgrade, where the older one is still served', async () => {
    on.api.versions = SERVED['1.36, beta APIs on'];
    await on.start({ 'device-taint-rules': 'NoSchedule' });
    on.view = fans('UNHEALTHY');
    await on.pass(seconds(20));
    on.api.versions = SERVED['1.37, all APIs on'];
    await on.pass(hours(1) + minutes(2));
    on.view = fans('UNHEALTHY', 'UNHEALTHY');
    await on.pass(seconds(20));
    expect(usedVersions()).toEqual(['v1beta2', 'v1']);
    const parts = { node: NODE, effect: 'None', families: [], resyncMs: 0 };
    expect(await new DeviceRules(on.kubernetes, on.clock, parts).withdraw()).toBe(2);
    expect(on.api.rules.size).toBe(0);
  });

  it.each(Object.entries(NOT_SERVED))('are told once to be not served on Kubernetes %s, and the rest is written', async (_, versions) => {
    on.api.versions = versions;
    await on.start({ 'device-taint-rules': 'NoSchedule', 'node-taint': 'NoSchedule' });
    on.view = fans('UNHEALTHY');
    await on.pass(hours(1));

    expect(on.told.filter((line) => line.includes('serves DeviceTaintRules in none of the versions'))).toHaveLength(1);
    expect(on.api.nodes.get(NODE)?.taints).toHaveLength(1);
    expect(on.api.calls.filter((call) => call.includes('resource.k8s.io')).length).toBeLessThan(50);
  });

  it('stay when another device than a healthy one has their name, and go when a healthy one has it', async () => {
    await on.start({ 'device-taint-rules': 'NoSchedule' });
    on.view = fans('UNHEALTHY');
    await on.pass(seconds(20));
    // The device of before is gone, and another one has its name in the driver.
    const other = { ...fans('HEALTHY'), feed: [{ family: 'fan', id: 'fan-9', state: 'HEALTHY' as const }] };
    on.view = { ...other, board: toldBoard([toldDevice('fan-9', 'healthy')]) };
    await on.pass(minutes(2));
    expect(on.api.rules.size).toBe(1);
    const claim = { name: 'c', namespace: 'n', driver: 'fan.example.com', pool: NODE, device: 'fan-0' };
    const holders = [{ namespace: 'n', pod: 'p', container: 'c', resource: claim.driver, deviceId: 'fan-0', claim }];
    const holding = { ...other, board: toldBoard([toldDevice('fan-9', 'healthy', { holders })]) };
    on.view = { ...holding, families: [{ family: 'fan', complete: false }] };
    await on.pass(minutes(2));
    expect(on.api.rules.size, 'the family was not read completely').toBe(1);
    on.view = holding;
    await on.pass(minutes(2));
    expect(on.api.rules.size).toBe(0);
  });

  it('have names that others chose, which name nothing but the rule', async () => {
    await on.start({ 'device-taint-rules': 'NoSchedule' });
    const hostile = '../../../api/v1/namespaces/kube-system/secrets/x?dryRun=All#';
    const labels = { 'device-agent/node': NODE };
    on.api.rules.set(hostile, {
      metadata: { name: hostile, labels, annotations: { 'device-agent/device': 'fan/fan-0' } },
      spec: {},
    } as never);
    on.view = fans('HEALTHY');
    await on.pass(seconds(20));
    expect(on.api.rules.size).toBe(0);
    expect(on.api.calls.every((call) => !call.includes('kube-system') || call.includes('%2F'))).toBe(true);
    const list = {
      items: [null, 3, {}, { metadata: { name: 7 } }, { metadata: { name: 'a', labels: { 'device-agent/node': 'node-2' } } }],
    };
    expect(rulesIn(list, NODE)).toEqual([]);
  });
});
