import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import { createHost } from '../../src/host/host.ts';
import { FaultLedger } from '../../src/incidents/fault-ledger.ts';
import { withRepeat } from '../../src/incidents/fault-repeats.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { conditionName } from '../../src/model/condition-text.ts';
import type { Device } from '../../src/model/device.ts';
import type { FaultRepeat, SavedFaults, SavedRepeat } from '../../src/model/fault.ts';
import type { Verdict } from '../../src/model/health.ts';
import { KernelLogProbe } from '../../src/probes/nvidia/kernel-log.ts';
import { repeatConditions } from '../../src/probes/nvidia/xid-faults.ts';
import { parseNvidiaLine, type XidLine } from '../../src/probes/nvidia/xid-line.ts';
import { judgeXid } from '../../src/probes/nvidia/xid-table.ts';
import { LogNode } from '../oracle/log-node.ts';
import { podResources } from '../support/snapshots.ts';

const HOUR = 3_600_000;

describe('how often a fault came', () => {
  const repeat = (more: Partial<FaultRepeat> = {}): FaultRepeat => ({ type: 'Again', reason: 'Because', message: 'it came', ...more });
  const times = (of: readonly (readonly [number, Partial<FaultRepeat>])[]): readonly (readonly number[])[] =>
    of
      .reduce<readonly SavedRepeat[]>((known, [atMs, more]) => withRepeat(known, repeat(more), atMs), [])
      .map(({ seen }) => seen.map(([atMs]) => atMs));

  it('is counted for each part apart, and a burst is one', () => {
    expect(
      times([
        [0, { instance: 'a' }],
        [1, { instance: 'b' }],
        [2, { instance: 'a' }],
      ]),
    ).toEqual([[1], [0, 2]]);
    const burst = { burstMs: 10 };
    expect(
      times([
        [0, burst],
        [10, burst],
        [20, burst],
        [31, burst],
      ]),
    ).toEqual([[20, 31]]);
  });

  it('counts one program once, by its latest fault', () => {
    const of = (distinct: string): Partial<FaultRepeat> => ({ distinct });
    expect(
      times([
        [0, of('a')],
        [1, of('b')],
        [2, of('a')],
      ]),
    ).toEqual([[1, 2]]);
  });

  it('is bounded in time, in times and in parts', () => {
    expect(
      times([
        [0, {}],
        [8 * 24 * HOUR, {}],
      ]),
    ).toEqual([[8 * 24 * HOUR]]);
    expect(times(Array.from({ length: 100 }, (_, at) => [at, {}] as const))[0]).toHaveLength(64);
    expect(times(Array.from({ length: 100 }, (_, at) => [at, { instance: `${at}` }] as const))).toHaveLength(64);
  });
});

/** A node with one GPU, the real probe, ledger, join and engine, and a disk that a new agent reads. */
class RepeatNode {
  readonly #node = new LogNode();
  readonly #gpu: Device;
  #agent: ReturnType<RepeatNode['started']>;
  #verdict: Verdict | undefined;
  #seq = 0;

  constructor(model: string) {
    this.#gpu = { family: 'nvidia', id: 'GPU-0', identity: 'GPU-0', kind: 'gpu', aliases: [], pciAddress: '0000:3b:00.0', model };
    this.#agent = this.started();
  }

  started(faults?: SavedFaults, state?: HealthMemory) {
    const { clock, roots, log } = this.#node;
    const ledger = new FaultLedger(100, faults);
    const host = createHost(roots, clock, { known: [this.#gpu], counted: ledger.mark('nvidia') });
    const reports: readonly DeviceReport[] = [{ device: this.#gpu, read: { readings: [], findings: [] } }];
    const probe = new KernelLogProbe({ collect: () => ({ reports, problems: [], listing: 'complete' }) }, host, log);
    const { policy } = createPolicy({ specs: { nvidia: Object.values(repeatConditions) } });
    const engine = createHealthEngine({ policy, ...(state !== undefined && { state }) });
    const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 600_000, missingRetentionMs: 600_000 };
    const judge: ConstructorParameters<typeof Assembler>[1] = (devices, { nowMs, monotonicMs }) => {
      const { verdicts } = engine.judge({ devices, monotonicMs }, nowMs);
      this.#verdict = verdicts.get('nvidia/GPU-0');
      return verdicts;
    };
    return { probe, ledger, engine, assembler: new Assembler(settings, judge, [], undefined, ledger) };
  }

  say(text: string): void {
    this.#seq += 1;
    const usec = Math.round(this.#node.clock.monotonic() * 1_000);
    this.#node.append(`3,${this.#seq},${usec},-;NVRM: Xid (PCI:0000:3b:00): ${text}\n`);
  }

  /** The conditions of repeats after this time. */
  async after(ms: number): Promise<readonly string[]> {
    const { clock } = this.#node;
    for (const wait of [100, Math.max(2_000, ms - 100)]) {
      await this.#node.pass(wait);
      const { probe, assembler } = this.#agent;
      const startedMs = clock.monotonic();
      const collection = await probe.collect();
      const now = { nowMs: clock.now(), monotonicMs: clock.monotonic() };
      const latest = { collection, startedMs, readAtMs: now.nowMs, monotonicMs: now.monotonicMs };
      const state = { family: 'nvidia', problems: [], runs: 1, failures: 0, abandoned: 0, hung: false };
      assembler.assemble(
        { families: [{ state, latest }], podResources: podResources([], { answeredAtMs: now.nowMs }), checkpoint: [] },
        now,
      );
    }
    return (this.#verdict?.conditions ?? [])
      .filter(({ type }) => type.startsWith('Repeated'))
      .map((condition) => `${conditionName(condition)} ${condition.severity} ${condition.remedy}`);
  }

  /** Kills the agent, and loses what the log had. The next one may find no log. */
  async restart(hasLog = true): Promise<void> {
    const { probe, ledger, engine } = this.#agent;
    await probe.close();
    if (hasLog) writeFileSync(this.#node.log, '');
    else rmSync(this.#node.log);
    const saved = JSON.parse(JSON.stringify({ faults: ledger.saved, state: engine.state() }));
    this.#agent = this.started(saved.faults, saved.state);
  }

  async close(): Promise<void> {
    await this.#agent.probe.close();
    this.#node.remove();
  }
}

describe('Xids that come again', () => {
  const warp = (tpc: number): string =>
    `13, pid=7, name=python, Graphics SM Warp Exception on (GPC 1, TPC ${tpc}, SM 0): Out Of Range Address`;
  const page = (name: string, pid: number): string => `31, pid=${pid}, name=${name}, Ch 00000008, intr 00000000. MMU Fault`;
  const link = (registers: string): string => `74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 14(${registers})`;
  const ECC = '0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0';
  const POOR = '0x100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0';
  const rows = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `63, Row Remapper: row ${at}`);
  const contained = '94, pid=7, Contained: CE User Channel (0x9). RST: No, D-RST: No';
  const H100 = 'NVIDIA H100 80GB HBM3';

  it.each<[string, string, readonly string[], number, readonly string[]]>([
    ['13 on one GPC and TPC', H100, [warp(4), warp(4)], HOUR, ['RepeatedGraphicsException/GPC 1, TPC 4 info inspect']],
    ['13 on two TPCs', H100, [warp(4), warp(5)], HOUR, []],
    ['13 in one burst', H100, [warp(4), warp(4), warp(4)], 3_000, []],
    ['31 of two programs', H100, [page('a', 7), page('b', 8)], HOUR, ['RepeatedPageFault info inspect']],
    ['31 of one program', H100, [page('a', 7), page('a', 8), page('a', 9)], HOUR, []],
    ['74 with damaged memory of a link', H100, [link(ECC), link(ECC), link(ECC)], HOUR, ['RepeatedLinkError/link 14 degraded replace']],
    ['74 with damaged memory, twice', H100, [link(ECC), link(ECC)], HOUR, []],
    ['74 with a poor connection', 'NVIDIA H200', [link(POOR), link(POOR), link(POOR)], HOUR, ['RepeatedLinkError/link 14 degraded reseat']],
    ['74 of a board whose registers are not known', 'NVIDIA A100-SXM4-80GB', [link(ECC), link(ECC), link(ECC)], HOUR, []],
    ['63 five times in a day', H100, rows(5), HOUR, ['RepeatedXid/63 degraded inspect']],
    ['63 four times', H100, rows(4), HOUR, []],
    ['94 within minutes', H100, Array.from({ length: 9 }, () => contained), 20_000, []],
    ['79 within three hours each', H100, Array.from({ length: 6 }, () => '79, GPU has fallen off the bus.'), HOUR, []],
  ])('%s', async (_, model, lines, everyMs, expected) => {
    const node = new RepeatNode(model);
    let found: readonly string[] = [];
    for (const line of lines) {
      node.say(line);
      found = await node.after(everyMs);
    }
    expect(found).toEqual(expected);
    await node.close();
  });

  it('count over restarts of the agent, also when the log has lost them, and end after their window', async () => {
    const node = new RepeatNode(H100);
    node.say(warp(4));
    expect(await node.after(2 * HOUR)).toEqual([]);
    await node.restart();
    expect(await node.after(2 * HOUR)).toEqual([]);
    node.say(warp(4));
    expect(await node.after(HOUR)).toEqual(['RepeatedGraphicsException/GPC 1, TPC 4 info inspect']);
    await node.restart();
    expect(await node.after(HOUR)).toEqual(['RepeatedGraphicsException/GPC 1, TPC 4 info inspect']);
    expect(await node.after(19 * HOUR)).toEqual([]);
    await node.close();
  });

  it('do not end while nobody reads the log: the same may have come again', async () => {
    const node = new RepeatNode(H100);
    node.say(warp(4));
    await node.after(HOUR);
    node.say(warp(4));
    const found = ['RepeatedGraphicsException/GPC 1, TPC 4 info inspect'];
    expect(await node.after(HOUR)).toEqual(found);
    await node.restart(false);
    expect(await node.after(30 * HOUR)).toEqual(found);
    await node.restart();
    expect(await node.after(HOUR)).toEqual([]);
    await node.close();
  });

  it('74 takes no GPU out of service for registers that can be ignored, on boards of which they are known', () => {
    const harmless = parse(link('0x40000001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0'));
    expect(judgeXid({ ...harmless, isHopper: true })).toMatchObject({ severity: 'info', lasts: 'quiet', remedy: 'none' });
    expect(judgeXid(harmless)).toMatchObject({ severity: 'fatal' });
    for (const other of [
      '0x40000011, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0',
      '0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0',
      '0x1, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0',
    ])
      expect(judgeXid({ ...parse(link(other)), isHopper: true }), other).toMatchObject({ severity: 'fatal', remedy: 'reset' });
  });
});

function parse(text: string): XidLine {
  const line = parseNvidiaLine({ origin: 'kernel', text: `NVRM: Xid (PCI:0000:3b:00): ${text}` });
  if (line?.kind !== 'xid') throw new Error(text);
  return line;
}
