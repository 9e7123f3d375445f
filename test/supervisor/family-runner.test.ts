import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Collection, HungStep } from '../../src/model/collection.ts';
import type { FamilyRunner } from '../../src/supervisor/family-runner.ts';
import type { Reader, StartReader } from '../../src/supervisor/messages.ts';
import type { ReaderPool } from '../../src/supervisor/reader-pool.ts';
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
  more: { isPresent?: () => boolean; hung?: readonly HungStep[]; isExpected?: boolean; timeoutMs?: number; isApart?: boolean } = {},
) {
  const { FamilyRunner: Runner } = await from.import<{ FamilyRunner: typeof FamilyRunner }>('supervisor/family-runner.js');
  const { ReaderPool: Pool } = await from.import<{ ReaderPool: typeof ReaderPool }>('supervisor/reader-pool.js');
  const { startReader } = await from.import<{ startReader: StartReader }>('supervisor/reader-process.js');
  // The test advances the time, so a slow machine makes nothing hang.
  const clock = new ManualClock();
  const crashes: string[] = [];
  const roots = { sysfs, procfs: sysfs, dev: sysfs };
  const events = { changed: () => {}, wake: () => {}, crashed: (_: string, message: string) => crashes.push(message) };
  const { isPresent, ...known } = more;
  const started: Reader[] = [];
  const readers = new Pool(clock, (listener) => {
    const reader = startReader(listener);
    started.push(reader);
    return reader;
  });
  const runner: FamilyRunner = new Runner(
    { family, options: {}, roots, timeoutMs: TIMEOUT_MS, ...known },
    { clock, readers, events, ...(isPresent === undefined ? {} : { isPresent }) },
  );
  const close = async (): Promise<void> => {
    runner.close();
    await readers.close(TIMEOUT_MS);
  };
  onTestFinished(close);
  return {
    ...{ runner, clock, crashes, started, close },
    /** Waits until the agent knows that its reader is below a directory, and the reader sleeps there. */
    heardAt: (directory: string): Promise<void> =>
      until(() => started.at(-1)?.position().step?.path.startsWith(directory) === true && started.at(-1)?.isAsleep() === true),
  };
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
async function startToys(ids: string, hung: (directory: (id: string) => string) => readonly HungStep[] = () => [], isApart = false) {
  const sysfs = mkdtempSync(join(toys.root, 'sys-'));
  const directory = (id: string): string => join(sysfs, TOYS, id);
  const stateOf = (id: string): string => `${id.charCodeAt(0)}`;
  for (const id of ids) {
    mkdirSync(directory(id), { recursive: true });
    writeFileSync(join(directory(id), 'state'), stateOf(id));
  }
  const started = await start(toys, 'fpga', sysfs, { hung: hung(directory), isApart });
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

/** Longer than it takes to hear what a reader has said. */
const nextTurns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe("a family's reader", () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'tells what its probe read, whatever happens: reads later, throws, hangs, comes back (seed %i)',
    async (seed) => {
      const { runner, clock, crashes, fifo, nextScript, close } = await startScripted(seed);
      let script = nextScript();
      let latest: unknown;
      let isKnown = false;
      const ways = new Map<string, number>();
      let failures = 0;
      for (let turn = 0; turn < TURNS; turn += 1) {
        const { way, collection } = script.next();
        ways.set(way, (ways.get(way) ?? 0) + 1);
        const refreshed = runner.refresh();
        if (way === 'hangs') {
          const writer = await heldOpen(fifo);
          clock.advance(TIMEOUT_MS);
          await refreshed;
          closeSync(writer);
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
        expect(runner.state()).toMatchObject({ runs: turn + 1, failures, hung: way === 'hangs' });
      }
      await close();
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
    await nextTurns();
    expect(runner.state()).toMatchObject({ abandoned: 0, hung: false });
    clock.advance(TIMEOUT_MS);
    await refreshed;
    expect(runner.state()).toMatchObject({ abandoned: 1, hung: true });
    closeSync(writer);
  });

  it('whose probe ends with an error after its replacement does not affect the new probe', async () => {
    let isPresent = true;
    const { runner, clock, crashes } = await start(build, 'infiniband', build.root, { isPresent: () => isPresent });
    await runner.refresh();
    isPresent = false;
    await runner.refresh();
    await until(() => crashes.length > 0);
    isPresent = true;
    clock.advance(30_000);
    await runner.refresh();
    await runner.refresh();
    expect(crashes[0]).toContain('cannot close');
    expect(runner.state()).toMatchObject({ runs: 3, failures: 0, problems: [] });
  });

  it('that never returns is reported until a run completes, although it can be ended', async () => {
    const { runner, clock, setWay, started } = await startErring();
    await runner.refresh();
    for (let turn = 1; turn <= 4; turn += 1) {
      setWay('never');
      const writes = turn === 1 ? (started[0]?.position().writes ?? 0) : 0;
      const refreshed = runner.refresh();
      await until(() => (started.at(-1)?.position().writes ?? 0) > writes + 1 && started.at(-1)?.position().step === undefined);
      clock.advance(TIMEOUT_MS + 1_000);
      await refreshed;
      expect(runner.state()).toMatchObject({ succeeded: false, abandoned: turn, problems: [{ code: 'probe-hung' }] });
    }
    setWay('');
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: true, problems: [] });
  });

  it('that ends by itself has failed, which is logged once', async () => {
    const { runner, crashes, setWay } = await startErring();
    await runner.refresh();
    setWay('ends');
    await runner.refresh();
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: false, runs: 3, failures: 2, problems: [{ code: 'reader-ended' }] });
    expect(crashes).toEqual([expect.stringMatching(/^the reader ended in .*way: exit status 0$/)]);
    setWay('');
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: true, problems: [] });
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
  });
});

describe('a read of a file that does not return', () => {
  it('costs a second, and affects only its device, until it returns', async () => {
    const { runner, clock, started, fifo, directory, read, hangsAt, heardAt, release } = await startToys('abcde');
    const [b, d] = [fifo('b', 'state'), fifo('d', 'state')];
    const refreshed = runner.refresh();
    const writers = { b: await heldOpen(b), d: -1 };
    await heardAt(directory('b'));
    clock.advance(1_250);
    writers.d = await heldOpen(d);
    await heardAt(directory('d'));
    // The others wait less for each further one.
    clock.advance(500);
    await refreshed;
    expect(read()).toBe('ace');
    expect(runner.latest()?.collection.listing).toBe('partial');
    expect(runner.state()).toMatchObject({ runs: 1, failures: 0, abandoned: 2 });
    expect(hangsAt()).toEqual([directory('b'), directory('d')]);
    expect(runner.hung).toEqual(['b', 'd'].map((id) => ({ kind: 'file', path: directory(id) })));
    expect(started).toHaveLength(3);
    await until(() => started.slice(0, 2).every(({ hasExited }) => hasExited));
    await runner.refresh();
    expect(read()).toBe('ace');
    expect(runner.state(), 'nobody waits for it again').toMatchObject({ runs: 2, failures: 0, abandoned: 2 });

    release('b', 'state', writers.b);
    release('d', 'state', writers.d);
    clock.advance(10_000);
    await runner.refresh();
    expect(read(), 'tried after the others were read').toBe('ace');
    await until(() => runner.hung.length === 0);
    await runner.refresh();
    expect(read(), 'each was tried, one after the other').toBe('abcde');
    expect(runner.latest()?.collection.listing).toBe('complete');
    expect(hangsAt()).toEqual([]);
    expect(runner.state()).toMatchObject({ runs: 4, failures: 0, abandoned: 2, problems: [] });
  });

  it('is tried ever more seldom, alone, beside the reads of the others, and each trial costs one reader', async () => {
    const { runner, clock, started, fifo, directory, read, heardAt } = await startToys('ab');
    const a = fifo('a', 'state');
    const refreshed = runner.refresh();
    closeSync(await hangs(a));
    await refreshed;
    expect([read(), started.length]).toEqual(['b', 2]);
    for (const [n, waitMs] of [10_000, 20_000, 40_000, 60_000, 60_000].entries()) {
      clock.standStill(waitMs - 1);
      await runner.refresh();
      await nextTurns();
      expect(started, `not before ${waitMs} ms`).toHaveLength(2 + n);
      clock.standStill(1);
      await runner.refresh();
      const writer = await heldOpen(a);
      await heardAt(directory('a'));
      await runner.refresh();
      expect([read(), started.length], 'nobody waits for it').toEqual(['b', 3 + n]);
      clock.advance(1_250);
      await until(() => started.at(-1)?.hasExited === true);
      closeSync(writer);
      expect(runner.state()).toMatchObject({ abandoned: 1, failures: 0, problems: [{ code: 'probe-hung' }] });
    }

    /** Lets a second pass while the reader hangs there. */
    async function hangs(path: string): Promise<number> {
      const writer = await heldOpen(path);
      await heardAt(directory('a'));
      clock.advance(1_250);
      await until(() => started[0]?.hasExited === true);
      return writer;
    }
  });

  it('costs nothing when it hung in an earlier run of the agent, and is tried after the other devices were read', async () => {
    const { runner, clock, started, fifo, directory, read, hangsAt, heardAt, release } = await startToys('abc', (of) =>
      ['b', 'a'].map((id) => ({ kind: 'file', path: of(id) })),
    );
    const a = fifo('a', 'state');
    expect(runner.hung).toHaveLength(2);
    expect(hangsAt()).toEqual([directory('a'), directory('b')]);
    await runner.refresh();
    expect(read()).toBe('c');
    await until(() => runner.hung.length === 1);
    await runner.refresh();
    expect(read(), 'b has come back meanwhile').toBe('bc');
    const writer = await heldOpen(a);
    await heardAt(directory('a'));
    clock.advance(1_250);
    await until(() => started.at(-1)?.hasExited === true);
    expect(runner.state()).toMatchObject({ runs: 2, failures: 0, abandoned: 0 });
    expect(runner.hung).toEqual([{ kind: 'file', path: directory('a') }]);
    release('a', 'state', writer);
    clock.advance(10_000);
    await runner.refresh();
    await until(() => runner.hung.length === 0);
    await runner.refresh();
    expect(read()).toBe('abc');
  });
});

describe('a call that does not return', () => {
  it('does not delay the end of the agent, and nothing of it stays', async () => {
    const { runner, clock, started, close, fifo, heardAt, directory } = await startToys('a', undefined, true);
    const call = fifo('a', 'call');
    const refreshed = runner.refresh();
    const writer = await heldOpen(call);
    await heardAt(directory('a'));
    clock.advance(TIMEOUT_MS / 2);
    await close();
    await refreshed;
    expect(started.map(({ hasExited }) => hasExited)).toEqual([true]);
    closeSync(writer);
  });

  it('has the whole deadline, and less while another call hangs; its device is left out until it returns', async () => {
    const { runner, clock, fifo, directory, read, hangsAt, heardAt, release } = await startToys('abc', undefined, true);
    const writers: Record<string, number> = {};
    const b = fifo('b', 'call');
    const first = runner.refresh();
    writers.b = await heldOpen(b);
    await heardAt(`${directory('b')}/nvml/call`);
    clock.advance(TIMEOUT_MS - 1);
    await nextTurns();
    expect(runner.state()).toMatchObject({ abandoned: 0 });
    clock.advance(1_001);
    await first;
    expect(read(), 'in the same refresh').toBe('ac');
    expect(runner.state()).toMatchObject({ runs: 1, failures: 0, abandoned: 1 });
    expect(hangsAt()).toEqual([directory('b')]);
    await runner.refresh();
    expect(read()).toBe('ac');

    const c = fifo('c', 'call');
    const third = runner.refresh();
    writers.c = await heldOpen(c);
    await heardAt(`${directory('c')}/nvml/call`);
    clock.advance(1_500);
    await nextTurns();
    expect(runner.state()).toMatchObject({ abandoned: 1 });
    clock.advance(250);
    await third;
    expect(read(), 'in the same refresh').toBe('a');
    expect(runner.state()).toMatchObject({ runs: 3, failures: 0, abandoned: 2 });
    expect(hangsAt()).toEqual([directory('b'), directory('c')]);
    expect(runner.hung).toEqual(['b', 'c'].map((id) => ({ kind: 'call', path: `${directory(id)}/nvml/call` })));

    for (const id of ['b', 'c']) release(id, 'call', writers[id] as number);
    clock.advance(20_000);
    await runner.refresh();
    await until(() => runner.hung.length === 0);
    await runner.refresh();
    expect(read()).toBe('abc');
    expect(runner.state()).toMatchObject({ failures: 0, abandoned: 2, problems: [] });
  });

  it('in a reader that other families share is called again in a reader of its own, with the whole deadline', async () => {
    const { runner, clock, started, fifo, directory, read, heardAt, release } = await startToys('ab');
    const b = fifo('b', 'call');
    const refreshed = runner.refresh();
    const writer = await heldOpen(b);
    await heardAt(`${directory('b')}/nvml/call`);
    clock.advance(1_750);
    await until(() => started.length === 2 && started[0]?.hasExited === true);
    const other = await heldOpen(b);
    await heardAt(`${directory('b')}/nvml/call`);
    clock.advance(TIMEOUT_MS / 2);
    release('b', 'call', writer);
    closeSync(other);
    await refreshed;
    expect(read()).toBe('ab');
    expect(runner.state()).toMatchObject({ runs: 1, failures: 0, abandoned: 1, problems: [] });
  });

  it('is tried after the other devices when it hung in an earlier run of the agent', async () => {
    const { runner, directory, read } = await startToys('abc', (of) =>
      ['a', 'b'].map((id) => ({ kind: 'call', path: `${of(id)}/nvml/call` })),
    );
    for (const id of ['a', 'b', 'c']) writeFileSync(join(directory(id), 'call'), '');
    await runner.refresh();
    expect(read()).toBe('c');
    await until(() => runner.hung.length === 0);
    await runner.refresh();
    expect(read()).toBe('abc');
    expect(runner.state()).toMatchObject({ abandoned: 0, problems: [] });
  });
});

describe('a reader that ends', () => {
  it('in a call costs the device of the call, whose name is told, until it is tried again', async () => {
    const { runner, clock, directory, read, crashes } = await startToys('abc', undefined, true);
    writeFileSync(join(directory('b'), 'call'), 'abort');
    await runner.refresh();
    expect(read()).toBe('ac');
    const message = `the reader ended in ${directory('b')}/nvml/call: SIGABRT`;
    expect(runner.state()).toMatchObject({ runs: 1, failures: 0, problems: [{ code: 'reader-ended', message }] });
    expect(crashes).toEqual([message]);
    writeFileSync(join(directory('b'), 'call'), '');
    await runner.refresh();
    expect(read()).toBe('ac');
    clock.advance(10_000);
    await runner.refresh();
    await until(() => runner.hung.length === 0);
    await runner.refresh();
    expect(read()).toBe('abc');
    expect(runner.state()).toMatchObject({ problems: [], hung: false });
  });

  it('by a signal from outside costs one refresh at most', async () => {
    const { runner, started, read, fifo, directory, heardAt, release } = await startToys('ab');
    await runner.refresh();
    process.kill(started[0]?.pid as number, 'SIGKILL');
    await until(() => started[0]?.hasExited === true);
    await runner.refresh();
    expect(read()).toBe('ab');
    const state = fifo('b', 'state');
    const refreshed = runner.refresh();
    const writer = await heldOpen(state);
    await heardAt(directory('b'));
    process.kill(started[1]?.pid as number, 'SIGKILL');
    await refreshed;
    expect(runner.state()).toMatchObject({ succeeded: false, problems: [{ code: 'reader-ended' }] });
    release('b', 'state', writer);
    await runner.refresh();
    expect(read()).toBe('ab');
    expect(runner.state()).toMatchObject({ succeeded: true, problems: [] });
  });
});

it('a probe that starts slowly is no hang, however short the deadline of a run is, until ten seconds are over', async () => {
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
  }
});
