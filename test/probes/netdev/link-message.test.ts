import { describe, expect, it } from 'vitest';
import { answerIn } from '../../../src/probes/kit/netlink.ts';
import { linkIn, linkRequest } from '../../../src/probes/netdev/link-message.ts';
import { seeded } from '../../support/seeded.ts';
import { attribute, functionBytes, message, newLink, wide, words } from './link-bytes.ts';

const STATS = {
  rx_bytes: 14_069_717n,
  rx_packets: 192_865n,
  rx_broadcast: 192_865n,
  rx_multicast: 0n,
  rx_dropped: 192_865n,
  tx_bytes: 2n ** 64n - 2n,
  tx_packets: 3n,
  tx_dropped: 4n,
};
const MAC = [0xb4, 0x96, 0x91, 0xe5, 0xc8, 0xa9];
const PF = { name: 'ens1f1', index: 7, mac: MAC, parent: '0000:3b:00.1' };

const parseLinkAnswer = (bytes: Buffer, sequence: number) => linkIn(answerIn(bytes, sequence));

describe('the answer of the kernel', () => {
  it('holds the interface, and the counters and settings of each virtual function', () => {
    const settings = { spoof: 1, trust: 0, state: 2, vlan: 100, limit: 500 };
    const bytes = newLink(9, { ...PF, functions: [functionBytes(0, STATS, settings), functionBytes(63, { rx_bytes: 1n })] });
    expect(parseLinkAnswer(bytes, 9).link).toEqual({
      name: 'ens1f1',
      index: 7,
      hardwareAddress: 'b4:96:91:e5:c8:a9',
      parentDevice: '0000:3b:00.1',
      functions: [
        { number: 0, settings: { spoofCheck: 1, trust: 0, linkState: 2, vlan: 100, limit: 500 }, counters: STATS },
        { number: 63, settings: { linkState: 0, vlan: 0, limit: 0 }, counters: { rx_bytes: 1n } },
      ],
    });
  });

  it('is found behind the answer to an earlier request', () => {
    const bytes = Buffer.concat([newLink(8, { name: 'old', index: 1 }), newLink(9, PF)]);
    expect(parseLinkAnswer(bytes, 9).link?.name).toBe('ens1f1');
  });

  it.each([
    ['an error', message(2, 9, words(-19, 0, 0, 0, 0)), 19],
    ['no answer to this request', newLink(8, PF), 'none'],
    ['the end of a list', message(3, 9, words(0)), 'none'],
    ['nothing', Buffer.alloc(0), 'none'],
    ['a cut message', newLink(9, PF).subarray(0, 40), 'none'],
    ['a message without a name', message(16, 9, Buffer.alloc(16)), 'none'],
  ])('can be %s', (_, bytes, error) => {
    expect(parseLinkAnswer(bytes, 9)).toEqual({ error });
  });

  it('has no function whose attributes name two numbers', () => {
    const mixed = Buffer.concat([functionBytes(0, STATS), attribute(4, words(1, 1))]);
    expect(parseLinkAnswer(newLink(9, { ...PF, functions: [mixed, functionBytes(2, {})] }), 9).link?.functions).toEqual([
      { number: 2, settings: { linkState: 0, vlan: 0, limit: 0 } },
    ]);
  });

  it('ignores counters of another width and settings outside their range', () => {
    const odd = Buffer.concat([functionBytes(0, {}, { spoof: 2, state: 7, vlan: 5_000 }), attribute(8, attribute(2, words(5)))]);
    expect(parseLinkAnswer(newLink(9, { ...PF, functions: [odd] }), 9).link?.functions).toEqual([{ number: 0, settings: { limit: 0 } }]);
  });
});

it('the request asks for one link with its virtual functions', () => {
  expect(linkRequest(7).toString('hex')).toBe('00000000070000000000000000000000' + '08001d0001000000');
});

describe('10,000 random mutations of an answer', () => {
  const whole = newLink(9, { ...PF, functions: [0, 1, 2, 3].map((number) => functionBytes(number, STATS, { spoof: 1, limit: 7 })) });

  it('never throw, and give no value that the bytes do not hold', () => {
    const choose = seeded(22);
    let answered = 0;
    const invented: string[] = [];
    for (let count = 0; count < 10_000; count += 1) {
      const bytes = Buffer.from(whole);
      for (let n = choose(8); n >= 0; n -= 1) bytes[choose(bytes.length)] = [0, 0xff, choose(256)][choose(3)] as number;
      const cut = choose(10) === 0 ? bytes.subarray(0, choose(bytes.length)) : bytes;
      const { link } = parseLinkAnswer(cut, 9);
      if (link === undefined) continue;
      answered += 1;
      const values: Buffer[] = [Buffer.from(link.name)];
      for (const { number, settings, counters = {} } of link.functions)
        values.push(words(number), words(settings.vlan ?? 0), words(settings.limit ?? 0), ...Object.values(counters).map(wide));
      for (const value of values) if (!cut.includes(value)) invented.push(`${count}: ${value.toString('hex')}`);
    }
    expect(invented).toEqual([]);
    expect(answered).toBeGreaterThan(3_000);
  });
});
