import { writeSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../host/clock.ts';
import { StepGuard } from '../host/fs/step-guard.ts';
import { createHost, type Host } from '../host/host.ts';
import { stillClock } from '../host/recorded/read-clock.ts';
import type { Observation } from '../model/observation.ts';
import type { DeclaredFamily } from '../probes/declared/family.ts';
import { familyLoaders } from '../probes/families.ts';
import type { DeviceFamily, Probe } from '../probes/family.ts';
import { FrameReader, messageFrame } from './frames.ts';
import type { Collect, FromReader, ProbeStart, ReplayParts, ToReader } from './messages.ts';
import { positionWriter } from './position.ts';
import { CollectionSender } from './posted-collection.ts';
import { look, readAgainChecked } from './probe-look.ts';

/** Entry point of a reader: the process in which probes touch hardware, one after the other. The agent kills it when a step hangs. */

/** Descriptors for messages to the agent and for where this process is. */
const [MESSAGES, POSITION] = [3, 4];
/** Limit for the probes to close what they opened. */
const CLOSE_MS = 1_000;

interface Hosted {
  readonly probe: Probe;
  readonly host: Host;
  readonly guard: StepGuard;
  readonly sender: CollectionSender;
  readonly start: ProbeStart;
  readonly unwatch: (() => void) | undefined;
  release: Collect['release'];
  replay: ReplayParts | undefined;
}

const hosted = new Map<string, Hosted>();
const programs = new Set<number>();
let observed: Observation[] = [];
let running: Collect | undefined;
/** Steps between two runs that were said already: a poll for events is no news. */
const saidAtRest = new Set<string>();

const say = positionWriter(POSITION);

/** Without an agent, there is nothing left to do. */
function send(message: FromReader): void {
  const bytes = messageFrame(message);
  try {
    for (let at = 0; at < bytes.length; at += writeSync(MESSAGES, bytes, at));
  } catch {
    process.exit();
  }
}

const children = {
  started(pid: number): void {
    programs.add(pid);
    send({ kind: 'program', pid, hasEnded: false });
  },
  ended(pid: number): void {
    programs.delete(pid);
    send({ kind: 'program', pid, hasEnded: true });
  },
};

async function collect(request: Collect): Promise<void> {
  running = request;
  saidAtRest.clear();
  const answer = await answerTo(request).catch(
    (error: unknown): FromReader => ({ kind: 'failed', family: request.family, run: request.run, message: textOf(error) }),
  );
  tellObserved();
  running = undefined;
  // Before the answer, because the agent counts the writes of the next run from its begin.
  say(undefined);
  send(answer);
}

async function answerTo(request: Collect): Promise<FromReader> {
  const { family, run, start, leftOut, replay, release, ids } = request;
  const startedMs = performance.now();
  if (start !== undefined) await make(family, start, request);
  const one = hosted.get(family) as Hosted;
  one.guard.leftOut = leftOut;
  one.replay = replay;
  if (!isDeepStrictEqual(one.release, release)) one.probe.release?.(release);
  one.release = release;
  const reads = ids && one.sender.encodeReads(readAgainChecked(one.probe, one.host, ids));
  if (reads !== undefined) return { kind: 'partial', run, reads };
  const collection = await look(one.probe, one.host, { leftOut, exclude: one.start.options.exclude });
  return { kind: 'collected', run, collection: one.sender.encode(collection), durationMs: performance.now() - startedMs };
}

async function make(family: string, start: ProbeStart, { leftOut, replay }: Collect): Promise<void> {
  await close(family);
  const { createProbe } = await familyOf(family, start.declared);
  const guard = new StepGuard(leftOut, (step) => {
    if (running === undefined && (step === undefined || saidAtRest.has(step.path))) return;
    if (running === undefined && step !== undefined) saidAtRest.add(step.path);
    say(step);
  });
  const clock = replay === undefined ? systemClock : stillClock(() => hosted.get(family)?.replay?.time ?? replay.time);
  const observe = replay?.isObserved === true ? (observation: Observation): void => void observed.push(observation) : undefined;
  const host = createHost(start.roots, clock, { children, guard, known: start.known, counted: start.counted, observe });
  const probe = createProbe(host, start.options as never);
  const unwatch = probe.watch?.(() => send({ kind: 'wake', family }));
  hosted.set(family, { probe, host, guard, start, unwatch, replay, release: undefined, sender: new CollectionSender() });
}

/** A declared family is built from its data. A family in code is loaded by its name. */
async function familyOf(family: string, declared: object | undefined): Promise<DeviceFamily> {
  if (declared !== undefined) return (await import('../probes/declared/family.ts')).familyOf(declared as DeclaredFamily);
  const load = familyLoaders[family];
  if (load === undefined) throw new Error(`no such device family: ${family}`);
  return await load();
}

async function close(family: string): Promise<void> {
  const { probe, unwatch } = hosted.get(family) ?? {};
  hosted.delete(family);
  unwatch?.();
  await probe?.close?.();
}

function tellObserved(): void {
  if (observed.length > 0) send({ kind: 'observed', observations: observed });
  observed = [];
}

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

function fail(error: unknown, family: string): void {
  send({ kind: 'failed', family, run: running?.family === family ? running.run : undefined, message: textOf(error) });
}

let last: Promise<void> = Promise.resolve();
const requests = new FrameReader<ToReader>((request) => {
  last = last
    .then(() => (request.run === undefined ? close(request.family) : collect(request)))
    .catch((error: unknown) => fail(error, request.family));
});

/** The agent has ended, or needs this reader no more. A program that it started must not outlive it. */
async function end(): Promise<never> {
  const closed = last.then(() =>
    Promise.all([...hosted.keys()].map((family) => close(family).catch((error: unknown) => fail(error, family)))),
  );
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
  for (const pid of programs) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The program ended by itself.
    }
  }
  process.exit();
}

process.stdin.on('data', (bytes: Buffer) => void requests.push(bytes));
for (const event of ['end', 'error'] as const) process.stdin.once(event, () => void end());
process.on('uncaughtException', (error) => {
  fail(error, running?.family ?? [...hosted.keys()][0] ?? '');
  process.exit(1);
});
// It would open Node's inspector.
process.on('SIGUSR1', () => {});
