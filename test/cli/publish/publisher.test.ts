import { writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Kubernetes, kubernetesAt } from '../../../src/cli/publish/kubernetes.ts';
import { Publisher } from '../../../src/cli/publish/publisher.ts';
import type { AgentView, FeedDevice } from '../../../src/cli/publish/view.ts';
import { createChangeLog } from '../../../src/log/changes.ts';
import { hours, minutes, seconds } from '../../../src/model/duration.ts';
import { VirtualClock } from '../../oracle/virtual-clock.ts';
import { seededRandom } from '../../support/seeded.ts';
import { ApiServer, TOKEN } from './api-server.ts';
import { toldBoard } from './on-clock.ts';

const NODE = 'node-1';
const collectGarbage = (): number => {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
};

let api: ApiServer;
let kubernetes: Kubernetes;
let clock: VirtualClock;
let publisher: Publisher;
let view: AgentView | 'away' | undefined;
let onTheWire = 0;
/** Called when an answer is there, before the publisher has it. */
let answered: (method: string) => void;
let begin: (more?: object) => Publisher;
const told: string[] = [];

const feed = (...states: readonly FeedDevice['state'][]): AgentView => ({
  families: [{ family: 'fan', complete: true }],
  feed: states.map((state, n) => ({ family: 'fan', id: `fan-${n}`, state })),
  board: toldBoard([]),
});
const state = (): string | undefined => api.conditions(NODE).find(({ type }) => type === 'DevicesUnhealthy')?.status;
/** Waits until no request is on the wire. No time of the clock passes meanwhile. */
const settle = async (): Promise<void> => {
  for (let quiet = 0; quiet < 3; quiet = onTheWire === 0 ? quiet + 1 : 0) await new Promise((resolve) => setImmediate(resolve));
};
/** As the feed does: a message each ten seconds. */
const pass = async (ms: number, heartbeatMs: number = seconds(10)): Promise<void> => {
  for (let passedMs = 0; passedMs < ms; passedMs += heartbeatMs) {
    publisher.wake();
    await settle();
    await clock.advance(Math.min(heartbeatMs, ms - passedMs), settle);
  }
};

beforeEach(async () => {
  api = new ApiServer();
  api.addNode(NODE);
  const server = new URL(await api.start());
  const token = api.certificates.path('token');
  writeFileSync(token, TOKEN);
  const client = kubernetesAt(server, { 'api-server': '', 'token-file': token, 'ca-file': api.certificates.path('ca.crt') });
  onTheWire = 0;
  answered = () => undefined;
  kubernetes = {
    async call(...words) {
      onTheWire += 1;
      return await client.call(...words).finally(() => {
        onTheWire -= 1;
        answered(words[0]);
      });
    },
  };
  clock = new VirtualClock();
  view = feed('HEALTHY', 'HEALTHY');
  told.length = 0;
  const log = (message: string): void => void told.push(message);
  const logger = { debug: log, info: log, warn: log, error: log };
  const changes = createChangeLog(logger, () => clock.monotonic());
  const parts = { kubernetes, ask: async () => ({}), view: () => view, clock, logger, changes, random: seededRandom(7) };
  const off = { 'device-taint-rules': 'off', 'node-taint': 'off' };
  begin = (more) => new Publisher(parts, { events: true, ...off, node: NODE, families: [], resyncMs: minutes(1), ...more });
  publisher = begin();
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
      view = feed(n % 2 === 0 ? 'UNHEALTHY' : 'HEALTHY');
      await pass(100, 100);
    }
    expect(api.patches.length).toBeLessThanOrEqual(4);
    view = feed('UNHEALTHY');
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
      view = feed(n % 2 === 0 ? 'UNHEALTHY' : 'HEALTHY');
      await pass(seconds(20));
    }
    const grown = collectGarbage() - before;
    expect(api.requests - requests).toBeLessThan(90);
    expect(told.filter((message) => message.includes('does not take'))).toHaveLength(1);
    api.fault = undefined;
    view = feed('UNHEALTHY', 'HEALTHY');
    await pass(minutes(2));
    expect(api.patches.length).toBe(patches + 1);
    expect(api.conditions(NODE)[0]?.message).toBe('1 of 2 devices is unhealthy: fan/fan-0');
    process.stdout.write(`an hour without API server: ${api.requests - requests} requests, heap ${Math.round(grown / 1_024)} KiB larger\n`);
    expect(grown).toBeLessThan(2 * 1024 * 1024);
  }, 120_000);

  it('tells a rejected token once in an hour, and asks every few minutes', async () => {
    await pass(seconds(10));
    const requests = api.requests;
    api.token = 'another';
    await pass(hours(1), minutes(1));
    expect(api.requests - requests).toBeLessThan(25);
    expect(told.filter((message) => message.includes('does not take'))).toHaveLength(1);
    api.token = TOKEN;
    view = feed('UNKNOWN');
    await pass(minutes(7));
    expect(state()).toBe('Unknown');
  }, 60_000);

  it('does not mind a clock that is set back', async () => {
    await pass(seconds(10));
    clock.setWall(-hours(5));
    await pass(minutes(2));
    expect(api.patches).toHaveLength(1);
    view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(state()).toBe('True');
    view = feed('HEALTHY');
    await pass(seconds(10));
    expect(state()).toBe('False');
  });

  it('keeps the time of a transition while the status stays', async () => {
    view = feed('UNHEALTHY', 'HEALTHY');
    await pass(seconds(10));
    const [first] = api.conditions(NODE);
    view = feed('UNHEALTHY', 'UNHEALTHY');
    await pass(minutes(1));
    const [second] = api.conditions(NODE);
    expect(second?.message).not.toBe(first?.message);
    expect(second?.lastTransitionTime).toBe(first?.lastTransitionTime);
    expect(second?.lastHeartbeatTime).not.toBe(first?.lastHeartbeatTime);
  });

  it('never calls a node healthy of which nothing is known', async () => {
    view = 'away';
    await pass(seconds(10));
    expect(api.said(NODE)).toEqual({
      DevicesUnhealthy: 'Unknown (AgentAway)',
      DevicesUnknown: 'True (AgentAway)',
      DevicesMissing: 'Unknown (AgentAway)',
    });
    view = feed('UNKNOWN', 'HEALTHY');
    await pass(seconds(10));
    expect(api.said(NODE)).toEqual({
      DevicesUnhealthy: 'Unknown (DevicesNotRead)',
      DevicesUnknown: 'True (DevicesNotRead)',
      DevicesMissing: 'False (AllPresent)',
    });
    view = {
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
    view = { ...feed('HEALTHY'), board: toldBoard([], { expected: [{ family: 'pump', expected: 1 }] }) };
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
    publisher = begin({ 'node-taint': 'NoSchedule' });
  });

  it('is there while a device is unhealthy, stays while that is not known, and leaves the taints of others', async () => {
    await pass(seconds(10));
    expect(api.taintPatches).toEqual([]);
    view = feed('UNHEALTHY', 'HEALTHY');
    await pass(seconds(10));
    expect(taints()).toEqual([OTHER, OWN]);
    for (const unsure of [feed('UNKNOWN', 'HEALTHY'), 'away' as const, undefined]) {
      view = unsure;
      await pass(minutes(2));
      expect(taints()).toEqual([OTHER, OWN]);
    }
    await publisher.stop();
    publisher = begin({ 'node-taint': 'NoSchedule' });
    await pass(seconds(10));
    expect(api.taintPatches).toHaveLength(1);
    view = feed('HEALTHY', 'HEALTHY');
    await pass(seconds(10));
    expect(taints()).toEqual([OTHER]);
    view = feed('UNKNOWN');
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
    view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(taints()?.map(({ key }) => key)).toEqual([OTHER.key, 'other-2', 'other-1', 'other-0', OWN.key]);
    expect(api.taintPatches.map(({ isTaken }) => isTaken)).toEqual([false, false, false, true]);
    expect(told.filter((message) => message.includes('does not take'))).toEqual([]);
    changes = Number.POSITIVE_INFINITY;
    view = feed('HEALTHY');
    await pass(seconds(1));
    expect(told.filter((message) => message.includes('does not take'))).toHaveLength(1);
    changes = 0;
    await pass(seconds(10));
    expect(taints()?.some(({ key }) => key === OWN.key)).toBe(false);
    expect(taints()?.length).toBeGreaterThan(9);
  });

  it('takes the effect that is asked for now, and comes back when another program removes it', async () => {
    api.setTaints(NODE, () => [{ ...OWN, effect: 'NoExecute' }, OTHER]);
    view = feed('UNHEALTHY');
    await pass(seconds(10));
    expect(taints()).toEqual([OTHER, OWN]);
    api.setTaints(NODE, () => []);
    await pass(minutes(2));
    expect(taints()).toEqual([OWN]);
  });

  it('is not written by a publisher that was asked to end while it read the node', async () => {
    await pass(seconds(10));
    view = feed('UNHEALTHY', 'HEALTHY');
    let ended: Promise<void> | undefined;
    answered = (method) => {
      const node = api.nodes.get(NODE);
      if (method !== 'GET' || node === undefined || ended !== undefined) return;
      // As `--withdraw` leaves it.
      node.conditions = node.conditions.filter(({ type }) => type === 'Ready');
      ended = publisher.stop();
    };
    await pass(seconds(10));
    await ended;
    expect(ended).toBeDefined();
    expect([taints(), api.taintPatches, api.said(NODE)]).toEqual([[OTHER], [], {}]);
  });
});
