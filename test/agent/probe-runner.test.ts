import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProbeRunner } from '../../src/agent/probe-runner.ts';
import type { Clock } from '../../src/host/clock.ts';
import { buildWithFamilies, type OtherBuild } from '../support/other-families.ts';
import { copied } from './random-collections.ts';
import { FIFO, Script, SEED } from './random-family.ts';

const TIMEOUT_MS = 10_000;
const TURNS = 120;

let build: OtherBuild;
beforeAll(() => {
  build = buildWithFamilies({
    fpga: 'test/agent/random-family.ts',
    infiniband: 'test/agent/restless-family.ts',
    nvidia: 'test/agent/erring-family.ts',
  });
});
afterAll(() => rmSync(build.root, { recursive: true, force: true }));

/** Time goes on when the test says so: a slow machine makes nothing hang. */
function testClock(): { readonly clock: Clock; pass(ms: number): void } {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly run: () => void }[] = [];
  const after = (delayMs: number, run: () => void): (() => void) => {
    const timer = { atMs: nowMs + delayMs, run };
    timers.push(timer);
    return () => {
      timers = timers.filter((one) => one !== timer);
    };
  };
  const pass = (ms: number): void => {
    nowMs += ms;
    const due = timers.filter(({ atMs }) => atMs <= nowMs);
    timers = timers.filter(({ atMs }) => atMs > nowMs);
    for (const { run } of due) run();
  };
  return { clock: { now: () => nowMs, monotonic: () => nowMs, after }, pass };
}

async function start(family: string, sysfs: string, look?: () => string) {
  const { ProbeRunner: Runner } = await build.import<{ ProbeRunner: typeof ProbeRunner }>('agent/probe-runner.js');
  const { clock, pass } = testClock();
  const crashes: string[] = [];
  const roots = { sysfs, procfs: sysfs, dev: sysfs };
  const events = { changed: () => {}, wake: () => {}, crashed: (_: string, message: string) => crashes.push(message) };
  return { runner: new Runner({ family, options: {}, roots, timeoutMs: TIMEOUT_MS }, clock, events, look), pass, crashes };
}

async function startScripted(seed: number) {
  const sysfs = join(build.root, `sys-${seed}`);
  mkdirSync(sysfs);
  let scripts = 100 * seed;
  /** For the next thread. */
  const nextScript = (): Script => {
    scripts += 1;
    writeFileSync(join(sysfs, SEED), `${scripts}`);
    return new Script(scripts);
  };
  execFileSync('mkfifo', [join(sysfs, FIFO)]);
  return { ...(await start('fpga', sysfs)), fifo: join(sysfs, FIFO), nextScript };
}

async function startErring() {
  const sysfs = mkdtempSync(join(build.root, 'sys-erring-'));
  return { ...(await start('nvidia', sysfs)), setWay: (way: string): void => writeFileSync(join(sysfs, 'way'), way) };
}

/** Opens once the thread is in the kernel, waiting for a writer. */
async function heldOpen(fifo: string): Promise<number> {
  for (;;) {
    try {
      return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      await pause(5);
    }
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(5);
}

describe("a family's thread", () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'tells what its probe read, whatever happens: reads later, throws, hangs, comes back (seed %i)',
    async (seed) => {
      const { runner, pass, crashes, fifo, nextScript } = await startScripted(seed);
      let script = nextScript();
      let latest: unknown;
      let writer: number | undefined;
      const ways = new Map<string, number>();
      const hangs = (): number => {
        const { hung, problems } = runner.state();
        return hung ? problems.filter(({ code }) => code === 'probe-hung').length : 0;
      };
      let hung = 0;
      let failures = 0;
      for (let turn = 0; turn < TURNS; turn += 1) {
        if (writer !== undefined && (hung === 2 || turn % 7 === 0)) {
          closeSync(writer);
          writer = undefined;
          await until(() => hangs() === 0);
        }
        // A thread that came back: what is in its way is gone, and the next one reads everything anew.
        if (hangs() < hung) script = nextScript();
        hung = hangs();
        const { way, collection } = script.next();
        ways.set(way, (ways.get(way) ?? 0) + 1);
        const refreshed = runner.refresh();
        if (way === 'hangs') {
          const opened = await heldOpen(fifo);
          if (writer !== undefined) closeSync(writer);
          writer = opened;
          pass(TIMEOUT_MS);
          hung = hangs();
        }
        await refreshed;
        if (way === 'at once' || way === 'later') latest = copied(collection);
        else script = nextScript();
        if ((way !== 'at once' && way !== 'later') || collection.complete === false) failures += 1;
        const told = runner.latest()?.collection;
        expect(told && copied(told), `turn ${turn}, ${way}`).toEqual(latest);
        expect(runner.state().runs).toBe(turn + 1);
      }
      if (writer !== undefined) closeSync(writer);
      expect(await runner.close(TIMEOUT_MS)).toBe(true);
      expect(runner.state()).toMatchObject({ failures, abandoned: ways.get('hangs') ?? 0 });
      expect(crashes, 'said once, with its stack').toEqual(ways.has('throws') ? [expect.stringMatching(/^Error: as scripted\n +at /)] : []);
    },
  );

  it('is given the time to answer anew after the process as a whole stood still', async () => {
    const { runner, pass, fifo, nextScript } = await startScripted(7);
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
    pass(TIMEOUT_MS + 3_600_000);
    expect(runner.state()).toMatchObject({ abandoned: 0, hung: false });
    pass(TIMEOUT_MS);
    expect(runner.state()).toMatchObject({ abandoned: 1, hung: true });
    await refreshed;
    closeSync(writer);
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('that ends with an error after it was replaced does no harm to the one that reads', async () => {
    let surroundings = '';
    const { runner, crashes } = await start('infiniband', build.root, () => surroundings);
    for (let turn = 0; turn < 3; turn += 1) await runner.refresh();
    surroundings = 'something came';
    await runner.refresh();
    await until(() => crashes.length > 0);
    await runner.refresh();
    expect(crashes[0]).toContain('cannot close');
    expect(runner.state()).toMatchObject({ runs: 5, failures: 0, problems: [] });
    await runner.close(TIMEOUT_MS);
  });

  it('that never comes back is told without a break, though it can be ended, until a run comes through', async () => {
    const { runner, pass, setWay } = await startErring();
    await runner.refresh();
    for (let turn = 1; turn <= 4; turn += 1) {
      setWay('never');
      const refreshed = runner.refresh();
      await until(() => runner.isReading);
      pass(TIMEOUT_MS);
      await refreshed;
      await until(() => !runner.state().hung);
      expect(runner.state()).toMatchObject({ succeeded: false, abandoned: turn, problems: [{ code: 'probe-hung' }] });
    }
    setWay('');
    await runner.refresh();
    expect(runner.state()).toMatchObject({ succeeded: true, problems: [] });
    expect(await runner.close(TIMEOUT_MS)).toBe(true);
  });

  it('that ends by itself has failed, which is said once', async () => {
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
