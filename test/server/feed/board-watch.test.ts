import { type ChildProcess, execFile } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { Store } from '../../../src/agent/store.ts';
import { type Board, boardOf } from '../../../src/board/board.ts';
import type { Clock } from '../../../src/host/clock.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { type Access, OPEN_ACCESS } from '../../../src/server/access/access.ts';
import { BoardFeed } from '../../../src/server/feed/board-feed.ts';
import { MOST_BOARD_STREAMS } from '../../../src/server/feed/watch.ts';
import { isInstalled } from '../../support/installed.ts';
import { leaveOut } from '../../support/skipped.ts';
import { ask, connectTo, start } from '../asking.ts';
import { broken, gpu, snapshotOf } from './support.ts';

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill();
});

const WATCH = 'GET /api/v1/devices/watch HTTP/1.1\r\nHost: localhost\r\n\r\n';

interface Told {
  readonly event: string;
  readonly data: Board & { readonly removed?: readonly string[] };
}

const eventsIn = (text: string): readonly Told[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .filter((block) => block.startsWith('event: '))
    .map((block) => ({ event: block.slice(7, block.indexOf('\n')), data: JSON.parse(block.slice(block.indexOf('data: ') + 6)) }));

/** As a script follows it. */
function curl(url: string): { events(): readonly Told[]; readonly ended: Promise<void> } {
  if (!isInstalled('curl')) leaveOut('curl is not installed');
  const child = execFile('curl', ['-sN', `${url}/api/v1/devices/watch`], { maxBuffer: Number.POSITIVE_INFINITY });
  children.push(child);
  let text = '';
  child.stdout?.on('data', (chunk: string) => {
    text += chunk;
  });
  return { events: () => eventsIn(text), ended: new Promise((resolve) => child.once('exit', () => resolve())) };
}

function storeOf(snapshot: Snapshot | undefined): Store {
  const store = new Store();
  if (snapshot !== undefined) store.publish(snapshot);
  return store;
}

describe('GET /api/v1/devices/watch', () => {
  it('sends a full board, and then only rows that changed and keys that are gone', async () => {
    const still = gpu({ id: 'still' });
    const store = storeOf(snapshotOf([gpu(), still, gpu({ id: 'leaves' })]));
    const { url } = await start({ parts: { store } });
    const { events } = curl(url);
    await expect.poll(() => events().length).toBe(1);
    expect(events()[0]?.event).toBe('board');
    expect(
      events()[0]
        ?.data.devices.map(({ key }) => key)
        .sort(),
    ).toEqual(['nvidia/GPU-aa', 'nvidia/leaves', 'nvidia/still']);
    // A new read of a device that is as before is no change of it.
    store.publish(snapshotOf([gpu({}, broken()), { ...still, readAtMs: still.readAtMs + 1 }], { sequence: 8 }));
    await expect.poll(() => events().length).toBe(2);
    const { event, data } = events()[1] as Told;
    expect([event, data.sequence, data.removed]).toEqual(['change', 8, ['nvidia/leaves']]);
    expect(data.devices.map(({ key, health }) => [key, health.state])).toEqual([['nvidia/GPU-aa', 'unhealthy']]);
    expect(data.counts.states).toMatchObject({ healthy: 1, unhealthy: 1 });
  });

  it('has places for a number of clients, and says when to come back', async () => {
    const { url } = await start({ parts: { store: storeOf(snapshotOf([gpu()])) } });
    const clients = Array.from({ length: MOST_BOARD_STREAMS }, (_, at) =>
      connectTo(url, WATCH, { localAddress: `127.0.0.${at % 2 === 0 ? 1 : 2}` }),
    );
    await Promise.all(clients.map((client) => client.answered()));
    const refused = await ask(`${url}/api/v1/devices/watch`);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '10']);
    expect((await ask(`${url}/metrics`)).status).toBe(200);
    clients[0]?.socket.destroy();
    await expect.poll(async () => (await ask(`${url}/api/v1/devices/watch`, {}, 'HEAD')).status).toBe(200);
  });

  it('ends when a password is needed from now on, and when the server closes', async () => {
    let apply: (access: Access) => void = () => undefined;
    const subscribers: ((access: Access) => void)[] = [];
    apply = (access) => {
      for (const each of subscribers) each(access);
    };
    const access = { current: OPEN_ACCESS, subscribe: (take: (changed: Access) => void) => void subscribers.push(take) };
    const { url, server } = await start({ parts: { store: storeOf(snapshotOf([gpu()])), access } });
    const first = curl(url);
    await expect.poll(() => first.events().length).toBe(1);
    apply({ ...OPEN_ACCESS, users: new Map([['ann', '$2y$10$hash']]) });
    await first.ended;
    apply(OPEN_ACCESS);
    const second = curl(url);
    await expect.poll(() => second.events().length).toBe(1);
    await server.close();
    await second.ended;
  });

  it('is not there before the first snapshot, without the API, and takes no parameters', async () => {
    const { url } = await start({ parts: { store: storeOf(undefined) } });
    expect((await ask(`${url}/api/v1/devices/watch`)).status).toBe(503);
    expect((await ask(`${url}/api/v1/devices`)).status).toBe(503);
    const off = await start({ options: { api: false }, parts: { store: storeOf(snapshotOf([gpu()])) } });
    expect((await ask(`${off.url}/api/v1/devices/watch`)).status).toBe(404);
    expect((await ask(`${url}/api/v1/devices/watch?family=nvidia`)).status).toBe(400);
  });
});

describe('GET /api/v1/devices', () => {
  it('filters and sorts, and refuses filters that it does not know', async () => {
    const { url } = await start({ parts: { store: storeOf(snapshotOf([gpu(), gpu({ id: 'b' }, broken())])) } });
    const board = async (query: string) => JSON.parse((await ask(`${url}/api/v1/devices${query}`)).body.toString());
    expect((await board('')).devices.map(({ id }: { id: string }) => id)).toEqual(['b', 'GPU-aa']);
    expect((await board('?sort=name&state=healthy')).devices.map(({ id }: { id: string }) => id)).toEqual(['GPU-aa']);
    expect((await board('?group=pod')).error.code).toBe('parameter-unknown');
    expect((await board('?state=sick')).error.code).toBe('parameter-invalid');
    expect((await ask(`${url}/api/v1/devices/nvidia/none/history`)).status).toBe(404);
  });
});

/** Time that passes when the test says so. */
class TestClock implements Clock {
  ms = 0;
  readonly timers = new Map<number, { atMs: number; run: () => void }>();
  #next = 0;
  now = (): number => this.ms;
  monotonic = (): number => this.ms;
  after(delayMs: number, run: () => void): () => void {
    const id = this.#next++;
    this.timers.set(id, { atMs: this.ms + delayMs, run });
    return () => void this.timers.delete(id);
  }
  pass(ms: number): void {
    const endMs = this.ms + ms;
    for (;;) {
      const [due] = [...this.timers].filter(([, { atMs }]) => atMs <= endMs).sort(([, a], [, b]) => a.atMs - b.atMs);
      if (due === undefined) break;
      this.timers.delete(due[0]);
      this.ms = due[1].atMs;
      due[1].run();
    }
    this.ms = endMs;
  }
}

function feedOf(clock: TestClock) {
  const store = storeOf(snapshotOf([gpu()]));
  let fault: string | undefined;
  const current = (): Board => ({
    ...boardOf(store.snapshot() as Snapshot, { nowMs: clock.now() }),
    ...(fault === undefined ? {} : { fault }),
  });
  const fail = (text: string | undefined): void => {
    fault = text;
  };
  const feed = new BoardFeed({ subscribe: (notify) => store.subscribe(notify), current, clock });
  const client = (isReading = true) => {
    const got: Buffer[] = [];
    const waiting: (() => void)[] = [];
    const state = { cut: false };
    const stop = feed.follow({
      write: (bytes, done) => {
        got.push(bytes);
        if (isReading) done();
        else waiting.push(done);
      },
      cut: () => {
        state.cut = true;
        stop();
      },
    });
    return {
      got,
      state,
      read: () => waiting.shift()?.(),
      names: () => got.map((bytes) => /^(?:event: )?(\S+)/.exec(bytes.toString())?.[1]),
    };
  };
  let sequence = 100;
  const change = (): void => store.publish(snapshotOf([gpu({}, broken({ message: `${sequence}` }))], { sequence: sequence++ }));
  return { feed, client, change, fail };
}

describe('the feed of the board', () => {
  it('joins changes that follow each other fast, and encodes each event once for all clients', () => {
    const clock = new TestClock();
    const { client, change } = feedOf(clock);
    const [a, b] = [client(), client()];
    for (let n = 0; n < 10; n += 1) {
      change();
      clock.pass(100);
    }
    clock.pass(500);
    expect(a.names()).toEqual(['board', 'change', 'change', 'change']);
    expect(a.got.at(-1)?.toString()).toContain('"message":"109"');
    expect(a.got.every((bytes, at) => bytes === b.got[at])).toBe(true);
  });

  it('has one event on the way to a slow client, then a full board; cuts one that takes nothing', () => {
    const clock = new TestClock();
    const { client, change, feed } = feedOf(clock);
    const slow = client(false);
    for (let n = 0; n < 5; n += 1) {
      change();
      clock.pass(1_000);
    }
    expect(slow.names()).toEqual(['board']);
    slow.read();
    expect(slow.names()).toEqual(['board', 'board']);
    expect(slow.got[1]?.toString()).toContain('"message":"104"');
    clock.pass(31_000);
    expect(slow.state.cut).toBe(true);
    expect(feed.clients).toBe(0);
    expect(clock.timers.size, 'nothing runs without a client').toBe(0);
  });

  it('sends a comment when nothing changes', () => {
    const clock = new TestClock();
    const { client } = feedOf(clock);
    const a = client();
    clock.pass(15_000);
    expect(a.got.at(-1)?.toString()).toBe(': heartbeat\n\n');
  });

  it('tells the fault of an agent that makes no new snapshot: at the next heartbeat, and to who comes then', () => {
    const clock = new TestClock();
    const { client, change, fail } = feedOf(clock);
    const a = client();
    const faults = ({ got }: typeof a) => got.map((bytes) => eventsIn(bytes.toString())[0]?.data.fault);
    fail('It hangs.');
    const b = client();
    clock.pass(15_000);
    expect([faults(a), faults(b)]).toEqual([
      [undefined, 'It hangs.'],
      ['It hangs.', 'It hangs.'],
    ]);
    fail(undefined);
    change();
    expect([a.names().at(-1), faults(a).at(-1)]).toEqual(['change', undefined]);
  });
});
