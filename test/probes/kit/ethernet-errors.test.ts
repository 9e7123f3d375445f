import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Tree } from '../../../src/host/fs/tree.ts';
import { readPort, readPorts, requestsFor } from '../../../src/probes/kit/ethernet-errors.ts';
import { type Answer, answerIn, attributes, NetlinkSocket } from '../../../src/probes/kit/netlink.ts';
import { attribute, message, wide, words } from '../netdev/link-bytes.ts';

/** Attributes as Linux net/ethtool/fec.c and stats.c put them: first what names the interface, then the rest. */
const NESTED = 0x8000;
const generic = (command: number, ...parts: readonly Buffer[]): Buffer => Buffer.concat([Buffer.from([command, 1, 0, 0]), ...parts]);
const header = attribute(1 | NESTED, Buffer.concat([attribute(1, words(7)), attribute(2, Buffer.from('ens1f0\0'))]));
const counts = (type: number, ...values: readonly bigint[]): Buffer => attribute(type, Buffer.concat(values.map(wide)));
const fecAnswer = (...stats: readonly Buffer[]): Buffer =>
  generic(30, header, attribute(3, Buffer.from([1])), attribute(4, words(50)), attribute(5 | NESTED, Buffer.concat(stats)));
const statsAnswer = (...stats: readonly Buffer[]): Buffer =>
  generic(33, header, attribute(4 | NESTED, Buffer.concat([attribute(2, words(0)), attribute(3, words(17)), ...stats])));
const stat = (type: number, value: bigint): Buffer => attribute(4 | NESTED, attribute(type, wide(value)));

/** What a port tells when the kernel answers so; undefined: it answers EOPNOTSUPP. */
function told(fec: Buffer | undefined, stats: Buffer | undefined) {
  const port = { port: '1', index: 7, name: 'ens1f0' };
  const requests = requestsFor(port);
  const answers = new Map([
    [requests.fec.toString('hex'), fec],
    [requests.stats.toString('hex'), stats],
  ]);
  const ask = (request: Buffer): Answer => {
    const body = answers.get(request.toString('hex'));
    return answerIn(body === undefined ? message(2, 9, words(-95, 0, 0, 0, 0)) : message(21, 9, body), 9);
  };
  const { readings, findings } = readPort(port, ask);
  return [readings.map(({ metric, labels, value }) => `${metric} ${Object.values(labels ?? {}).join(' ')} ${value}`), findings];
}

const lost = (count: number) => [
  { type: 'BlocksLost', reason: 'CounterGrows', instance: '1', count, message: `blocks of ens1f0 that could not be corrected: ${count}` },
];

describe('a port whose driver counts', () => {
  it('by lane tells each lane, and is judged by the sum', () => {
    const fec = fecAnswer(counts(2, 60n, 10n, 20n, 0n, 30n), counts(3, 5n, 5n, 0n, 0n, 0n));
    expect(told(fec, statsAnswer(stat(0, 3n)))).toEqual([
      [
        ...[10, 20, 0, 30].map((count, lane) => `device_fec_blocks_total 1 ${lane} corrected ${count}`),
        ...[5, 0, 0, 0].map((count, lane) => `device_fec_blocks_total 1 ${lane} uncorrectable ${count}`),
        'device_symbol_errors_total 1 3',
      ],
      lost(5),
    ]);
  });

  it('the whole port tells one series, also of a number that needs 64 bits', () => {
    const fec = fecAnswer(counts(2, 2n ** 60n), counts(3, 0n), counts(4, 9n));
    expect(told(fec, undefined)).toEqual([
      ['device_fec_blocks_total 1 all corrected 1152921504606846976', 'device_fec_blocks_total 1 all uncorrectable 0'],
      lost(0),
    ]);
  });

  it('only what it corrects is not judged', () => {
    expect(told(fecAnswer(counts(2, 4n), counts(3)), undefined)).toEqual([['device_fec_blocks_total 1 all corrected 4'], []]);
  });
});

describe('a port tells nothing', () => {
  it.each([
    ['whose driver knows neither', undefined, undefined],
    ['whose driver has no statistics', generic(30, header, attribute(3, Buffer.from([1]))), statsAnswer()],
    ['of an answer that is cut', fecAnswer(counts(2, 4n), counts(3, 4n)).subarray(0, 44), statsAnswer(stat(0, 3n)).subarray(0, 40)],
    ['of an empty answer', Buffer.alloc(0), Buffer.alloc(0)],
  ])('%s', (_, fec, stats) => {
    expect(told(fec, stats)).toEqual([[], []]);
  });
});

/* The kernel of this machine answers; its drivers have no FEC. */
describe('the kernel of this machine', () => {
  const [FEC_GET, STATS_GET] = [29, 32];
  let socket: NetlinkSocket;
  let family: Map<number, Buffer>;
  beforeAll(() => {
    const opened = NetlinkSocket.open(16);
    if (!(opened instanceof NetlinkSocket)) throw new Error(opened.message);
    socket = opened;
    const { body = Buffer.alloc(4) } = ask(16, generic(3, attribute(2, Buffer.from('ethtool\0'))));
    family = new Map([...attributes(Buffer.from(body.subarray(4)))].map(({ type, value }) => [type, value]));
  });
  afterAll(() => {
    socket.close();
  });
  const ask = (type: number, body: Buffer): Answer => socket.ask(type, body);
  const indexOf = (name: string): number => Number(readFileSync(`/sys/class/net/${name}/ifindex`, 'utf8'));

  it('asks no capability for either request', () => {
    /** GENL_ADMIN_PERM and GENL_UNS_ADMIN_PERM. */
    const needs = 0x01 | 0x10;
    const flags = new Map(
      [...attributes(family.get(6) ?? Buffer.alloc(0))].map(({ value }) => {
        const of = new Map([...attributes(value)].map((one) => [one.type, one.value.readUInt32LE(0)]));
        return [of.get(1), (of.get(2) ?? needs) & needs];
      }),
    );
    expect([flags.get(FEC_GET), flags.get(STATS_GET)]).toEqual([0, 0]);
    // Another request of the family needs one: the flags are those of capabilities.
    expect(flags.get(FEC_GET + 1)).not.toBe(0);
  });

  it('understands both requests, and compares the name of an interface', () => {
    const type = family.get(1)?.readUInt16LE(0) ?? 0;
    for (const name of readdirSync('/sys/class/net').filter((each) => each === 'lo' || each.startsWith('e'))) {
      const port = { port: '1', index: indexOf(name), name };
      expect(ask(type, requestsFor(port).stats).error, name).toBeUndefined();
      expect([undefined, 95], name).toContain(ask(type, requestsFor(port).fec).error);
      const other = requestsFor({ ...port, name: 'other' });
      expect([ask(type, other.fec).error, ask(type, other.stats).error], name).toEqual([19, 19]);
    }
  });

  it('is asked about the interfaces of a function, and tells nothing of one that it does not have', () => {
    const root = mkdtempSync(join(tmpdir(), 'ethernet-errors-'));
    const function_ = 'bus/pci/devices/0000:3b:00.0';
    for (const [name, index] of [
      ['lo', indexOf('lo')],
      ['ens99f9', 7],
      ['without', 'x'],
    ] as const) {
      mkdirSync(join(root, function_, 'net', name), { recursive: true });
      writeFileSync(join(root, function_, 'net', name, 'ifindex'), `${index}\n`);
    }
    expect(readPorts(new Tree(root), function_)).toEqual([
      { readings: [], findings: [] },
      { readings: [], findings: [] },
    ]);
    expect(readPorts(new Tree(root), 'bus/pci/devices/0000:3c:00.0')).toEqual([]);
    rmSync(root, { recursive: true });
  });
});
