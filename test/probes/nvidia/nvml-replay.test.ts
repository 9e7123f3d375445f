import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { packCapture, unpackCapture } from '../../../src/capture/archive.ts';
import { CaptureLog } from '../../../src/capture/capture-log.ts';
import type { Capture, CapturedRead } from '../../../src/capture/format.ts';
import { redactCapture } from '../../../src/capture/redaction/redact.ts';
import { ReplayedNode } from '../../../src/cli/replay/node.ts';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost, type Host } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Observe } from '../../../src/model/observation.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { captureOf } from '../../support/one-capture.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { seeded } from '../../support/seeded.ts';
import { randomGpu, randomSupport } from './random-gpus.ts';
import { type LiveNode, liveNode } from './scripted-machine.ts';
import { hopper, type ScriptedNode } from './scripted-script.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Times at which all values are due again. */
const STEP_MS = 300_000;

function hostAt(root: string, nowMs: () => number, observe?: Observe): Host {
  const clock: Clock = { ...systemClock, monotonic: nowMs };
  return createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock, { observe });
}

function probeOf(host: Host, library: string): Probe {
  const probe = family.createProbe(host, probeOptions(family, { source: 'nvml', 'nvml-library': library }));
  ends.push(() => probe.close?.());
  return probe;
}

interface Captured {
  readonly capture: Capture;
  readonly collections: readonly Collection[];
}

/** Reads a node in two states with the library, and keeps the answers. */
async function captured(nodes: readonly [ScriptedNode, ScriptedNode]): Promise<Captured> {
  let nowMs = 0;
  const made = { log: undefined as CaptureLog | undefined };
  const live: LiveNode = liveNode(nodes[0], (root) =>
    hostAt(
      root,
      () => nowMs,
      (observation) => made.log?.take(observation),
    ),
  );
  ends.push(() => live.remove());
  writeFileSync(join(live.root, 'dev/kmsg'), '');
  const log = new CaptureLog((['sys', 'proc', 'dev'] as const).map((name) => ({ name, path: join(live.root, name) })));
  made.log = log;
  const probe = probeOf(live.host, live.library);
  const [reads, collections]: [CapturedRead[], Collection[]] = [[], []];
  for (const node of nodes) {
    live.write(node);
    collections.push(await probe.collect());
    reads.push(log.read({ atMs: nowMs, wallMs: 0 }));
    nowMs += STEP_MS;
  }
  return { capture: captureOf(reads[0] ?? {}, reads[1]), collections };
}

async function replayed(capture: Capture): Promise<readonly Collection[]> {
  let nowMs = 0;
  const node = new ReplayedNode(capture, [family]);
  ends.push(() => node.stop());
  const collections: Collection[] = [];
  let probe: Probe | undefined;
  for (const at of [0, 1] as const) {
    await node.show(at);
    probe ??= probeOf(
      hostAt(node.root, () => nowMs),
      node.options()['probe.nvidia.nvml-library'] ?? '',
    );
    collections.push(await probe.collect());
    nowMs += STEP_MS;
  }
  return collections;
}

/** The path of the library is that of a file of answers in a replay. */
const withoutSource = (collections: readonly Collection[]): unknown => collections.map(({ source: _, ...rest }) => rest);

describe('the answers of a captured library', () => {
  it('give the same readings in a replay, also after the values changed', async () => {
    const node = (temperature: number, lines: readonly string[] = []): ScriptedNode => ({
      lines,
      gpus: [hopper(0, { temperature }), hopper(1)],
    });
    const { capture, collections } = await captured([node(41), node(77, ['fail.nvmlDeviceGetClockInfo = 15'])]);
    expect(collections[0]?.reports).toHaveLength(2);
    expect(collections[0]?.reports[0]?.read?.readings.length).toBeGreaterThan(30);
    expect(withoutSource(await replayed(unpackCapture(packCapture(capture))))).toEqual(withoutSource(collections));
  });

  it.each(Array.from({ length: 8 }, (_, seed) => seed + 1))('give the same readings on a random machine, seed %i', async (seed) => {
    const pick = seeded(seed);
    const supports = Array.from({ length: 1 + pick(3) }, (_, index) => randomSupport(pick, index));
    const drawn = (): ScriptedNode => ({ gpus: supports.map((support) => randomGpu(pick, support)) });
    const { capture, collections } = await captured([drawn(), drawn()]);
    expect(withoutSource(await replayed(capture))).toEqual(withoutSource(collections));
  });

  it('have no UUID and no serial number when they are redacted, and still give readings', async () => {
    const { capture, collections } = await captured([{ gpus: [hopper(0), hopper(1)] }, { gpus: [hopper(0), hopper(1)] }]);
    const redacted = redactCapture(capture, [], [family.known ?? {}]);
    const memories = redacted.reads.flatMap(({ library }) =>
      library.flatMap(({ memory }) => memory.flatMap(({ before, after }) => [before, after])),
    );
    const bytes = memories.map((base64) => Buffer.from(base64, 'base64').toString('latin1')).join('\n');
    for (const { device } of collections[0]?.reports ?? []) {
      expect(device.serial).toBeTruthy();
      expect(bytes).not.toContain(device.serial);
      expect(bytes).not.toContain(device.uuid?.replace(/^GPU-/, ''));
    }
    const [found] = await replayed(redacted);
    expect(bytes).not.toContain('1821325191014');
    // The serial number of the chassis is a label.
    const valuesOf = (collection: Collection | undefined) =>
      collection?.reports.map(({ read }) => [...(read?.readings ?? [])].filter(({ metric }) => metric !== 'device_nvidia_platform_info'));
    expect(valuesOf(found)).toEqual(valuesOf(collections[0]));
    expect(found?.reports.map(({ device }) => device.id)).not.toEqual(collections[0]?.reports.map(({ device }) => device.id));
  });

  it('give an unknown error for what was never asked', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-answers-'));
    ends.push(() => rmSync(directory, { recursive: true }));
    for (const folder of ['sys', 'proc', 'dev']) mkdirSync(join(directory, folder));
    const file = join(directory, 'a.nvml.json');
    writeFileSync(file, JSON.stringify([{ symbol: 'nvmlInit_v2', types: '', values: ['other'], code: 0, memory: [] }]));
    const { problems } = await probeOf(
      hostAt(directory, () => 0),
      file,
    ).collect();
    expect(problems.map(({ code }) => code)).toEqual(['driver-unreachable']);
  });
});
