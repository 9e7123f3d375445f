import { writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentFeed } from '../../../src/cli/publish/agent-feed.ts';
import type { AgentView, FeedDevice } from '../../../src/cli/publish/view.ts';
import { UserError } from '../../../src/errors.ts';
import { createChangeLog } from '../../../src/log/changes.ts';
import { hours, minutes, seconds } from '../../../src/model/duration.ts';
import type { ApiServer } from './api-server.ts';
import { NODE, PublisherOnClock, toldBoard } from './on-clock.ts';

const collectGarbage = (): number => {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
};

let on: PublisherOnClock;
let api: ApiServer;
const pass = (ms: number, heartbeatMs?: number): Promise<void> => on.pass(ms, heartbeatMs);
const refusals = (): readonly string[] => on.told.filter((line) => line.includes('does not take'));

const feed = (...states: readonly FeedDevice['state'][]): AgentView => ({
  families: [{ family: 'fan', complete: true }],
  feed: states.map((state, n) => ({ family: 'fan', id: `fan-${n}`, state })),
  board: toldBoard([]),
});
const state = (): string | undefined => api.conditions(NODE).find(({ type }) => type === 'DevicesUnhealthy')?.status;
const WELL = { DevicesUnhealthy: 'False (NoFatalCondition)', DevicesUnknown: 'False (AllRead)', DevicesMissing: 'False (AllPresent)' };

beforeEach(async () => {
  on = new PublisherOnClock();
  api = on.api;
  on.view = feed('HEALTHY', 'HEALTHY');
  await on.start({ events: true, families: [] });
});
afterEach(async () => {
  await api.stop();
});

describe('a publisher on a clock that a test moves', () => {
  it('writes nothing for an hour in which nothing changes, and reads its node each minute', async () => {
    await pass(hours(1), minutes(1));
    expect(api.patches).toHaveLength(1);
    expect(api.requests).toBeLessThan(70);
  });

  it('writes at most one patch in five seconds, and the newest state', async () => {
    await pass(seconds(10));
    for (let n = 0; n < 100; n += 1) {
      on.view = feed(n % 2 === 0 ? 'UNHEALTHY' : 'HEALTHY');
      await pass(100, 100);
    }
    expect(api.patches.length).toBeLessThanOrEqual(4);
    on.view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(state()).toBe('True');
    expect(api.patches.every(({ changes }) => changes)).toBe(true);
  });

  it('asks an API server that is away for an hour less and less, keeps nothing, and writes one patch when it is back', async () => {
    await pass(seconds(30));
    const [patches, requests] = [api.patches.length, api.requests];
    api.fault = 'cut';
    const before = collectGarbage();
    for (let n = 0; n < 180; n += 1) {
      on.view = feed(n % 2 === 0 ? 'UNHEALTHY' : 'HEALTHY');
      await pass(seconds(20));
    }
    const grown = collectGarbage() - before;
    expect(api.requests - requests).toBeLessThan(90);
    expect(refusals()).toHaveLength(1);
    api.fault = undefined;
    on.view = feed('UNHEALTHY', 'HEALTHY');
    await pass(minutes(2));
    expect(api.patches.length).toBe(patches + 1);
    expect(api.conditions(NODE)[0]?.message).toBe('1 of 2 devices is unhealthy: fan/fan-0');
    process.stdout.write(`an hour without API server: ${api.requests - requests} requests, heap ${Math.round(grown / 1_024)} KiB larger\n`);
    expect(grown).toBeLessThan(2 * 1024 * 1024);
  });

  it('tells a rejected token once in an hour, asks every few minutes, and takes the next one', async () => {
    await pass(seconds(10));
    const requests = api.requests;
    api.token = 'another';
    await pass(hours(1), minutes(1));
    expect(api.requests - requests).toBeLessThan(25);
    expect(refusals()).toHaveLength(1);
    writeFileSync(api.certificates.path('token'), 'another\n');
    on.view = feed('UNKNOWN');
    await pass(minutes(7));
    expect(state()).toBe('Unknown');
  });

  it.each(['error', 'cut'] as const)('writes only the newest state after an API server that answered by %s', async (fault) => {
    await pass(seconds(10));
    api.fault = fault;
    on.view = feed('UNHEALTHY', 'HEALTHY');
    await pass(seconds(30));
    on.view = feed('HEALTHY', 'UNHEALTHY');
    api.fault = undefined;
    await pass(minutes(2));
    expect(api.patches).toHaveLength(2);
    expect(api.conditions(NODE)[0]?.message).toBe('1 of 2 devices is unhealthy: fan/fan-1');
  });

  it('writes anew when the node was deleted and created again', async () => {
    await pass(seconds(10));
    api.nodes.delete(NODE);
    on.view = feed('UNHEALTHY');
    await pass(minutes(2));
    expect([api.said(NODE), refusals()]).toEqual([{}, [expect.stringContaining('404: nodes')]]);
    api.addNode(NODE);
    on.view = feed('HEALTHY');
    await pass(minutes(2));
    expect(api.said(NODE)).toEqual(WELL);
  });

  it.each([
    [new UserError('flags-of-another-agent', { flags: '--idle.nvidia.utilization' }), '--idle.nvidia.utilization'],
    [new UserError('agent-closed', { path: '/run/control.sock' }), 'may not open the socket /run/control.sock'],
  ])('says what to do when the agent cannot be asked, and blames no API server: %s', async (error, cause) => {
    on.ask = () => Promise.reject(error);
    const log = (message: string, fields: object = {}): void => void on.told.push(`${message} ${JSON.stringify(fields)}`);
    const changes = createChangeLog({ debug: log, info: log, warn: log, error: log }, () => on.clock.monotonic());
    const follower = new AgentFeed({ open: async () => ({}), ask: on.ask, clock: on.clock, changes, heard: () => undefined });
    follower.start();
    await pass(seconds(40));
    follower.stop();
    expect(refusals()).toEqual([]);
    for (const message of ['the agent cannot be followed', 'the agent cannot be asked what is to be written']) {
      const line = on.told.find((one) => one.startsWith(message));
      expect(line, message).toContain(cause);
      expect(line).toContain(JSON.stringify(error.remedy));
    }
  });

  it('does not mind a clock that is set back', async () => {
    await pass(seconds(10));
    on.clock.setWall(-hours(5));
    await pass(minutes(2));
    expect(api.patches).toHaveLength(1);
    on.view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(state()).toBe('True');
    on.view = feed('HEALTHY');
    await pass(seconds(10));
    expect(state()).toBe('False');
  });

  it('keeps the time of a transition while the status stays', async () => {
    on.view = feed('UNHEALTHY', 'HEALTHY');
    await pass(seconds(10));
    const [first] = api.conditions(NODE);
    on.view = feed('UNHEALTHY', 'UNHEALTHY');
    await pass(minutes(1));
    const [second] = api.conditions(NODE);
    expect(second?.message).not.toBe(first?.message);
    expect(second?.lastTransitionTime).toBe(first?.lastTransitionTime);
    expect(second?.lastHeartbeatTime).not.toBe(first?.lastHeartbeatTime);
  });

  it('never calls a node healthy of which nothing is known', async () => {
    on.view = 'away';
    await pass(seconds(10));
    expect(api.said(NODE)).toEqual({
      DevicesUnhealthy: 'Unknown (AgentAway)',
      DevicesUnknown: 'True (AgentAway)',
      DevicesMissing: 'Unknown (AgentAway)',
    });
    on.view = feed('UNKNOWN', 'HEALTHY');
    await pass(seconds(10));
    expect(api.said(NODE)).toEqual({
      DevicesUnhealthy: 'Unknown (DevicesNotRead)',
      DevicesUnknown: 'True (DevicesNotRead)',
      DevicesMissing: 'False (AllPresent)',
    });
    on.view = {
      ...feed('HEALTHY'),
      board: toldBoard([], {
        expected: [
          { family: 'fan', expected: 2, present: 1 },
          { family: 'pump', expected: 1 },
        ],
      }),
    };
    await pass(seconds(10));
    expect(api.said(NODE).DevicesMissing).toBe('True (DevicesAbsent)');
    on.view = { ...feed('HEALTHY'), board: toldBoard([], { expected: [{ family: 'pump', expected: 1 }] }) };
    await pass(seconds(10));
    expect(api.said(NODE).DevicesMissing).toBe('Unknown (DevicesNotCounted)');
  });
});

describe('the taint of a node', () => {
  const OTHER = { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' };
  const OWN = { key: 'device-agent/unhealthy', effect: 'NoSchedule' };
  const taints = () => api.nodes.get(NODE)?.taints;
  beforeEach(() => {
    api.setTaints(NODE, () => [OTHER]);
    on.begin({ 'node-taint': 'NoSchedule', events: true, families: [] });
  });

  it('is there while a device is unhealthy, stays while that is not known, and leaves the taints of others', async () => {
    await pass(seconds(10));
    expect(api.taintPatches).toEqual([]);
    on.view = feed('UNHEALTHY', 'HEALTHY');
    await pass(seconds(10));
    expect(taints()).toEqual([OTHER, OWN]);
    for (const unsure of [feed('UNKNOWN', 'HEALTHY'), 'away' as const, undefined]) {
      on.view = unsure;
      await pass(minutes(2));
      expect(taints()).toEqual([OTHER, OWN]);
    }
    await on.stop();
    on.begin();
    await pass(seconds(10));
    expect(api.taintPatches).toHaveLength(1);
    on.view = feed('HEALTHY', 'HEALTHY');
    await pass(seconds(10));
    expect(taints()).toEqual([OTHER]);
    on.view = feed('UNKNOWN');
    await pass(minutes(2));
    expect(api.taintPatches).toHaveLength(2);
  });

  it('is never written over a change of another writer', async () => {
    await pass(seconds(10));
    let changes = 3;
    api.meanwhile = () => {
      if (changes === 0) return;
      changes -= 1;
      api.setTaints(NODE, (before) => [...before, { key: `other-${changes}`, effect: 'NoExecute' }]);
    };
    on.view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(taints()?.map(({ key }) => key)).toEqual([OTHER.key, 'other-2', 'other-1', 'other-0', OWN.key]);
    expect(api.taintPatches.map(({ isTaken }) => isTaken)).toEqual([false, false, false, true]);
    expect(refusals()).toEqual([]);
    changes = Number.POSITIVE_INFINITY;
    on.view = feed('HEALTHY');
    await pass(seconds(1));
    expect(refusals()).toHaveLength(1);
    changes = 0;
    await pass(seconds(10));
    expect(taints()?.some(({ key }) => key === OWN.key)).toBe(false);
    expect(taints()?.length).toBeGreaterThan(9);
  });

  it('takes the effect that is asked for now, and comes back when another program removes it', async () => {
    api.setTaints(NODE, () => [{ ...OWN, effect: 'NoExecute' }, OTHER]);
    on.view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(taints()).toEqual([OTHER, OWN]);
    api.setTaints(NODE, () => []);
    await pass(minutes(2));
    expect(taints()).toEqual([OWN]);
  });

  it('is not written by a publisher that was asked to end while it read the node', async () => {
    await pass(seconds(10));
    on.view = feed('UNHEALTHY', 'HEALTHY');
    let ended: Promise<void> | undefined;
    on.answered = (method) => {
      const node = api.nodes.get(NODE);
      if (method !== 'GET' || node === undefined || ended !== undefined) return;
      // As `--withdraw` leaves it.
      node.conditions = node.conditions.filter(({ type }) => type === 'Ready');
      ended = on.stop();
    };
    await pass(seconds(10));
    await ended;
    expect(ended).toBeDefined();
    expect([taints(), api.taintPatches, api.said(NODE)]).toEqual([[OTHER], [], {}]);
  });
});
