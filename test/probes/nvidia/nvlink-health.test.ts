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
const NVLINK: readonly string[] = [
  'NvLinkDown',
  'NvLinkErrorRate',
  'NvLinkSlow',
  'NvLinkErrors',
  'NvLinkRecoveries',
  'NvLinkPeerLost',
  'FabricCliqueDiffers',
  'FabricCliqueChanged',
];

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
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, link) => link);
const node = (...gpus: Numbers[]): ScriptedNode => ({ gpus: gpus.map((more, index) => hopper(index, more)) });

/** The library, the probe and the engine, in a time that only this test moves. */
function agent(machine: ScriptedNode) {
  const { node: live, at, restart: restartProbe } = startedNode(machine);
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
      return [
        state,
        ...found
          .filter(({ type }) => NVLINK.includes(type))
          .map(({ type, instance = '', severity }) => `${[type, instance].filter(Boolean).join('/')} ${severity}`),
      ].join(' ');
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
    /** Messages on one link. */
    messages: async (link: string) => {
      const { reports } = await at(nowMs);
      return reports.map(({ read }) => read?.findings.find(({ type, instance }) => type === 'NvLinkDown' && instance === link)?.message);
    },
    /** The agent starts again: the probe has no memory, the engine has its file. */
    async restart() {
      await restartProbe();
      engine = createHealthEngine({ policy, state: JSON.parse(JSON.stringify(engine.state())) });
    },
    /** The engine has no file of another boot. */
    async reboot() {
      await restartProbe();
      engine = createHealthEngine({ policy });
    },
  };
}

describe('NvLinkDown', () => {
  it('is raised by a link that was up, names it and what it leads to, lasts over a restart, and clears when the link is back', async () => {
    const run = agent(node(links(18), links(18)));
    expect(await run.pass(minutes(10))).toEqual(['healthy', 'healthy']);
    run.write(node(links(18, [3]), links(18)));
    expect(await run.pass(minutes(3))).toEqual(['degraded NvLinkDown/nvlink3 degraded', 'healthy']);
    expect(await run.messages('nvlink3')).toEqual(['nvlink3 to a switch is down', 'nvlink3 to a switch is up']);
    await run.restart();
    expect(await run.pass(minutes(5))).toEqual(['degraded NvLinkDown/nvlink3 degraded', 'healthy']);
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
    expect(await run.pass(minutes(3))).toEqual(['unhealthy NvLinkDown/all fatal', 'healthy']);
  });

  it('is fatal for a GPU that never had a link, when most other GPUs of its model reach a switch', async () => {
    const none = links(18, numbers(18));
    const raised = 'unhealthy NvLinkDown/all fatal';
    expect(await agent(node(none, links(18), links(18))).pass(minutes(3))).toEqual([raised, 'healthy', 'healthy']);
    expect(await agent(node(none, none, links(18))).pass(minutes(3))).toEqual(['healthy', 'healthy', 'healthy']);
    // Other models, split GPUs and bridges show nothing.
    const others = [{ name: 'NVIDIA A100-SXM4-80GB' }, { mig_current: 1, mig_pending: 1 }];
    for (const other of others)
      expect(await agent(node(none, links(18, [], other), links(18, [], other))).pass(minutes(3))).toEqual([
        'healthy',
        'healthy',
        'healthy',
      ]);
    const bridge = Object.fromEntries(numbers(18).map((link) => [`link.${link}.type`, 0]));
    expect(await agent(node(none, links(18, [], bridge), links(18, [], bridge))).pass(minutes(3))).toEqual([
      'healthy',
      'healthy',
      'healthy',
    ]);
  });

  it('never ends by not looking: a link whose state cannot be read, and a lost GPU', async () => {
    const run = agent(node(links(18)));
    await run.pass(minutes(5));
    run.write(node(links(18, [3])));
    await run.pass(minutes(3));
    run.write({ gpus: [{ ...hopper(0, links(18)), lines: ['fail.nvmlDeviceGetNvLinkState = 999'] }] });
    expect(await run.pass(minutes(3))).toEqual(['degraded NvLinkDown/nvlink3 degraded']);
  });

  it('is judged for each link: one link comes up when another fails', async () => {
    const run = agent(node(links(18, [5])));
    await run.pass(minutes(5));
    run.write(node(links(18, [3])));
    expect(await run.pass(minutes(3))).toEqual(['degraded NvLinkDown/nvlink3 degraded']);
  });

  it('is not ended by a driver that answers for fewer links', async () => {
    const run = agent(node(links(18)));
    await run.pass(minutes(5));
    run.write(node(links(18, [17])));
    await run.pass(minutes(3));
    run.write(node(links(3)));
    expect(await run.pass(minutes(10))).toEqual(['degraded NvLinkDown/nvlink17 degraded']);
  });

  it('is not raised by a reboot after which the links come up one after another', async () => {
    const run = agent(node(...Array.from({ length: 8 }, () => links(18))));
    await run.pass(minutes(5));
    await run.reboot();
    for (const up of [0, 6, 12, 18]) {
      const down = Array.from({ length: 18 - up }, (_, link) => up + link);
      run.write(node(...Array.from({ length: 8 }, () => links(18, down))));
      expect(await run.pass(minutes(3))).toEqual(Array(8).fill('healthy'));
    }
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
    ['a driver that answers for fewer links', node(links(18)), node(links(3))],
    ['a driver that answers for fewer links, which are down', node(links(18, [0, 1, 2])), node(links(3, [0, 1, 2]))],
    ['a driver that no longer has the call', node(links(18)), node({})],
    ['links that cannot be read', node(links(18)), { gpus: [{ ...hopper(0, links(18)), lines: ['fail.nvmlDeviceGetNvLinkState = 999'] }] }],
  ])('is not raised by %s', async (_name, before, after) => {
    const run = agent(before);
    expect(await run.pass(minutes(5))).toEqual(['healthy']);
    run.write(after);
    expect(await run.pass(minutes(10))).toEqual(['healthy']);
  });
});

describe('NvLinkErrors and NvLinkRecoveries', () => {
  const REPLAY = 'link.7.error.0';
  const RECOVERY = 'link.7.error.1';
  const withErrors = (count: number, error = RECOVERY): ScriptedNode => node(links(18, [], { [error]: count }), links(18));

  it('are raised on the first of five days in which one link has 505 recoveries, and on no other link', async () => {
    const run = agent(withErrors(0));
    await run.pass(minutes(2));
    let raisedAfter: number | undefined;
    const everyMs = Math.floor(hours(120) / 505 / EVERY_MS) * EVERY_MS;
    for (let count = 1; count <= 505; count += 1) {
      run.write(withErrors(count));
      const [first, ...others] = await run.skip(everyMs);
      expect(others).toEqual(['healthy']);
      if (first !== 'healthy') raisedAfter ??= count * everyMs;
    }
    expect(raisedAfter).toBeLessThan(hours(24));
    expect(await run.skip(everyMs)).toEqual(['degraded NvLinkRecoveries/nvlink7 degraded', 'healthy']);
  });

  it('are raised after fifteen minutes with errors of half an hour, last over a restart, and clear after half an hour without', async () => {
    const run = agent(withErrors(0, REPLAY));
    await run.pass(minutes(2));
    const raised = ['degraded NvLinkErrors/nvlink7 degraded', 'healthy'];
    for (let minute = 1; minute <= 18; minute += 1) {
      run.write(withErrors(minute, REPLAY));
      await run.skip(minutes(1));
    }
    expect(await run.pass(minutes(1))).toEqual(raised);
    await run.restart();
    expect(await run.pass(minutes(5))).toEqual(raised);
    expect(await run.pass(minutes(45))).toEqual(['healthy', 'healthy']);
  });

  it('are not raised by one burst, nor by errors from before the first read', async () => {
    const run = agent(withErrors(100_000));
    await run.pass(minutes(5));
    run.write(withErrors(200_000));
    expect(await run.pass(minutes(30))).toEqual(['healthy', 'healthy']);
  });

  it('end when the driver is loaded again, and not while a link is down', async () => {
    const run = agent(withErrors(0, REPLAY));
    await run.pass(minutes(2));
    for (let minute = 1; minute <= 20; minute += 1) {
      run.write(withErrors(minute, REPLAY));
      await run.skip(minutes(1));
    }
    run.write(node(links(18, [7]), links(18)));
    expect((await run.pass(minutes(60)))[0]).toBe('degraded NvLinkErrors/nvlink7 degraded NvLinkDown/nvlink7 degraded');
    await run.restart();
    run.write(withErrors(0, REPLAY));
    expect(await run.pass(minutes(20))).toEqual(['healthy', 'healthy']);
  });

  it('are not raised by one error of each link within a day', async () => {
    const run = agent(node(links(18)));
    await run.pass(minutes(2));
    const errors: Record<string, number> = {};
    for (let link = 0; link < 18; link += 1) {
      errors[`link.${link}.error.1`] = 1;
      run.write(node(links(18, [], errors)));
      expect(await run.skip(hours(1))).toEqual(['healthy']);
    }
  });

  it.each([
    [208, 'NvLinkErrors'],
    [213, 'NvLinkErrors NvLinkRecoveries'],
    [214, 'NvLinkErrors NvLinkRecoveries'],
    [221, 'NvLinkErrors'],
    // Errors that are left after forward error correction; a retransmission repairs them.
    [219, ''],
  ])('of NVLink 5 judge field %i', async (id, raised) => {
    const up = Object.fromEntries(Array.from({ length: 18 }, (_, link) => [`link.${link}`, 1]));
    const machine = (count: number): ScriptedNode => ({ gpus: [{ ...hopper(0, up), fields: { [`${id} 7`]: count } }] });
    const run = agent(machine(0));
    await run.pass(minutes(2));
    for (let minute = 1; minute <= 20; minute += 1) {
      run.write(machine(minute));
      await run.skip(minutes(1));
    }
    const [state = ''] = await run.pass(minutes(1));
    expect(state.replaceAll('/nvlink7', '')).toBe(raised === '' ? 'healthy' : `degraded ${raised.replaceAll(/(\w+)/g, '$1 degraded')}`);
  });
});

describe('NvLinkSlow', () => {
  const speeds = (...perLink: readonly (number | undefined)[]): ScriptedNode => ({
    gpus: [
      {
        ...hopper(0, links(perLink.length)),
        fields: Object.fromEntries(perLink.flatMap((speed, link) => (speed === undefined ? [] : [[`164 ${link}`, speed]]))),
      },
    ],
  });

  it('is a link that was trained slower than the others, or than before', async () => {
    const run = agent(speeds(26_562, 26_562, 13_281));
    expect(await run.pass(minutes(3))).toEqual(['degraded NvLinkSlow/nvlink2 degraded']);
    run.write(speeds(26_562, 26_562, 26_562));
    expect(await run.pass(minutes(5))).toEqual(['healthy']);
    run.write(speeds(13_281, 13_281, 13_281));
    expect(await run.pass(minutes(3))).toEqual([
      'degraded NvLinkSlow/nvlink0 degraded NvLinkSlow/nvlink1 degraded NvLinkSlow/nvlink2 degraded',
    ]);
  });

  it('is no link whose speed the driver does not tell, or tells as 0', async () => {
    const run = agent(speeds(26_562, undefined, 0));
    expect(await run.pass(minutes(3))).toEqual(['healthy']);
  });
});

describe('NvLinkErrorRate', () => {
  const PER_READ = 250 * (EVERY_MS / 1_000);
  const counting = (count: number, among: readonly number[]): ScriptedNode =>
    node(links(18, [], Object.fromEntries(among.flatMap((link) => [0, 1, 2].map((kind) => [`link.${link}.error.${kind}`, count])))));

  it('is one condition for all links, raised within two minutes, and no link gets one of its own', async () => {
    const run = agent(counting(0, numbers(18)));
    await run.pass(minutes(2));
    const seen = new Set<string>();
    let raisedAfterMs: number | undefined;
    for (let at = 1; at <= 40; at += 1) {
      run.write(counting(at * PER_READ, numbers(18)));
      const [state = ''] = await run.skip(EVERY_MS);
      seen.add(state);
      if (state !== 'healthy') raisedAfterMs ??= at * EVERY_MS;
    }
    expect([...seen]).toEqual(['healthy', 'degraded NvLinkErrorRate degraded']);
    expect(raisedAfterMs).toBeLessThanOrEqual(minutes(2));
    expect(await run.pass(minutes(15))).toEqual(['healthy']);
  });

  it('counts and names its links, does not hide a slow fault of another one, and is not ended by links that cannot be read', async () => {
    const run = agent(counting(0, [3, 4]));
    await run.pass(minutes(2));
    for (let at = 1; at <= 40; at += 1) {
      const machine = counting(at * PER_READ, [3, 4]);
      const gpus = machine.gpus.map((gpu) => ({ ...gpu, values: { ...gpu.values, 'link.9.error.0': at } }));
      run.write({ gpus });
      await run.skip(EVERY_MS);
    }
    expect(await run.skip(1)).toEqual(['degraded NvLinkErrorRate degraded NvLinkErrors/nvlink9 degraded']);
    run.write({ gpus: [{ ...hopper(0, links(18)), lines: ['fail.nvmlDeviceGetNvLinkState = 999'] }] });
    expect(await run.pass(minutes(15))).toEqual([expect.stringContaining('NvLinkErrorRate degraded')]);
  });
});

describe('NvLinkPeerLost', () => {
  /** Access of each GPU to the others; those of `lost` are two GPUs without access to each other. */
  const pairs = (lost: readonly number[] = [], more: Numbers = {}): ScriptedNode =>
    node(
      ...Array.from({ length: 4 }, (_, at) => ({
        ...links(18),
        ...Object.fromEntries(
          [0, 1, 2, 3].filter((to) => to !== at).map((to) => [`p2p.${to}`, lost.includes(at) && lost.includes(to) ? 5 : 0]),
        ),
        ...(at === 0 ? more : {}),
      })),
    );

  it('is raised on both GPUs of a pair that had access, lasts over a restart, and clears', async () => {
    const run = agent(pairs());
    expect(await run.pass(minutes(10))).toEqual(Array(4).fill('healthy'));
    run.write(pairs([1, 3]));
    const raised = ['healthy', 'degraded NvLinkPeerLost/0000:3e:00.0 degraded', 'healthy', 'degraded NvLinkPeerLost/0000:3c:00.0 degraded'];
    expect(await run.pass(minutes(10))).toEqual(raised);
    await run.restart();
    expect(await run.pass(minutes(5))).toEqual(raised);
    run.write(pairs());
    expect(await run.pass(minutes(15))).toEqual(Array(4).fill('healthy'));
  });

  it.each<[string, ScriptedNode, ScriptedNode]>([
    ['a pair that never had access', pairs([0, 1]), pairs([0, 1])],
    ['a GPU that is split', pairs(), pairs([0, 1, 2, 3], { mig_current: 1 })],
    ['a driver without the call', pairs(), node(links(18), links(18), links(18), links(18))],
  ])('is not raised by %s', async (_name, before, after) => {
    const run = agent(before);
    await run.pass(minutes(10));
    run.write(after);
    const states = await run.pass(minutes(15));
    expect(states[0]).toBe('healthy');
  });
});

describe('FabricCliqueDiffers and FabricCliqueChanged', () => {
  /** GPUs that no program uses. */
  const inClique = (...cliques: number[]): ScriptedNode => ({
    gpus: cliques.map((fabric_clique, at) => ({ ...hopper(at, { fabric_clique, fabric_cluster: 7 }), processes: [] })),
  });

  it('is raised on the GPU whose clique differs from that of the others, and clears', async () => {
    const run = agent(inClique(1, 1, 1, 1));
    expect(await run.pass(minutes(3))).toEqual(Array(4).fill('healthy'));
    run.write(inClique(1, 1, 2, 1));
    expect(await run.pass(minutes(3))).toEqual(['healthy', 'healthy', 'degraded FabricCliqueDiffers degraded', 'healthy']);
    run.write(inClique(1, 1, 1, 1));
    expect(await run.pass(minutes(5))).toEqual(Array(4).fill('healthy'));
  });

  it('is raised on all GPUs when two cliques have the same number of GPUs', async () => {
    const run = agent(inClique(1, 1, 2, 2));
    expect(await run.pass(minutes(3))).toEqual(Array(4).fill('degraded FabricCliqueDiffers degraded'));
  });

  it('follows a change of all GPUs: FabricCliqueChanged on those that a program used, for a day', async () => {
    const moved = (clique: number): ScriptedNode => ({
      gpus: inClique(clique, clique).gpus.map((gpu, at) => ({ ...gpu, processes: at === 0 ? ['C 4711 1048576'] : [] })),
    });
    const run = agent(moved(1));
    expect(await run.pass(minutes(3))).toEqual(['healthy', 'healthy']);
    run.write(moved(2));
    expect(await run.pass(minutes(3))).toEqual(['degraded FabricCliqueChanged degraded', 'healthy']);
    await run.restart();
    expect(await run.pass(minutes(3))).toEqual(['degraded FabricCliqueChanged degraded', 'healthy']);
    for (let hour = 0; hour < 25; hour += 1) await run.skip(hours(1));
    expect(await run.pass(minutes(15))).toEqual(['healthy', 'healthy']);
  });

  it('is not raised on eight GPUs that only have the feature, nor while one has not joined the fabric', async () => {
    const run = agent(node(...Array.from({ length: 8 }, () => ({}))));
    expect(await run.pass(minutes(3))).toEqual(Array(8).fill('healthy'));
    const run2 = agent(node({ fabric_clique: 1, fabric_cluster: 7 }, { fabric_clique: 1, fabric_cluster: 7 }, { fabric_state: 2 }));
    expect((await run2.pass(minutes(1))).slice(0, 2)).toEqual(['healthy', 'healthy']);
  });
});
