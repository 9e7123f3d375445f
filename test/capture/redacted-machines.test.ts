import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import { CaptureLog } from '../../src/capture/capture-log.ts';
import { type Capture, type Frame, KERNEL_LOG } from '../../src/capture/frame.ts';
import { OutputRedaction } from '../../src/capture/redaction/outputs.ts';
import { Pseudonyms } from '../../src/capture/redaction/pseudonyms.ts';
import { redactCapture } from '../../src/capture/redaction/redact.ts';
import { Shapes } from '../../src/capture/redaction/shapes.ts';
import { pageDifference } from '../../src/cli/replay/replay.ts';
import type { Clock } from '../../src/host/clock.ts';
import { createHost, type Roots } from '../../src/host/host.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { Collection } from '../../src/model/collection.ts';
import type { Finding, Verdict } from '../../src/model/health.ts';
import type { Observe } from '../../src/model/observation.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { childrenOf, parseDocument } from '../../src/probes/nvidia/document.ts';
import { gpuSampleOf } from '../../src/probes/nvidia/document-sample.ts';
import type { GpuSample } from '../../src/probes/nvidia/sample.ts';
import { ReplayNode } from '../../src/sim/replay/replay-node.ts';
import { areThere, CAPTURES, skipped, unpackMachine } from '../support/captures.ts';
import { buildMachine, type Machine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';
import { familyState, lookAt, podResources } from '../support/snapshots.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const STEP_MS = 60_000;
const NO_STATS = { node: 'node-1', version: '0', podResourcesRequests: [], podResourcesDurations: [] };

const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
const known = families.flatMap((family) => family.known ?? []);

const cases = families.flatMap((family) => {
  const folder = join('test/probes', family.name);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => existsSync(join(folder, name, 'machine.yaml'))) : [];
  return names.sort().map((name) => ({ name: family.name, machine: name, family, file: join(folder, name, 'machine.yaml') }));
});

/** Reads a machine several times. `before` and `after` each read are for frames. */
async function reads(
  family: DeviceFamily,
  roots: Roots,
  options: Readonly<Record<string, string>>,
  count: number,
  { before, after, observe }: { before?(read: number): unknown; after?(collection: Collection): unknown; observe?: Observe },
): Promise<readonly Collection[]> {
  let elapsedMs = 0;
  const clock: Clock = { now: () => NOW_MS, monotonic: () => elapsedMs, after: () => () => {} };
  const host = createHost(roots, clock, { observe });
  await before?.(0);
  const probe = family.createProbe(host, probeOptions(family, options));
  const collections: Collection[] = [];
  try {
    for (let read = 0; read < count; read += 1) {
      if (read > 0) await before?.(read);
      const collection = await probe.collect();
      await after?.(collection);
      collections.push(collection);
      elapsedMs += STEP_MS;
    }
    return collections;
  } finally {
    await probe.close?.();
  }
}

async function pageOf(family: DeviceFamily, collection: Collection): Promise<string> {
  const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 60_000, missingRetentionMs: 60_000 };
  const unjudged = (): ReadonlyMap<string, Verdict> => new Map();
  const looked = [{ state: { ...familyState(family.name), problems: collection.problems }, latest: lookAt(collection, NOW_MS, 0) }];
  const inputs = { families: looked, podResources: podResources([]), checkpoint: [] };
  const snapshot = new Assembler(settings, unjudged).assemble(inputs, { nowMs: NOW_MS, monotonicMs: 0 });
  return await createExposition({ families: [family], snapshot: () => snapshot, agent: () => NO_STATS }).devices();
}

/** What was found, without words and names: these have other names in a replay. */
function factsOf({ listing, problems, reports }: Collection): unknown {
  const finding = ({ type, reason, status, count, level }: Finding): unknown => ({ type, reason, status, count, level });
  const facts = reports.map(({ device, read, outOfBand }) => ({
    kind: device.kind,
    read: read?.findings.map(finding),
    outOfBand: outOfBand?.findings.map(finding),
    readings: read?.readings.length,
    processes: read?.processes?.map(({ pid, podUid, containerId }) => [pid, podUid !== undefined, containerId !== undefined]),
    peers: device.peers?.length,
  }));
  return { listing, problems: problems.map(({ code }) => code).sort(), facts: facts.map((fact) => JSON.stringify(fact)).sort() };
}

const rootsAt = (root: string, errors?: string): Roots => ({
  ...{ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), share: join(root, 'share') },
  ...(errors === undefined ? {} : { 'recorded-errors': errors }),
});

/** Reads a machine, and returns what was read. */
async function captured(family: DeviceFamily, { root, options, change }: Omit<Machine, 'remove'>, count: number): Promise<Capture> {
  const places = (['sys', 'proc', 'dev', 'share'] as const).map((name) => ({ name, path: join(root, name) }));
  const directories = Object.entries(options)
    .filter(([name]) => name.endsWith('-directory'))
    .map(([name, path]) => ({ name: `directory/probe.${family.name}.${name}` as const, path }));
  const log = new CaptureLog([...places, ...directories, { name: KERNEL_LOG, path: options.kmsg ?? '' }]);
  const frames: Frame[] = [];
  await reads(family, rootsAt(root), options, count, {
    before: (read) => (read > 0 && read === count - 1 ? change() : undefined),
    after: () => frames.push(log.cut({ atMs: 0, wallMs: NOW_MS, page: '' })),
    observe: log.take,
  });
  const declared = Object.entries(family.options).map(([name, { default: value }]) => [name, String(value)] as const);
  const given = [...declared.filter(([name]) => name.endsWith('-path')), ...Object.entries(options)];
  const taken = Object.fromEntries(given.map(([name, value]) => [`probe.${family.name}.${name}`, value]));
  return {
    manifest: { format: 1, agentVersion: '1', node: 'node-1', isRedacted: false, parts: {}, frames: count, options: taken },
    frames,
  };
}

async function replayed(family: DeviceFamily, capture: Capture): Promise<readonly Collection[]> {
  const node = new ReplayNode(capture, [family]);
  try {
    const prefix = `probe.${family.name}.`;
    const options = Object.entries(node.options()).filter(([key, value]) => key.startsWith(prefix) && value !== '');
    const own = Object.fromEntries(options.map(([key, value]) => [key.slice(prefix.length), value]));
    const roots = rootsAt(node.root, node.options()['path.recorded-errors']);
    return await reads(family, roots, own, capture.frames.length, { before: () => node.step() });
  } finally {
    node.stop();
  }
}

/** What a replay does not repeat, such as an answer of a drive, it does not repeat with other names either. */
async function expectSameReplay(family: DeviceFamily, capture: Capture): Promise<void> {
  const expected = await replayed(family, capture);
  const pages = await Promise.all(expected.map((collection) => pageOf(family, collection)));
  const frames = capture.frames.map((frame, index) => ({ ...frame, page: pages[index] as string }));
  const redacted = redactCapture({ ...capture, frames }, ['node-1'], known);
  const found = await replayed(family, redacted);
  for (const [index, collection] of found.entries()) {
    expect(pageDifference(redacted.frames[index]?.page ?? '', await pageOf(family, collection)), `read ${index}`).toEqual([]);
    expect(factsOf(collection), `read ${index}`).toEqual(factsOf(expected[index] as Collection));
  }
}

describe.each(cases)('a redacted capture of $name on $machine', ({ family, file }) => {
  it('replays like the capture itself, up to names', async () => {
    const machineFile = readMachine(file);
    const machine = buildMachine(machineFile);
    const capture = await captured(family, machine, machineFile.reads ?? 1).finally(() => machine.remove());
    await expectSameReplay(family, capture);
  });
});

describe.skipIf(!areThere).each(['32em64t-2n8c+dax+nvme+mic+dimms', '32intel64-2p8co2t+8ve', 'nvidiagpunumanodes'])(
  `a redacted capture of the real machine %s${skipped}`,
  (archive) => {
    it('replays like the capture itself, up to names', async () => {
      const root = mkdtempSync(join(tmpdir(), 'device-agent-real-'));
      onTestFinished(() => rmSync(root, { recursive: true }));
      unpackMachine(archive, root);
      for (const family of families.filter(({ isOffByDefault }) => isOffByDefault !== true))
        await expectSameReplay(family, await captured(family, { root, options: {}, change: () => {} }, 1));
    }, 60_000);
  },
);

const DOCUMENTS = join(CAPTURES, 'nvidia-smi');

describe.skipIf(!areThere).each(areThere ? readdirSync(DOCUMENTS) : ['any.xml'])(`the document %s of a real GPU${skipped}`, (file) => {
  it('has the same values when it is redacted, and another identity', () => {
    const smi = known.flatMap(({ outputs = [] }) => outputs).find(({ program }) => program === 'nvidia-smi');
    const redaction = new OutputRedaction(smi, new Shapes(new Pseudonyms(), new Set(), known));
    const samples = (text: string): readonly GpuSample[] => {
      const { log } = parseDocument(text);
      return log === undefined ? [] : childrenOf(log, 'gpu').map(gpuSampleOf);
    };
    const text = readFileSync(join(DOCUMENTS, file), 'utf8');
    const [before, after] = [samples(text), samples(redaction.redact(text))];
    expect(before.length).toBeGreaterThan(0);
    for (const [at, { identity, ...values }] of before.entries()) {
      const other = after[at];
      expect({ ...other, identity: { ...other?.identity, uuid: identity?.uuid, serial: identity?.serial } }).toEqual({
        ...values,
        identity,
      });
      expect(other?.identity?.uuid).not.toBe(identity?.uuid);
    }
  });
});
