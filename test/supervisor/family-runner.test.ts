import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Collection, HungStep } from '../../src/model/collection.ts';
import type { FamilyRunner } from '../../src/supervisor/family-runner.ts';
import type { IsolatedReads } from '../../src/supervisor/isolated-reads.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { buildWithFamilies, type OtherBuild } from '../support/other-families.ts';
import { plain } from '../support/snapshots.ts';
import { until } from '../support/until.ts';
import { heldOpen, makeFifo, release } from './fifo.ts';
import { FIFO, Script, SEED } from './random-family.ts';
import { TOYS } from './toy-family.ts';

const TIMEOUT_MS = 10_000;
const TURNS = 120;

let build: OtherBuild;
let toys: OtherBuild;
beforeAll(() => {
  build = buildWithFamilies({
    fpga: 'test/supervisor/random-family.ts',
    infiniband: 'test/supervisor/restless-family.ts',
    nvidia: 'test/supervisor/erring-family.ts',
  });
  toys = buildWithFamilies({ fpga: 'test/supervisor/toy-family.ts' });
});
afterAll(() => {
  for (const { root } of [build, toys]) rmSync(root, { recursive: true, force: true });
});

async function start(
  from: OtherBuild,
  family: string,
  sysfs: string,
  more: { isPresent?: () => boolean; hung?: readonly HungStep[]; isExpected?: boolean; timeoutMs?: number } = {},
) {
  const { FamilyRunner: Runner } = await from.import<{ FamilyRunner: typeof FamilyRunner }>('supervisor/family-runner.js');
  const { IsolatedReads: Reads } = await from.import<{ IsolatedReads: typeof IsolatedReads }>('supervisor/isolated-reads.js');
  // The test advances the time, so a slow machine makes nothing hang.
  const clock = new ManualClock();
  const crashes: string[] = [];
  const roots = { sysfs, procfs: sysfs, dev: sysfs };
  const events = { changed: () => {}, wake: () => {}, crashed: (_: string, message: string) => crashes.push(message) };
  const { isPresent, ...known } = more;
  const isolated = new Reads(clock);
  onTestFinished(() => isolated.close());
  const parts = { clock, isolated, events, ...(isPresent === undefined ? {} : { isPresent }) };
  return { runner: new Runner({ family, options: {}, roots, timeoutMs: TIMEOUT_MS, ...known }, parts), clock, isolated, crashes };
}

async function startScripted(seed: number) {
  const sysfs = join(build.root, `sys-${seed}`);
  mkdirSync(join(sysfs, 'class/net'), { recursive: true });
  let scripts = 100 * seed;
  /** Applies to the next thread. */
  const nextScript = (): Script => {
    scripts += 1;
    writeFileSync(join(sysfs, SEED), `${scripts}`);
    return new Script(scripts);
  };
  execFileSync('mkfifo', [join(sysfs, FIFO)]);
  return { ...(await start(build, 'fpga', sysfs)), fifo: join(sysfs, FIFO), nextScript };
}

async function startErring() {
  const sysfs = mkdtempSync(join(build.root, 'sys-erring-'));
  return { ...(await start(build, 'nvidia', sysfs)), setWay: (way: string): void => writeFileSync(join(sysfs, 'way'), way) };
}

/** Devices that report their state, which is the number of their letter. */
async function startToys(ids: string, hung: (directory: (id: string) => string) => readonly HungStep[] = () => []) {
  const sysfs = mkdtempSync(join(toys.root, 'sys-'));
  const directory = (id: string): string => join(sysfs, TOYS, id);
  const stateOf = (id: string): string => `${id.charCodeAt(0)}`;
  for (const id of ids) {
    mkdirSync(directory(id), { recursive: true });
    writeFileSync(join(directory(id), 'state'), stateOf(id));
  }
  const started = await start(toys, 'fpga', sysfs, { hung: hung(directory) });
  const { runner } = started;
  return {
    ...started,
    sysfs,
    directory,
    fifo: (id: string, name: string): string => {
      makeFifo(join(directory(id), name));
      return join(directory(id), name);
    },
    release: (id: string, name: string, writer: number): void => release(join(directory(id), name), writer, stateOf(id)),
    /** Devices whose state the last collection read. */
    read: (): string => {
      const reports = runner.latest()?.collection.reports ?? [];
      expect(reports.map(({ device }) => device.id).join('')).toBe(ids);
      const own = reports.filter(({ read }) => read !== undefined);
      expect(own.map((report) => `${[...(report.read?.readings ?? [])][0]?.value}`)).toEqual(own.map(({ device }) => stateOf(device.id)));
      return own.map(({ device }) => device.id).join('');
    },
    hangsAt: (): readonly string[] => {
      const { hung: isHung, problems } = runner.state();
      expect(isHung).toBe(problems.length > 0);
      expect(problems.map(({ code }) => code)).toEqual(problems.map(() => 'probe-hung'));
      return problems.map(({ message }) => /^a read below (.*) has not returned$/.exec(message)?.[1] ?? message).sort();
    },
  };
}

/** Expected collection of a family that had devices before: without a trace of them it is partial. */
function expected(collection: Collection, isKnown: boolean): Collection {
  if (collection.listing !== 'absent' || !isKnown) return collection;
  const problem = { code: 'nothing-shown', message: 'the machine shows no trace of the devices that it had' };
  return { ...collection, problems: [...collection.problems, problem] };
}

describe("a family's thread", () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'tells what its probe read, whatever happens: reads later, throws, hangs, comes back (seed %i)',
    async (seed) => {
      const { runner, clock, crashes, fifo, nextScript } = await startScripted(seed);
      let script = nextScript();
      let latest: unknown;
      let isKnown = false;
      let writer: number | undefined;
      const ways = new Map<string, number>();
      let hung = 0;
      let failures = 0;
      for (let turn = 0; turn < TURNS; turn += 1) {
        if (writer !== undefined && (hung === 2 || turn % 7 === 0)) {
          closeSync(writer);
          writer = undefined;
          hung = 0;
          await until(() => !runner.state().hung);
        }
        const { way, collection } = script.next();
        ways.set(way, (ways.get(way) ?? 0) + 1);
        const refreshed = runner.refresh();
        if (way === 'hangs') {
          const opened = await heldOpen(fifo);
          if (writer !== undefined) closeSync(writer);
          writer = opened;
          clock.advance(TIMEOUT_MS);
          hung += 1;
        }
        await refreshed;
        const isTold = way === 'at once' || way === 'later';
        if (isTold) latest = expected(collection, isKnown);
        else script = nextScript();
        const couldLook = collection.listing === 'complete' || (collection.listing === 'absent' && !isKnown);
        if (!isTold || !(couldLook || (collection.listing === 'partial' && collection.reports.some(({ read }) => read)))) failures += 1;
        if (isTold && collection.reports.length > 0) isKnown = true;
        const told = runner.latest()?.collection;
        expect(told && plain(told), `turn ${turn}, ${way}`).toEqual(latest);
        expect(runner.isBlind, `turn ${turn}, ${way}`).toBe(!isTold);
        expect(runner.state()).toMatchObject({ runs: turn + 1, failures, hung: hung > 0 });
      }
      if (writer !== undefined) closeSync(writer);
      expect(await runner.close(TIMEOUT_MS)).toBe(true);
      expect(runner.state()).toMatchObject({ failures, abandoned: ways.get('hangs') ?? 0 });
      expect(crashes, 'logged once, with its stack').toEqual(
        ways.has('throws') ? [expect.stringMatching(/^Error: as scripted\n +at /)] : [],
      );
    },
  );

  it('gets the whole time to answer again after the process was suspended', async () => {
    const { runner, clock, fifo, nextScript } = await startScripted(7);
    let script = nextScript();
    let refreshed: Promise<void> | undefined;
    while (refreshed === undefined) {
      const { way } = script.next();
      const refresh = runner.refresh();
      if (way === 'hangs') refreshed = refresh;
      else await refresh;
      if (way === 'throws') script = nextScript();
    }
    const writer = await heldOpen(fifo);
    clock.standStill(TIMEOUT_MS + 3_600_000);
    expect(runner.state()).toMatchObject({ abandoned: 0, hung: false });
    clock.advance(TIMEOUT_MS);
    expect(runner.state()).toMatchObject({ abandoned: 1, hung: true });
    await refreshed;
    closeSync(writer);
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('that ends with an error after its replacement does not affect the new thread', async () => {
    let isPresent = true;
    const { runner, clock, crashes } = await start(build, 'infiniband', build.root, { isPresent: () => isPresent });
    await runner.refresh();
    isPresent = false;
    await runner.refresh();
    isPresent = true;
    clock.advance(30_000);
    await runner.refresh();
    await until(() => crashes.length > 0);
    await runner.refresh();
    expect(crashes[0]).toContain('cannot close');
    expect(runner.state()).toMatchObject({ runs: 3, failures: 0, problems: [] });
    await runner.close(TIMEOUT_MS);
  });

  it('that never returns is reported until a run completes, even when the thread can be ended', async () => {
    const { runner, clock, setWay } = await startErring();
    await runner.refresh();
    for (let turn = 1; turn <= 4; turn += 1) {
      setWay('never');
      const refreshed = runner.refresh();
      await until(() => runner.isReading);
      clock.advance(TIMEOUT_MS);
      await refreshed;
      await until(() => !runner.state().hung);
      expect(runner.state()).toMatchObject({ succeeded: false, abandoned: turn, problems: [{ code: 'probe-hung' }] });
    }
    setWay('');
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: true, problems: [] });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('that ends by itself has failed, which is logged once', async () => {
    const { runner, crashes, setWay } = await startErring();
    await runner.refresh();
    setWay('ends');
    await runner.refresh();
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: false, runs: 3, failures: 2, problems: [{ code: 'probe-crashed' }] });
    expect(crashes).toEqual(['the thread of the probe ended by itself']);
    setWay('');
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: true, problems: [] });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
    expect(crashes).toHaveLength(1);
  });
});

describe('a family that is not on the machine', () => {
  it('has no run and no problem, is looked for twice a minute, and is read as soon as it may be there', async () => {
    let isPresent = false;
    let looks = 0;
    const look = (): boolean => {
      looks += 1;
      return isPresent;
    };
    const { runner, clock } = await start(toys, 'fpga', mkdtempSync(join(toys.root, 'sys-')), { isPresent: look });
    for (let turn = 0; turn < 12; turn += 1) {
      await runner.refresh();
      clock.advance(9_990);
    }
    expect(looks).toBe(4);
    expect(runner.latest()).toBeUndefined();
    expect(runner.state()).toMatchObject({ succeeded: true, runs: 0, problems: [] });
    isPresent = true;
    await runner.refresh();
    expect(runner.latest()?.collection).toMatchObject({ reports: [], listing: 'complete' });
    isPresent = false;
    await runner.refresh();
    expect(runner.latest()).toBeUndefined();
    expect(runner.state()).toMatchObject({ succeeded: true, runs: 1 });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it.each([true, false])('is read on where it was there before, in this run of the agent: %s', async (isInThisRun) => {
    let isPresent = isInThisRun;
    const { sysfs, directory } = await startToys('a');
    const { runner } = await start(toys, 'fpga', sysfs, { isPresent: () => isPresent, isExpected: !isInThisRun });
    await runner.refresh();
    isPresent = false;
    rmSync(directory('a'), { recursive: true });
    await runner.refresh();
    expect(runner.latest()?.collection).toMatchObject({ reports: [], listing: 'complete' });
    expect(runner.state()).toMatchObject({ runs: 2 });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });
});

describe('a read of a file that does not return', () => {
  it('costs one thread for any number of reads, and affects only its device, until it returns', async () => {
    const { runner, clock, isolated, fifo, directory, read, hangsAt, release } = await startToys('abcde');
    const [b, d] = [fifo('b', 'state'), fifo('d', 'state')];
    const refreshed = runner.refresh();
    const writers = { b: await heldOpen(b), d: -1 };
    clock.advance(1_250);
    writers.d = await heldOpen(d);
    clock.advance(100);
    await refreshed;
    expect(read()).toBe('ace');
    expect(runner.latest()?.collection.listing).toBe('partial');
    expect(runner.state()).toMatchObject({ runs: 1, failures: 0, abandoned: 1 });
    expect(hangsAt()).toEqual([directory('b'), directory('d')]);
    expect(runner.hung).toEqual([
      { kind: 'file', path: b },
      { kind: 'file', path: d },
    ]);
    await runner.refresh();
    expect(read()).toBe('ace');
    expect(runner.state(), 'nobody waits for it again').toMatchObject({ runs: 2, failures: 0, abandoned: 1 });

    release('b', 'state', writers.b);
    await until(() => hangsAt().length === 1);
    await runner.refresh();
    expect(read()).toBe('abce');
    release('d', 'state', writers.d);
    await until(() => hangsAt().length === 0);
    await runner.refresh();
    expect(read()).toBe('abcde');
    expect(runner.latest()?.collection.listing).toBe('complete');
    expect(runner.hung).toEqual([]);

    const elsewhere = vi.spyOn(isolated, 'read');
    clock.advance(59_999);
    await runner.refresh();
    expect(elsewhere).toHaveBeenCalledTimes(5);
    const released = vi.spyOn(isolated, 'release');
    clock.advance(1);
    await runner.refresh();
    expect(read()).toBe('abcde');
    expect(
      [elsewhere, released].map(({ mock }) => mock.calls.length),
      'the thread reads by itself again',
    ).toEqual([5, 1]);
    expect(runner.state()).toMatchObject({ runs: 6, failures: 0, abandoned: 1, problems: [] });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('costs no thread and delays nothing when it hung in an earlier run of the agent', async () => {
    const { runner, fifo, directory, read, hangsAt, release } = await startToys('abc', (of) =>
      ['a', 'b'].map((id) => ({ kind: 'file', path: join(of(id), 'state') })),
    );
    const a = fifo('a', 'state');
    expect(runner.hung).toHaveLength(2);
    const first = runner.refresh();
    expect(hangsAt()).toEqual([directory('a'), directory('b')]);
    await first;
    await until(() => hangsAt().length === 1);
    await runner.refresh();
    expect(read(), 'b has come back meanwhile').toBe('bc');
    expect(runner.state()).toMatchObject({ runs: 2, abandoned: 0 });
    expect(runner.hung).toEqual([{ kind: 'file', path: a }]);
    release('a', 'state', await heldOpen(a));
    await until(() => hangsAt().length === 0);
    await runner.refresh();
    expect(read()).toBe('abc');
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });
});

describe('a call that does not return', () => {
  it('does not delay the end of the agent, and is reported', async () => {
    const { runner, clock, fifo } = await startToys('a');
    const call = fifo('a', 'call');
    const refreshed = runner.refresh();
    const writer = await heldOpen(call);
    clock.advance(TIMEOUT_MS);
    await refreshed;
    expect(await runner.close(50)).toBe(false);
    closeSync(writer);
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('has the whole deadline, and less while another call hangs; its device is left out until it returns', async () => {
    const { runner, clock, fifo, directory, read, hangsAt, release } = await startToys('abc');
    const writers: Record<string, number> = {};
    const b = fifo('b', 'call');
    const first = runner.refresh();
    writers.b = await heldOpen(b);
    clock.advance(TIMEOUT_MS - 1);
    expect(runner.state()).toMatchObject({ abandoned: 0 });
    clock.advance(1);
    await first;
    expect(runner.latest()).toBeUndefined();
    expect(runner.state()).toMatchObject({ succeeded: false, runs: 1, failures: 1, abandoned: 1 });
    expect(hangsAt()).toEqual([directory('b')]);
    await runner.refresh();
    expect(read()).toBe('ac');

    const c = fifo('c', 'call');
    const third = runner.refresh();
    writers.c = await heldOpen(c);
    clock.advance(1_500);
    expect(runner.state()).toMatchObject({ abandoned: 1 });
    clock.advance(250);
    await third;
    expect(read(), 'in the same refresh').toBe('a');
    expect(runner.state()).toMatchObject({ runs: 3, failures: 1, abandoned: 2 });
    expect(hangsAt()).toEqual([directory('b'), directory('c')]);
    expect(runner.hung).toEqual(['b', 'c'].map((id) => ({ kind: 'call', path: `${directory(id)}/nvml/call` })));

    for (const [id, left] of [
      ['b', 'ab'],
      ['c', 'abc'],
    ] as const) {
      release(id, 'call', writers[id] as number);
      await until(() => !hangsAt().includes(directory(id)));
      await runner.refresh();
      expect(read()).toBe(left);
    }
    expect(runner.state()).toMatchObject({ failures: 1, abandoned: 2, problems: [] });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('is tried last when it hung in an earlier run of the agent: one call at a time, after the other devices', async () => {
    const { runner, directory, read } = await startToys('abc', (of) =>
      ['a', 'b'].map((id) => ({ kind: 'call', path: `${of(id)}/nvml/call` })),
    );
    for (const id of ['a', 'b', 'c']) writeFileSync(join(directory(id), 'call'), '');
    const seen: string[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      await runner.refresh();
      seen.push(read());
    }
    expect(seen).toEqual(['c', 'ac', 'abc']);
    expect(runner.state()).toMatchObject({ abandoned: 0, problems: [] });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });
});

it('a thread that starts slowly is no hang, however short the deadline of a run is, until ten seconds are over', async () => {
  const { sysfs } = await startToys('ab');
  const unseen = join(sysfs, 'unseen');
  for (const [waitedMs, isHung] of [
    [9_000, false],
    [10_000, true],
  ] as const) {
    const { runner, clock } = await start(toys, 'fpga', sysfs, { timeoutMs: 500 });
    makeFifo(unseen);
    const refreshed = runner.refresh();
    const writer = await heldOpen(unseen);
    clock.advance(waitedMs);
    if (isHung) await refreshed;
    rmSync(unseen);
    closeSync(writer);
    await refreshed;
    expect(runner.state()).toMatchObject({ runs: 1, abandoned: isHung ? 1 : 0, succeeded: !isHung });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  }
});

it('a family whose threads are stuck at unknown places is not read before one returns', async () => {
  const { runner, clock, sysfs, read } = await startToys('ab');
  const unseen = join(sysfs, 'unseen');
  const writers: number[] = [];
  for (let turn = 1; turn <= 3; turn += 1) {
    makeFifo(unseen);
    const refreshed = runner.refresh();
    writers.push(await heldOpen(unseen));
    clock.advance(TIMEOUT_MS);
    await refreshed;
    expect(runner.state()).toMatchObject({ runs: turn, abandoned: turn, hung: true });
  }
  await runner.refresh();
  expect(runner.state()).toMatchObject({ runs: 3, abandoned: 3, hung: true });
  rmSync(unseen);
  for (const writer of writers) closeSync(writer);
  await until(() => !runner.state().hung);
  await runner.refresh();
  expect(read()).toBe('ab');
  expect(runner.state()).toMatchObject({ runs: 4, succeeded: true, problems: [] });
  expect(await runner.close(TIMEOUT_MS)).toBe(true);
});
