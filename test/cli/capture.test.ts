import { mkdirSync, rmdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packCapture, unpackCapture } from '../../src/capture/archive.ts';
import { pageDifference, seriesOf } from '../../src/cli/replay/replay.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { type SimulationOptions, simulationOptions } from '../../src/sim/options.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { openCapture, playCapture, replayContext } from '../support/captured.ts';

const _families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
const NEVER = 3_600_000;
const defaults = Object.fromEntries(Object.entries(simulationOptions).map(([name, { default: value }]) => [name, value]));
const SIZE = {
  ...defaults,
  devices: ['nvidia=4', 'infiniband=3', 'infiniband.vf=3'],
  pods: 8,
  step: NEVER,
  'pod-change': 100_000,
} as unknown as SimulationOptions;

const nodes: SimulatedNode[] = [];
afterAll(async () => {
  for (const node of nodes.splice(0)) await node.stop();
});

async function startedNode(): Promise<SimulatedNode> {
  const node = new SimulatedNode(simulatedFamilies, SIZE);
  nodes.push(node);
  await node.start();
  return node;
}

/** A node in four moments: sound, with scripted faults and another pod, with reads that fail in their own ways, and sound again. */
async function captured(): Promise<{ readonly archive: Buffer; readonly redacted: Buffer; readonly names: readonly string[] }> {
  const node = await startedNode();
  const port = join(node.root, 'sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data');
  const session = await openCapture(node.flags());
  session.keep(await session.read());
  node.step(100_000);
  session.keep(await session.read());
  // A read of a directory fails with EISDIR, also for a super user.
  truncateSync(port);
  rmSync(port);
  mkdirSync(port);
  session.keep(await session.read());
  rmdirSync(port);
  writeFileSync(port, '');
  node.step(170_000);
  session.keep(await session.read());
  await session.close();
  const names = node.kubelet.pods().flatMap(({ namespace, name, uid }) => [namespace, name, uid]);
  return { archive: packCapture(session.capture(false)), redacted: packCapture(session.capture(true)), names };
}

const holders = (page: string): number => seriesOf(page).filter((line) => line.startsWith('container_device_allocation{')).length;

describe('a capture of the simulated node with faults', () => {
  let of: Awaited<ReturnType<typeof captured>>;
  beforeAll(async () => {
    of = await captured();
  }, 60_000);

  it('replays to the same page, frame by frame', async () => {
    const capture = unpackCapture(of.archive);
    const { pages } = await playCapture(replayContext, capture);
    expect(pages).toHaveLength(4);
    for (const [index, { page }] of capture.frames.entries())
      expect(pageDifference(page, pages[index] as string), `frame ${index}`).toEqual([]);
    expect(pageDifference(pages[0] as string, pages[1] as string).length, 'the moments differ').toBeGreaterThan(100);
    expect(holders(pages[0] as string)).toBeGreaterThan(5);
    const failed = Object.entries(capture.frames[2]?.errors ?? {}).filter(([path]) => path.endsWith('port_rcv_data'));
    expect(failed.map(([, errno]) => errno)).toEqual(['EISDIR']);
    const counter = (page = ''): number =>
      seriesOf(page).filter((line) => /^device_received_bytes_total\{device="mlx5_1"/.test(line)).length;
    expect([counter(pages[1]), counter(pages[2])]).toEqual([1, 0]);
  }, 60_000);

  it('has no name, UUID or serial number when it is redacted, and its holders still have their devices', async () => {
    const { redacted, names } = of;
    const bytes = gunzipSync(redacted).toString('latin1');
    const page = unpackCapture(redacted).frames[0]?.page ?? '';
    // All UUIDs of the simulated boards begin with 5e1f0000, and their serial numbers with 16500000.
    const secrets = [...new Set(names), '5e1f0000', '16500000', '21320733V010', 'a088c203', 'a088:c203'];
    // The document of nvidia-smi has elements with these words.
    const words = new Set(['video', 'storage']);
    expect(secrets.length).toBeGreaterThan(15);
    expect(secrets.filter((secret) => !words.has(secret) && bytes.includes(secret))).toEqual([]);
    const { pages } = await playCapture(replayContext, unpackCapture(redacted));
    expect(pageDifference(page, pages[0] as string)).toEqual([]);
    expect(holders(pages[0] as string)).toBeGreaterThan(5);
    expect(pages[0]).not.toMatch(/^container_device_unresolved\{/m);
    expect(pages[0]).toMatch(/^container_device_memory_used_bytes\{namespace="ns-[0-9a-f]{10}",pod="pod-[0-9a-f]{10}"/m);
  }, 60_000);
});

describe('a capture of a node with a read that hangs', () => {
  it('replays the hang: the device is unread, and all others are read', async () => {
    const machine = new Machine({ infiniband: 2 });
    const hung = 'mlx5_1/ports/1/state';
    try {
      const session = await openCapture([
        ...machine.flags(),
        '--podresources.socket=/nonexistent/kubelet.sock',
        '--podresources.checkpoint=',
      ]);
      session.keep(await session.read());
      machine.hang(hung);
      session.keep(await session.read());
      machine.release(hung);
      await session.close();
      const capture = session.capture(false);
      const { pages, isStuck } = await playCapture(replayContext, capture);
      expect(isStuck).toBe(false);
      for (const [index, { page }] of capture.frames.entries()) expect(pageDifference(page, pages[index] as string)).toEqual([]);
      const changed = pageDifference(pages[0] as string, pages[1] as string);
      expect(changed.length).toBeGreaterThan(0);
      // The other device was read again. Without a kubelet, nobody saw who held it meanwhile.
      const ofOther = changed.filter((line) => line.startsWith('+') && line.includes('device="mlx5_0"'));
      expect(ofOther.map((line) => line.slice(1, line.indexOf('{')))).toEqual([
        'device_last_read_timestamp_seconds',
        'device_unobserved_seconds_total',
      ]);
      expect(changed).toContain('+device_agent_probe_abandoned_runs_total{family="infiniband"} 1');
      expect(Object.values(capture.frames[1]?.errors ?? {})).toContain('EHUNG');
    } finally {
      machine.remove();
    }
  }, 60_000);
});
