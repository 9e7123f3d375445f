import { describe, expect, it } from 'vitest';
import { parseNvidiaLine } from '../../../src/probes/nvidia/xid-line.ts';
import { EMPTY_MEMORY, gpuKey, rememberLine, type XidMemory } from '../../../src/probes/nvidia/xid-memory.ts';
import { judgeXid } from '../../../src/probes/nvidia/xid-table.ts';

/**
 * All errors of NVIDIA's catalogue, sheet of NVLink 5 errors (2025-10-29): Xid, unit, severity in the line, first and second register; then what
 * follows from resolution and investigation: a reset is fatal, an evaluation of Xid 154 ends the program, what is ignored is at most degraded.
 */
const CATALOGUE = `
  144 SAW_MVB nonfatal 0x00000021 0x00000001 degraded inspect
  144 SAW_MVB fatal 0x00000021 0x00000002 fatal reset
  144 SAW_MVB nonfatal 0x00000021 0x00000004 info none
  144 SAW_MVB nonfatal 0x00000021 0x00000008 degraded inspect
  144 SAW_MVB fatal 0x00000021 0x00000010 fatal reset
  144 SAW_MVB nonfatal 0x00000021 0x00000020 info none
  145 RLW_CTRL nonfatal 0x00000062 0x80000000 degraded inspect
  145 RLW_REMAP nonfatal 0x00000082 0x00000001 degraded restart-workload
  145 RLW_REMAP nonfatal 0x00000082 0x00000002 degraded restart-workload
  145 RLW_REMAP nonfatal 0x00000082 0x00000004 degraded restart-workload
  145 RLW_REMAP nonfatal 0x00000082 0x00000008 degraded restart-workload
  145 RLW_REMAP nonfatal 0x00000082 0x00000010 degraded restart-workload
  145 RLW_REMAP nonfatal 0x00000082 0x00000020 degraded restart-workload
  145 RLW_REMAP fatal 0x00000082 0x00000040 fatal reset
  145 RLW_REMAP fatal 0x00000082 0x00000080 fatal reset
  145 RLW_REMAP nonfatal 0x00000082 0x00000100 info none
  145 RLW_REMAP nonfatal 0x00000082 0x00000200 info none
  145 RLW_REMAP nonfatal 0x00000082 0x80000000 degraded inspect
  145 RLW_RSPCOL nonfatal 0x000000a2 0x00000001 info none
  145 RLW_RSPCOL fatal 0x000000a2 0x00000002 fatal reset
  145 RLW_RSPCOL nonfatal 0x000000a2 0x80000000 degraded inspect
  145 RLW_RXPIPE nonfatal 0x000000c2 0x00000008 degraded inspect
  145 RLW_RXPIPE nonfatal 0x000000c2 0x80000000 degraded inspect
  145 RLW_SRC_TRACK fatal 0x000000e2 0x00000001 fatal reset
  145 RLW_SRC_TRACK nonfatal 0x000000e2 0x00000002 info none
  145 RLW_SRC_TRACK nonfatal 0x000000e2 0x00000004 degraded restart-workload
  145 RLW_SRC_TRACK nonfatal 0x000000e2 0x00000008 degraded restart-workload
  145 RLW_SRC_TRACK fatal 0x000000e2 0x00000010 fatal reset
  145 RLW_SRC_TRACK fatal 0x000000e2 0x00000020 fatal reset
  145 RLW_SRC_TRACK nonfatal 0x000000e2 0x80000000 degraded inspect
  145 RLW_TAGSTATE nonfatal 0x00000102 0x00000001 info none
  145 RLW_TAGSTATE fatal 0x00000102 0x00000002 fatal reset
  145 RLW_TAGSTATE nonfatal 0x00000102 0x00010000 info none
  145 RLW_TAGSTATE fatal 0x00000102 0x00020000 fatal reset
  145 RLW_TAGSTATE fatal 0x00000102 0x00100000 fatal reset
  145 RLW_TAGSTATE nonfatal 0x00000102 0x80000000 degraded inspect
  146 TLW_CTRL nonfatal 0x00000123 0x00000001 info none
  146 TLW_CTRL nonfatal 0x00000123 0x00000002 degraded inspect
  146 TLW_CTRL fatal 0x00000123 0x00000004 fatal reset
  146 TLW_CTRL nonfatal 0x00000123 0x80000000 degraded inspect
  146 TLW_RX_PIPE0 nonfatal 0x00000143 0x00000001 info none
  146 TLW_RX_PIPE0 nonfatal 0x00000143 0x00000002 degraded inspect
  146 TLW_RX_PIPE0 fatal 0x00000143 0x00000004 fatal reset
  146 TLW_RX_PIPE0 nonfatal 0x00000143 0x80000000 degraded inspect
  146 TLW_RX_PIPE1 nonfatal 0x00000143 0x00000001 info none
  146 TLW_RX_PIPE1 nonfatal 0x00000143 0x00000002 degraded inspect
  146 TLW_RX_PIPE1 fatal 0x00000143 0x00000004 fatal reset
  146 TLW_RX_PIPE1 nonfatal 0x00000143 0x80000000 degraded inspect
  146 TLW_TX_PIPE0 nonfatal 0x00000163 0x00000001 info none
  146 TLW_TX_PIPE0 nonfatal 0x00000163 0x00000002 degraded inspect
  146 TLW_TX_PIPE0 fatal 0x00000163 0x00000004 fatal reset
  146 TLW_TX_PIPE0 nonfatal 0x00000163 0x80000000 degraded inspect
  146 TLW_TX_PIPE1 nonfatal 0x00000163 0x00000001 info none
  146 TLW_TX_PIPE1 nonfatal 0x00000163 0x00000002 degraded inspect
  146 TLW_TX_PIPE1 fatal 0x00000163 0x00000004 fatal reset
  146 TLW_TX_PIPE1 nonfatal 0x00000163 0x80000000 degraded inspect
  147 TREX nonfatal 0x00000184 0x00000001 degraded inspect
  147 TREX nonfatal 0x00000184 0x80000000 degraded inspect
  148 NVLPW_CTRL nonfatal 0x00000005 0x80000000 degraded inspect
  149 NETIR link-fatal 0x00000006 0x00000000 fatal reset
  149 NETIR_BER_EVENT nonfatal 0x00000226 0x00000000 degraded check-cable
  149 NETIR_BER_EVENT nonfatal 0x00000226 0x00000001 degraded check-cable
  149 NETIR_BER_EVENT nonfatal 0x00000226 0x00000002 degraded check-cable
  149 NETIR_BER_EVENT nonfatal 0x00000226 0x00000003 degraded check-cable
  149 NETIR_LINK_EVT link-fatal 0x000001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x001001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x002001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x004001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x00a001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x00f001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x010001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x011001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x012001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x015001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x016001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x020001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x021001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x022001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x023001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x024001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x025001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x026001c6 0x00000000 degraded inspect
  149 NETIR_LINK_EVT fatal 0x028001c6 0x00000000 degraded inspect
  149 NETIR_LINK_EVT link-fatal 0x02a001c6 0x00000000 fatal reset
  149 NETIR_LINK_EVT link-fatal 0x02b001c6 0x00000000 fatal reset
  149 NETIR_MFDE_EVENT fatal 0x00000246 0x00000001 fatal reset
  149 NETIR_MFDE_EVENT nonfatal 0x00000246 0x00000003 info none
  149 NETIR_MFDE_EVENT fatal 0x00000246 0x00000004 fatal reset
  149 NETIR_MFDE_EVENT fatal 0x00000246 0x00000005 fatal reset
  149 NETIR_MFDE_EVENT fatal 0x00000246 0x00000007 fatal reset
  150 MSE_WATCHDOG fatal 0x00000000 0x00000000 fatal reset
`;

interface Row {
  readonly name: string;
  readonly text: string;
  readonly judged: string;
}

const ROWS = CATALOGUE.trim()
  .split('\n')
  .map((line): Row => {
    const [xid, unit, severity = '', word, status, ...judged] = line.trim().split(' ');
    const words = severity === 'link-fatal' ? 'Link Fatal' : severity === 'fatal' ? 'Fatal' : 'Nonfatal';
    return {
      name: line.trim(),
      text: `${xid}, ${unit} ${words} XC0 i0 Link 04 (${word} ${status} 0x00000000 0x00000000)`,
      judged: judged.join(' '),
    };
  });
const address = (gpu: number): string => `0000:${(gpu * 16).toString(16).padStart(2, '0')}:00`;
const parsed = (text: string, gpu = 1) => {
  const line = parseNvidiaLine({ origin: 'kernel', text: `NVRM: Xid (PCI:${address(gpu)}): ${text}` });
  if (line?.kind !== 'xid') throw new Error(`no Xid: ${text}`);
  return line;
};
const judgedAs = (text: string): string => {
  const { severity, remedy } = judgeXid(parsed(text));
  return `${severity} ${remedy}`;
};

describe('an NVLink error', () => {
  it('has 91 rows in the catalogue', () => {
    expect(ROWS).toHaveLength(91);
  });

  it.each(ROWS)('is judged by its unit and registers: $name', ({ text, judged }) => {
    expect(judgedAs(text)).toBe(judged);
  });

  it.each(ROWS.filter(({ judged }) => judged.startsWith('fatal')))('is what its line says against the catalogue: $name', ({ text }) => {
    expect(judgedAs(text.replace(/Link Fatal|Fatal/, 'Nonfatal'))).toBe('degraded inspect');
  });

  it('that its line calls fatal is fatal, whatever the catalogue says', () => {
    expect(judgedAs('145, RLW_RXPIPE Fatal XC0 i0 Link 11 (0x000000c2 0x00000008)')).toBe('fatal reset');
    expect(judgedAs('145, RLW_REMAP Fatal XC0 i0 Link 11 (0x00000082 0x00000001)')).toBe('fatal reset');
  });

  it('with several bits is the worst of them, and one of an unknown unit or bit is what its line says', () => {
    expect(judgedAs('145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000082 0x00000141)')).toBe('fatal reset');
    expect(judgedAs('145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000082 0x00000101)')).toBe('degraded restart-workload');
    expect(judgedAs('145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000082 0x00001000)')).toBe('degraded inspect');
    expect(judgedAs('145, RLW_NEW Fatal XC0 i0 Link 00 (0x00000082 0x00001000)')).toBe('fatal reset');
  });
});

/** Lines on some of eight GPUs, and the GPUs whose errors have another one as their source. Of two sources the first in time counts. */
interface History {
  readonly name: string;
  readonly lines: readonly (readonly [gpu: number, text: string])[];
  readonly sources: Readonly<Record<number, number>>;
  /** In the other order, when that differs. */
  readonly reversed?: Readonly<Record<number, number>>;
}

const link = (text: string) => `${text} 0x00000000)`;
const REMAP = link('145, RLW_REMAP Fatal XC0 i0 Link 01 (0x00000082 0x00000040');
const RSPCOL = link('145, RLW_RSPCOL Fatal XC0 i0 Link 01 (0x000000a2 0x00000002');
const TRACK = link('145, RLW_SRC_TRACK Fatal XC0 i0 Link 01 (0x000000e2 0x00000010');
const TAG = link('145, RLW_TAGSTATE Fatal XC0 i0 Link 01 (0x00000102 0x00100000');
const RXPIPE = link('145, RLW_RXPIPE Nonfatal XC0 i0 Link 01 (0x000000c2 0x00000008');
const TIMED_OUT = link('145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 01 (0x000000e2 0x00000004');
const DOWN = link('149, NETIR_LINK_EVT Link Fatal XC0 i0 Link 01 (0x004001c6 0x00000000');
const SOLO = link('149, NETIR_INT Link Fatal XC0 i0 Link 01 (0x00000006 0x00000000');
const PEER = link('149, NETIR_LINK_EVT Link Fatal XC0 i0 Link 01 (0x020001c6 0x00000000');
const TLW = link('146, TLW_CTRL Fatal XC0 i0 Link 01 (0x00000123 0x00000004');

const HISTORIES: readonly History[] = [
  {
    name: 'a fault of the GPU itself beside the link of another',
    lines: [
      [1, DOWN],
      [2, REMAP],
      [3, RXPIPE],
    ],
    sources: { 3: 1 },
    reversed: { 3: 2 },
  },
  {
    name: 'two GPUs with faults of their own',
    lines: [
      [1, RSPCOL],
      [2, TRACK],
      [5, TIMED_OUT],
    ],
    sources: { 5: 1 },
    reversed: { 5: 2 },
  },
  {
    name: 'a fault of its own and seven other ends',
    lines: [[4, TAG], ...[1, 2, 3, 5, 6, 7, 8].map((gpu) => [gpu, RXPIPE] as const)],
    sources: { 1: 4, 2: 4, 3: 4, 5: 4, 6: 4, 7: 4, 8: 4 },
  },
  {
    name: 'a link whose other end is the source',
    lines: [
      [1, DOWN],
      [2, PEER],
    ],
    sources: { 2: 1 },
  },
  {
    name: 'other ends alone, whose source is on another node',
    lines: [
      [1, PEER],
      [2, PEER],
    ],
    sources: {},
  },
  {
    name: 'a report that follows a fault',
    lines: [
      [6, TLW],
      [7, SOLO],
    ],
    sources: { 7: 6 },
  },
  {
    name: 'a report alone, and the transfers that it ends',
    lines: [
      [7, SOLO],
      [8, TIMED_OUT],
    ],
    sources: { 8: 7 },
  },
  {
    name: 'reports on both ends of a link',
    lines: [
      [1, SOLO],
      [2, SOLO],
    ],
    sources: {},
  },
  {
    name: 'a fault of its own and a transfer that failed on one GPU',
    lines: [
      [1, REMAP],
      [1, RXPIPE],
      [2, TIMED_OUT],
    ],
    sources: { 2: 1 },
  },
  {
    name: 'transfers that fail without a source',
    lines: [
      [1, TIMED_OUT],
      [2, RXPIPE],
      [3, TIMED_OUT],
    ],
    sources: {},
  },
];

describe('NVLink errors on eight GPUs', () => {
  const remembered = (lines: History['lines']): XidMemory =>
    lines.reduce((memory, [gpu, text], at) => {
      const timeMs = 1_000 * (at + 1);
      return rememberLine(memory, parsed(text, gpu), { seq: at, timeUsec: timeMs * 1_000, timeMs, text });
    }, EMPTY_MEMORY);

  it.each(
    HISTORIES.flatMap((one) => [
      one,
      { ...one, name: `${one.name}, in the other order`, lines: [...one.lines].reverse(), sources: one.reversed ?? one.sources },
    ]),
  )('have their source: $name', ({ lines, sources }) => {
    const { gpus } = remembered(lines);
    const found = [...gpus].flatMap(([key, { tallies }]) =>
      tallies.flatMap(({ causedBy }) => (causedBy === undefined ? [] : [[key, causedBy]])),
    );
    const expected = Object.entries(sources).map(([gpu, source]) => [gpuKey(address(Number(gpu))), gpuKey(address(source))]);
    expect(found.sort()).toEqual(expected.sort());
  });
});
