import { existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/host/clock.ts';
import { millis } from '../../src/model/duration.ts';
import type { PluginResource } from '../../src/model/plugin-resource.ts';
import { socketPath } from '../../src/plugin/registration/sockets.ts';
import { makeRenamedSocket } from '../../src/sim/kubelet/sockets.ts';
import type { RegistrationFault } from '../support/kubelet/device-manager.ts';
import { listen } from '../support/kubelet/sockets.ts';
import { DEADLINE_MS, until } from '../support/until.ts';
import { type Bench, deviceState, listed, ownSockets, pause, QUICK, setUp, TOY } from './support.ts';

const OTHER: PluginResource = { ...TOY, resource: 'example.com/other', allowOverlap: true };
const open: Bench[] = [];
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close();
});

/** How long an attempt waits for a stream. The clock of the tests never comes to it: `passStreamTimeout` says when. */
const STREAM_TIMEOUT = millis(DEADLINE_MS);
const streamTimers = new Set<() => void>();
const clock: Clock = {
  ...systemClock,
  after(delayMs, run) {
    if (delayMs !== STREAM_TIMEOUT) return systemClock.after(delayMs, run);
    streamTimers.add(run);
    return () => streamTimers.delete(run);
  },
};
function passStreamTimeout(): void {
  for (const run of [...streamTimers]) run();
}

/** `registerTimeoutMs`: short only for a kubelet that never answers, because a load delays one that does. */
function bench(registerTimeoutMs = DEADLINE_MS): Bench {
  streamTimers.clear();
  const made = setUp({
    resources: [TOY, OTHER],
    streamTimeout: STREAM_TIMEOUT,
    parts: { clock, timings: { ...QUICK, registerTimeoutMs } },
  });
  open.push(made);
  made.store.publish([deviceState({ id: 't0' }), deviceState({ id: 't1' })]);
  return made;
}

const WHOLE = ['t0=Healthy', 't1=Healthy'];
const isServed = ({ manager }: Bench, resource: string): boolean =>
  manager.isConnected(resource) && listed(manager, resource).join() === WHOLE.join();

async function allServed(made: Bench): Promise<void> {
  for (const resource of [TOY.resource, OTHER.resource]) await until(() => isServed(made, resource), `${resource} is served`);
}

const attempts = ({ plugin }: Bench, reason: string, at = 0): number => plugin.stats().resources[at]?.registrations[reason] ?? 0;

/** Faults that meet one resource alone, and what its attempts then end with. */
const OF_ONE: readonly (readonly [string, RegistrationFault, string])[] = [
  ['accepts the registration and never dials back', { kind: 'no-dial-back' }, 'no-stream'],
  ['cuts every stream after its first list', { kind: 'cut-stream' }, 'stream-ended'],
  ['accepts the registration and hangs', { kind: 'hang' }, 'timeout'],
  ['refuses', { kind: 'refuse', message: 'not today' }, 'refused'],
  ['sends the path of the socket as authority, as before 1.26', { kind: 'old-authority' }, 'refused'],
];

describe('device plugin and a kubelet that', () => {
  it.each(OF_ONE)('%s: one line, the other resource goes on, recovery', async (_, fault, reason) => {
    const made = bench(reason === 'timeout' ? 2_500 : undefined);
    made.manager.setFault(fault, TOY.resource);
    await made.manager.start();
    made.plugin.start();
    await until(() => isServed(made, OTHER.resource), 'the other is served');
    await until(() => {
      passStreamTimeout();
      return attempts(made, reason) >= 2;
    }, 'it tried again');
    const grant = await made.manager.allocate({ podUid: 'u', container: 'c', resource: OTHER.resource, count: 2 });
    expect(grant.deviceIds).toHaveLength(2);
    expect(attempts(made, 'ok', 1)).toBe(1);
    expect(made.lines).toEqual([`begin ${TOY.resource}`]);
    expect(made.fields[0]).toMatchObject({ reason, resource: TOY.resource });

    made.manager.setFault(undefined, TOY.resource);
    await until(() => {
      if (reason === 'no-stream') passStreamTimeout();
      return isServed(made, TOY.resource);
    }, 'it is served, too');
    await allServed(made);
    await until(() => made.lines.length > 1, 'the end is said');
    expect(made.lines).toEqual([`begin ${TOY.resource}`, `end ${TOY.resource}`]);
    expect(made.fields[1]).toMatchObject({ message: 'the kubelet did not have a resource; it has the resource now', reason });
    expect(made.fields[1], 'nothing is left to do').not.toHaveProperty('remedy');
    expect(ownSockets(made.directory)).toHaveLength(2);
  });

  it('is slow to answer: registered all the same, without a word', async () => {
    const made = bench();
    made.manager.setFault({ kind: 'slow', delayMs: 150 });
    await made.manager.start();
    made.plugin.start();
    await allServed(made);
    expect(made.lines).toEqual([]);
    expect(attempts(made, 'ok')).toBe(1);
  });

  it('says why it refuses: the line carries its words', async () => {
    const made = bench();
    made.manager.setFault({ kind: 'refuse', message: 'the ResourceName "x" is invalid: 100 % so' }, TOY.resource);
    await made.manager.start();
    made.plugin.start();
    await until(() => made.fields.length > 0, 'it is said');
    expect(made.fields[0]?.detail).toBe('the ResourceName "x" is invalid: 100 % so');
  });

  it('dials back twice: both streams are served, and when one takes all away the plugin comes back', async () => {
    const made = bench();
    made.manager.setFault({ kind: 'double' }, TOY.resource);
    await made.manager.start();
    made.plugin.start();
    await until(() => made.plugin.stats().resources[0]?.streams === 2, 'two streams are open');
    made.store.publish([deviceState({ id: 't0' }), deviceState({ id: 't1' }, 'unhealthy')]);
    await until(() => listed(made.manager).join() === 't0=Healthy,t1=Unhealthy', 'the change arrived');
    made.manager.setFault(undefined, TOY.resource);
    made.manager.disconnect(TOY.resource);
    await until(() => made.plugin.stats().resources[0]?.streams === 1, 'one stream is left');
  });

  it('is not there, then is', async () => {
    const made = bench();
    made.plugin.start();
    await until(() => made.lines.length === 2, 'both say so');
    await pause(150);
    expect(made.fields.map(({ reason }) => reason)).toEqual(['kubelet-socket-missing', 'kubelet-socket-missing']);
    await made.manager.start();
    await allServed(made);
    await until(() => made.lines.length === 4, 'both ends are said');
    expect(made.lines.slice(2).sort()).toEqual([`end ${OTHER.resource}`, `end ${TOY.resource}`]);
  });

  it('deletes the directory, and comes back with a new one', async () => {
    const made = bench();
    await made.manager.start();
    made.plugin.start();
    await allServed(made);
    await pause(300);
    await made.manager.deleteDirectory();
    await until(() => attempts(made, 'kubelet-socket-missing') > 1 && attempts(made, 'kubelet-socket-missing', 1) > 1, 'it is noticed');
    expect(made.lines.toSorted()).toEqual([`begin ${OTHER.resource}`, `begin ${TOY.resource}`]);
    await made.manager.start();
    await allServed(made);
    await until(() => made.lines.length === 4, 'both ends are said');
    expect(ownSockets(made.directory)).toHaveLength(2);
  });

  it('has its socket replaced by a file', async () => {
    const made = bench();
    await made.manager.start();
    made.plugin.start();
    await allServed(made);
    await pause(300);
    await made.manager.replaceSocketByFile();
    await until(() => attempts(made, 'not-a-socket') > 1 && attempts(made, 'not-a-socket', 1) > 1, 'it is noticed');
    expect(made.lines).toHaveLength(2);
    await made.manager.start();
    await allServed(made);
    await until(() => made.lines.length === 4, 'both ends are said');
  });

  it.each(['garbage', 'silence', 'hang-up', 'half-answer'] as const)('is no kubelet at all but %s', async (kind) => {
    const made = bench(800);
    await made.manager.impersonate(kind);
    made.plugin.start();
    await until(() => attempts(made, 'timeout') + attempts(made, 'unreachable') >= 2, 'it tried');
    expect(made.lines.toSorted()).toEqual([`begin ${OTHER.resource}`, `begin ${TOY.resource}`]);
    await made.manager.start();
    await allServed(made);
    await until(() => made.lines.length === 4, 'both ends are said');
  });

  it("has one plugin's socket removed, or replaced by a file: that one comes back, the other never left", async () => {
    const made = bench();
    await made.manager.start();
    made.plugin.start();
    await allServed(made);
    for (const replace of [false, true]) {
      const known = attempts(made, 'ok');
      const mine = ownSockets(made.directory).find((name) => name.includes('toy')) as string;
      rmSync(join(made.directory, mine));
      if (replace) writeFileSync(join(made.directory, mine), '');
      await until(() => attempts(made, 'ok') > known && isServed(made, TOY.resource), 'it registered again');
    }
    expect(attempts(made, 'ok', 1)).toBe(1);
    expect(attempts(made, 'socket-gone')).toBe(2);
    // The file of a stranger stays: the agent removes only what it made.
    const left = ownSockets(made.directory).filter((name) => lstatSync(join(made.directory, name)).isSocket());
    expect(left).toHaveLength(2);
  });

  it("has one plugin's socket replaced by a directory: that one comes back all the same", async () => {
    const made = bench();
    await made.manager.start();
    made.plugin.start();
    await allServed(made);
    const mine = join(made.directory, ownSockets(made.directory).find((name) => name.includes('toy')) as string);
    rmSync(mine);
    mkdirSync(mine);
    await until(() => attempts(made, 'ok') > 1 && isServed(made, TOY.resource), 'it registered again');
    expect(attempts(made, 'socket-gone')).toBe(1);
    expect(attempts(made, 'ok', 1)).toBe(1);
  });

  it('has something at the place of a dead socket that cannot be removed: served all the same', async () => {
    const made = bench();
    mkdirSync(socketPath(made.directory, TOY.resource, 'earlier'), { recursive: true });
    await made.manager.start();
    made.plugin.start();
    await allServed(made);
    expect(made.lines).toEqual([]);
  });

  it('finds sockets of a process that was killed: the dead ones of its own are cleared away', async () => {
    const made = setUp({ registration: 'watcher' });
    open.push(made);
    mkdirSync(made.registry, { recursive: true });
    made.store.publish([deviceState({ id: 't0' })]);
    const dead = join(made.registry, basename(socketPath(made.registry, TOY.resource, 'earlier')));
    const others = join(made.registry, basename(socketPath(made.registry, OTHER.resource, 'earlier')));
    for (const path of [dead, others]) {
      const server = createServer();
      await makeRenamedSocket(path, (temporary) => listen(server, temporary));
      server.close();
    }
    made.plugin.start();
    await until(() => ownSockets(made.registry).some((name) => !name.endsWith('earlier.sock')), 'its own socket is there');
    expect(existsSync(dead)).toBe(false);
    expect(existsSync(others)).toBe(true);
  });
});
