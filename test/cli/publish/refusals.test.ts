import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hours, minutes, seconds } from '../../../src/model/duration.ts';
import { noOpenssl } from '../../support/certificates.ts';
import { unless } from '../../support/skipped.ts';
import { fans, NODE, PublisherOnClock } from './on-clock.ts';

let on: PublisherOnClock;
beforeEach(() => {
  on = new PublisherOnClock();
});
afterEach(async () => {
  await on.api.stop();
});
const failures = () => on.told.filter((line) => line.startsWith('the API server does not take'));
const patches = () => on.api.calls.filter((call) => call.startsWith('PATCH')).length;

/** An agent that lists one incident for each namespace. */
function incidents(...namespaces: readonly string[]): void {
  const time = new Date(on.clock.now()).toISOString();
  const listed = namespaces.map((namespace) => ({
    ...{ id: `i-${namespace}`, time, device: 'fan/fan-0', conditions: ['Broken'], holders: [], bytes: 1 },
    states: ['healthy', 'unhealthy'],
  }));
  const recordOf = (namespace: string) => ({
    ...{
      id: `i-${namespace}`,
      time,
      node: NODE,
      url: `https://agent.example/incidents/i-${namespace}`,
      agentVersion: '1',
      host: {},
      processes: [],
      state: [],
      events: [],
      others: [],
    },
    device: { family: 'fan', id: 'fan-0', key: 'fan/fan-0', kind: 'fan', aliases: [] },
    before: { state: 'healthy' },
    after: { state: 'unhealthy', conditions: [] },
    changes: [{ time, from: 'healthy', to: 'unhealthy', condition: 'Broken', reason: 'Because', message: 'x', remedy: 'reset' }],
    holders: [{ namespace, pod: `pod-${namespace}`, container: 'main', resource: 'r', deviceId: 'fan-0', since: time }],
    readings: { times: [], series: [] },
    kernel: { lines: [] },
  });
  on.ask = async (path) => {
    const [, namespace] = /^\/api\/incidents\/i-(.+)$/.exec(path) ?? [];
    const body = namespace === undefined ? { takenAt: new Date(on.clock.now()).toISOString(), incidents: listed } : recordOf(namespace);
    return { answer: { status: 200, text: '', body } };
  };
}
const podsTold = (): readonly string[] =>
  [...on.api.events.values()].flatMap(({ involvedObject }) => (involvedObject.kind === 'Pod' ? [involvedObject.name] : [])).sort();

describe.skipIf(noOpenssl !== undefined)(`events${unless(noOpenssl === undefined, noOpenssl ?? '')}`, () => {
  it.each([403, 422, 429])(
    'of other namespaces are written while one refuses them with status %d, and its own when it no longer does',
    async (status) => {
      await on.start({ events: true });
      on.view = fans('UNHEALTHY');
      incidents('greedy', 'a', 'b');
      on.api.refusing.set('greedy', status);
      await on.pass(minutes(10));
      expect(podsTold()).toEqual(['pod-a', 'pod-b']);
      expect(
        [...on.api.events.values()].filter(({ message }) => / https:\/\/agent\.example\/incidents\/i-[ab]$/.test(message)),
      ).toHaveLength(4);
      expect(on.told.filter((line) => line.includes('a namespace does not take events'))).toHaveLength(1);
      expect(on.told.join('\n')).toContain(`greedy: ${status}: exceeded quota`);
      expect(on.api.calls.filter((call) => call.includes('greedy')).length).toBeLessThan(20);
      on.api.refusing.clear();
      await on.pass(minutes(7));
      expect(podsTold()).toEqual(['pod-a', 'pod-b', 'pod-greedy']);
      expect(on.api.repeated).toBe(0);
    },
  );

  it('and new taints are held back while a drain or a maintenance of the node is in progress', async () => {
    const node = (): { conditions: readonly object[] } => on.api.nodes.get(NODE) as never;
    await on.start({ events: true, 'node-taint': 'NoSchedule', 'device-taint-rules': 'NoSchedule' });
    node().conditions = [...node().conditions, { type: 'MaintenanceInProgress', status: 'True', reason: 'Work', message: '' }];
    on.view = fans('UNHEALTHY');
    incidents('a');
    await on.pass(minutes(3));
    expect([podsTold(), on.api.nodes.get(NODE)?.taints, on.api.rules.size]).toEqual([[], [], 0]);
    expect(on.api.said(NODE).DevicesUnhealthy).toBe('True (FatalCondition)');
    node().conditions = node().conditions.filter((one) => (one as { type: string }).type !== 'MaintenanceInProgress');
    await on.pass(minutes(3));
    expect([on.api.nodes.get(NODE)?.taints.length, on.api.rules.size]).toEqual([1, 1]);
    expect(podsTold(), 'the incident was part of the work').toEqual([]);
    // A taint of before the work stays.
    node().conditions = [...node().conditions, { type: 'node.example.com/DrainInProgress', status: 'True', reason: 'Work', message: '' }];
    await on.pass(minutes(3));
    expect([on.api.nodes.get(NODE)?.taints.length, on.api.rules.size]).toEqual([1, 1]);
    on.view = fans('HEALTHY');
    await on.pass(minutes(2));
    expect([on.api.nodes.get(NODE)?.taints.length, on.api.rules.size]).toEqual([0, 0]);
  });
});

describe.skipIf(noOpenssl !== undefined)('an API server that does not keep what it takes', () => {
  it('is asked less and less often, and told once for each kind of object', async () => {
    await on.start({ 'node-taint': 'NoSchedule', 'device-taint-rules': 'NoSchedule' });
    on.api.isForgetful = true;
    on.view = fans('UNHEALTHY');
    await on.pass(hours(1));
    expect(patches()).toBeLessThan(3 * 90);
    expect(failures()).toHaveLength(3);
    expect(on.told.filter((line) => line.startsWith('the conditions of the node were written'))).toEqual([]);
    on.api.isForgetful = false;
    await on.pass(minutes(3));
    expect([on.api.said(NODE).DevicesUnhealthy, on.api.nodes.get(NODE)?.taints.length, on.api.rules.size]).toEqual([
      'True (FatalCondition)',
      1,
      1,
    ]);
    const before = patches();
    await on.pass(minutes(10));
    expect(patches()).toBe(before);
  });

  it('has little of its texts in the log', async () => {
    await on.start();
    on.api.nodes.clear();
    on.api.nodeText = `${'x'.repeat(100_000)}\n\u001b[31m`;
    on.view = fans('HEALTHY');
    await on.pass(seconds(20));
    expect(failures()).toHaveLength(1);
    expect(failures()[0]?.length).toBeLessThan(1_000);
  });
});
