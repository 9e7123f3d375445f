import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../../src/health/engine/engine.ts';
import { createPolicy } from '../../../src/health/policy/policy.ts';
import { deviceKey } from '../../../src/model/device.ts';
import { hours, minutes } from '../../../src/model/duration.ts';
import { conditions } from '../../../src/probes/nvidia/conditions.ts';
import { hopper, type ScriptedGpu, type ScriptedNode } from './scripted-script.ts';
import { startedNode } from './started.ts';

type Numbers = ScriptedGpu['values'];
const EVERY_MS = 30_000;
const NVLINK: readonly string[] = ['NvLinkDown', 'NvLinkErrors', 'FabricCliqueDiffers'];

/** Links that lead to a switch; those in `down` are not up. */
const links = (count: number, down: readonly number[] = [], more: Numbers = {}): Numbers => ({
  ...Object.fromEntries(
    Array.from({ length: count }, (_, link) => [
      [`link.${link}`, down.includes(link) ? 0 : 1],
      [`link.${link}.type`, 2],
      [`link.${link}.error.1`, 0],
    ]).flat(),
  ),
  ...more,
});
const node = (...gpus: Numbers[]): ScriptedNode => ({ gpus: gpus.map((more, index) => hopper(index, more)) });

/** The library, the probe and the engine, in a time that only this test moves. */
function agent(machine: ScriptedNode) {
  const { node: live, at } = startedNode(machine);
  const { policy } = createPolicy({ specs: { nvidia: Object.values(conditions) }, config: {} });
  let engine = createHealthEngine({ policy });
  let nowMs = 0;
  /** Conditions of links and fabric that count, and the state, of each GPU. */
  const look = async (): Promise<readonly string[]> => {
    const { reports } = await at(nowMs);
    const devices = reports.map(({ device, read }) => ({
      key: deviceKey(device),
      device,
      holders: [],
      read: read === undefined ? undefined : { findings: read.findings, readAtMs: nowMs, monotonicMs: nowMs },
    }));
    const { verdicts } = engine.judge({ devices, monotonicMs: nowMs }, nowMs);
    engine.announce();
    return devices.map(({ key }) => {
      const { state = 'absent', conditions: found = [] } = verdicts.get(key) ?? {};
      return [state, ...found.filter(({ type }) => NVLINK.includes(type)).map(({ type, severity }) => `${type} ${severity}`)].join(' ');
    });
  };
  return {
    write: (next: ScriptedNode) => live.write(next),
    /** Reads every half minute for a time; returns the last look. */
    async pass(ms: number): Promise<readonly string[]> {
      for (const endMs = nowMs + ms; nowMs < endMs; nowMs += EVERY_MS) await look();
      return look();
    },
    /** One read after a time without any. */
    async skip(ms: number): Promise<readonly string[]> {
      nowMs += ms;
      return look();
    },
    messages: async () => {
      const { reports } = await at(nowMs);
      return reports.map(({ read }) => read?.findings.find(({ type }) => type === 'NvLinkDown')?.message);
    },
    restart() {
      engine = createHealthEngine({ policy, state: JSON.parse(JSON.stringify(engine.state())) });
    },
  };
}

describe('NvLinkDown', () => {
  it('is raised by a link that was up, names it and what it leads to, lasts over a restart, and clears when the link is back', async () => {
    const run = agent(node(links(18), links(18)));
    expect(await run.pass(minutes(10))).toEqual(['healthy', 'healthy']);
    run.write(node(links(18, [3]), links(18)));
    expect(await run.pass(minutes(3))).toEqual(['degraded NvLinkDown degraded', 'healthy']);
    expect(await run.messages()).toEqual(['17 of 18 NVLinks are up; down: nvlink3 to a switch', '18 of 18 NVLinks are up']);
    run.restart();
    expect(await run.pass(minutes(5))).toEqual(['degraded NvLinkDown degraded', 'healthy']);
    run.write(node(links(18), links(18)));
    expect(await run.pass(minutes(5))).toEqual(['healthy', 'healthy']);
  });

  it('is fatal when no link is left', async () => {
    const run = agent(node(links(18), links(18)));
    await run.pass(minutes(5));
    run.write(
      node(
        links(
          18,
          Array.from({ length: 18 }, (_, link) => link),
        ),
        links(18),
      ),
    );
    expect(await run.pass(minutes(3))).toEqual(['unhealthy NvLinkDown fatal', 'healthy']);
  });

  it('never ends by not looking: a link whose state cannot be read, and a lost GPU', async () => {
    const run = agent(node(links(18)));
    await run.pass(minutes(5));
    run.write(node(links(18, [3])));
    await run.pass(minutes(3));
    run.write({ gpus: [{ ...hopper(0, links(18)), lines: ['fail.nvmlDeviceGetNvLinkState = 999'] }] });
    expect(await run.pass(minutes(3))).toEqual(['degraded NvLinkDown degraded']);
  });

  const inactive = links(
    18,
    Array.from({ length: 18 }, (_, link) => link),
  );
  it.each<[string, ScriptedNode, ScriptedNode]>([
    ['a virtual machine with one GPU and 18 inactive links', node(inactive), node(inactive)],
    ['links that come up late', node(links(18, [1, 2])), node(links(18))],
    ['a board with a bridge between two GPUs', node(links(12, [4, 5, 6, 7, 8, 9, 10, 11])), node(links(12, [4, 5, 6, 7, 8, 9, 10, 11]))],
    ['a board without links', node({}), node({})],
    ['a GPU that is split: the driver takes its links down', node(links(12)), node(links(12, [...Array(12).keys()], { mig_current: 1 }))],
    ['links that cannot be read', node(links(18)), { gpus: [{ ...hopper(0, links(18)), lines: ['fail.nvmlDeviceGetNvLinkState = 999'] }] }],
  ])('is not raised by %s', async (_name, before, after) => {
    const run = agent(before);
    expect(await run.pass(minutes(5))).toEqual(['healthy']);
    run.write(after);
    expect(await run.pass(minutes(10))).toEqual(['healthy']);
  });
});

describe('NvLinkErrors', () => {
  const withErrors = (count: number): ScriptedNode => node(links(18, [], { 'link.7.error.1': count }), links(18), links(18));

  it('is raised on the first of five days in which one link has 505 recoveries, and on no other GPU', async () => {
    const run = agent(withErrors(0));
    await run.pass(minutes(2));
    let raisedAfter: number | undefined;
    const everyMs = Math.floor(hours(120) / 505 / EVERY_MS) * EVERY_MS;
    for (let count = 1; count <= 505; count += 1) {
      run.write(withErrors(count));
      const [first, ...others] = await run.skip(everyMs);
      expect(others).toEqual(['healthy', 'healthy']);
      if (first !== 'healthy') raisedAfter ??= count * everyMs;
    }
    expect(raisedAfter).toBeLessThan(hours(24));
    expect(await run.skip(everyMs)).toEqual(['degraded NvLinkErrors degraded', 'healthy', 'healthy']);
  }, 120_000);

  it('is raised after fifteen minutes with errors of half an hour, and clears after a day without', async () => {
    const run = agent(withErrors(0));
    await run.pass(minutes(2));
    for (let minute = 1; minute <= 17; minute += 1) {
      run.write(withErrors(minute));
      await run.skip(minutes(1));
    }
    expect(await run.pass(minutes(1))).toEqual(['degraded NvLinkErrors degraded', 'healthy', 'healthy']);
    for (let hour = 0; hour < 26; hour += 1) for (let half = 0; half < 30; half += 1) await run.skip(minutes(2));
    expect(await run.pass(minutes(15))).toEqual(['healthy', 'healthy', 'healthy']);
  }, 120_000);

  it('is not raised by one burst, and not by errors from before the first read', async () => {
    const run = agent(withErrors(100_000));
    await run.pass(minutes(5));
    run.write(withErrors(200_000));
    expect(await run.pass(minutes(30))).toEqual(['healthy', 'healthy', 'healthy']);
  });
});

describe('FabricCliqueDiffers', () => {
  const inClique = (...cliques: number[]): ScriptedNode => node(...cliques.map((fabric_clique) => ({ fabric_clique, fabric_cluster: 7 })));

  it('is raised on the GPU whose clique differs from that of the others, and clears', async () => {
    const run = agent(inClique(1, 1, 1, 1));
    expect(await run.pass(minutes(3))).toEqual(Array(4).fill('healthy'));
    run.write(inClique(1, 1, 2, 1));
    expect(await run.pass(minutes(3))).toEqual(['healthy', 'healthy', 'degraded FabricCliqueDiffers degraded', 'healthy']);
    run.write(inClique(1, 1, 1, 1));
    expect(await run.pass(minutes(5))).toEqual(Array(4).fill('healthy'));
  });

  it('is not raised on eight GPUs that only have the feature, nor while one has not joined the fabric', async () => {
    const run = agent(node(...Array.from({ length: 8 }, () => ({}))));
    expect(await run.pass(minutes(3))).toEqual(Array(8).fill('healthy'));
    const run2 = agent(node({ fabric_clique: 1, fabric_cluster: 7 }, { fabric_clique: 1, fabric_cluster: 7 }, { fabric_state: 2 }));
    expect((await run2.pass(minutes(1))).slice(0, 2)).toEqual(['healthy', 'healthy']);
  });
});
