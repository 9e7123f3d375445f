// Project: programs. It needs real time, for reads that hang.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packCapture, unpackCapture } from '../../src/capture/archive.ts';
import type { Capture } from '../../src/capture/format.ts';
import { redactCapture } from '../../src/capture/redaction/redact.ts';
import { captureTarget } from '../../src/cli/capture/file.ts';
import { pageDifference, seriesLines } from '../../src/cli/replay/replay.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { type SimulationOptions, simulationOptions } from '../../src/sim/options.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { captureNode, families, play } from '../support/captured.ts';

const NEVER = 3_600_000;
const defaults = Object.fromEntries(Object.entries(simulationOptions).map(([name, { default: value }]) => [name, value]));
const SIZE = {
  ...defaults,
  devices: ['nvidia=4', 'infiniband=3', 'infiniband.vf=3'],
  pods: 8,
  step: NEVER,
  'pod-change': 100_000,
} as unknown as SimulationOptions;
const PORT = 'mlx5_1/ports/1/counters/port_rcv_data';
const valuesOf = (page: string, series: RegExp): readonly string[] => seriesLines(page).filter((line) => series.test(line));

describe('a capture of the simulated node', () => {
  let node: SimulatedNode;
  let capture: Capture;
  let names: readonly string[];
  beforeAll(async () => {
    node = new SimulatedNode(simulatedFamilies, SIZE);
    await node.start();
    // Between the reads a fault and another pod come, and a read of a directory fails with EISDIR, also for a super user.
    const made = await captureNode(node.flags(), () => {
      node.step(100_000);
      truncateSync(join(node.root, 'sys/class/infiniband', PORT));
      rmSync(join(node.root, 'sys/class/infiniband', PORT));
      mkdirSync(join(node.root, 'sys/class/infiniband', PORT));
    });
    capture = unpackCapture(packCapture(made.capture));
    names = node.kubelet.pods().flatMap(({ namespace, name, uid }) => [namespace, name, uid]);
  });
  afterAll(() => node.stop());

  it('replays to the same page after the second read, with what only two reads tell', async () => {
    const { page } = await play(capture);
    expect(pageDifference(capture.page, page)).toEqual([]);
    expect(valuesOf(page, /^container_device_allocation\{/).length).toBeGreaterThan(5);
    expect(valuesOf(page, /^device_received_bytes_total\{device="mlx5_[01]"/)).toHaveLength(1);
    const kinds = capture.reads.map(({ tree }) =>
      Object.entries(tree).flatMap(([path, entry]) => (path.endsWith(PORT) ? Object.keys(entry) : [])),
    );
    expect(kinds).toEqual([['file'], ['directory']]);
  });

  it('has no name, UUID or serial number when it is redacted, and its holders still have their devices', async () => {
    const known = families.flatMap((family) => family.known ?? []);
    const archive = packCapture(redactCapture(capture, [], known));
    const encoded = capture.reads.flatMap(({ requests, library }) => [
      ...requests.map(({ answer = '' }) => answer),
      ...library.flatMap(({ memory }) => memory.map(({ after }) => after)),
    ]);
    expect(encoded.length).toBeGreaterThan(1);
    const redacted = unpackCapture(archive);
    const answers = redacted.reads.flatMap(({ requests }) =>
      requests.map(({ answer = '' }) => Buffer.from(answer, 'base64').toString('latin1')),
    );
    const bytes = [gunzipSync(archive).toString('latin1'), ...answers].join('\n');
    // All UUIDs of the simulated boards begin with 5e1f0000, and their serial numbers with 16500000.
    const secrets = [...new Set(names), '5e1f0000', '16500000', '21320733V010', 'a088c203', 'a088:c203'];
    // The document of nvidia-smi has elements with these words.
    const words = new Set(['video', 'storage']);
    expect(secrets.length).toBeGreaterThan(15);
    expect(secrets.filter((secret) => !words.has(secret) && bytes.includes(secret))).toEqual([]);
    const { page } = await play(redacted);
    expect(pageDifference(redacted.page, page)).toEqual([]);
    expect(valuesOf(page, /^container_device_allocation\{/).length).toBeGreaterThan(5);
    expect(page).not.toMatch(/^container_device_unresolved\{/m);
    expect(page).toMatch(/^container_device_memory_used_bytes\{namespace="ns-[0-9a-f]{10}",pod="pod-[0-9a-f]{10}"/m);
  });
});

describe('a capture of a node with a read that hangs', () => {
  it('replays it as a read that hangs: the device is unread, and all others are read', async () => {
    const machine = new Machine({ infiniband: 2 });
    const hung = 'mlx5_1/ports/1/state';
    try {
      const flags = [...machine.flags(), '--podresources.socket=/nonexistent/kubelet.sock', '--podresources.checkpoint='];
      const { capture } = await captureNode(flags, () => machine.hang(hung));
      machine.release(hung);
      expect(Object.values(capture.reads[1].tree)).toContainEqual({ error: 'EHUNG' });
      const { page, isStuck } = await play(capture);
      expect(isStuck).toBe(false);
      expect(pageDifference(capture.page, page)).toEqual([]);
    } finally {
      machine.remove();
    }
  });
});

describe('the file of a capture', () => {
  const folder = mkdtempSync(join(tmpdir(), 'capture-file-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('is only for its owner, and replaces a file whole', async () => {
    const file = join(folder, 'node.json.gz');
    writeFileSync(file, 'before');
    await captureTarget(file).write(Buffer.from('after'));
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777, readdirSync(folder)]).toEqual(['after', 0o600, ['node.json.gz']]);
  });

  it('is never a device, a pipe or a directory', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const path of ['/dev/null', pipe, folder]) expect(() => captureTarget(path), path).toThrow(/no regular file|permission denied/);
    expect(statSync(pipe).isFIFO()).toBe(true);
  });
});
