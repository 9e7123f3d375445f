import { describe, expect, it } from 'vitest';
import { parseStatsText } from '../../../src/probes/netdev/counters.ts';
import { parseIpText } from '../../../src/probes/netdev/link-source.ts';
import { seeded } from '../../support/seeded.ts';
import { machineOf } from './harness.ts';

const textOf = (name: string): string => machineOf(name).files?.['bin/ip'] ?? '';

describe('the text of ip', () => {
  it('holds several links, and the functions of one', () => {
    const links = parseIpText(textOf('flooded-functions-that-drop'));
    expect(links.map(({ name, index, functions }) => [name, index, functions.length])).toEqual([
      ['lo', 1, 0],
      ['ens1f0', 3, 0],
      ['ens1f1', 7, 4],
      ['ens1f1v64', 91, 0],
    ]);
  });

  it('names the columns, whose order may be another one', () => {
    const text = `7: p0@if2: <UP> mtu 1500
    link/ether b4:96:91:e5:c8:a9 brd ff:ff:ff:ff:ff:ff
    vf 12    link/ether 00:00:00:00:00:00 brd ff:ff:ff:ff:ff:ff, spoof checking on, link-state auto, trust off
    RX: dropped  new  packets  bytes
    1            2    3        4
    TX: packets  bytes
    5            6`;
    expect(parseIpText(text)).toEqual([
      {
        name: 'p0',
        index: 7,
        hardwareAddress: 'b4:96:91:e5:c8:a9',
        functions: [
          {
            number: 12,
            settings: { spoofCheck: 1, trust: 0, linkState: 0 },
            counters: { rx_dropped: 1n, rx_packets: 3n, rx_bytes: 4n, tx_packets: 5n, tx_bytes: 6n },
          },
        ],
      },
    ]);
  });

  it.each(['', 'Device "x" does not exist.', '{"ifname":"x"}', '7: : <', '\0'])('of %j has no link', (text) => {
    expect(parseIpText(text)).toEqual([]);
  });
});

describe('the file of a driver', () => {
  it('gives each counter that it names, and nothing else', () => {
    const text = 'tx_packets    : 5011\nrx_bytes:7\nrx_dropped : 2 \nconstructor : 1\ntx_bytes : 1e3\nrx_packets : 18446744073709551616\n';
    expect(parseStatsText(text)).toEqual({ tx_packets: 5_011n, rx_bytes: 7n, rx_dropped: 2n });
  });
});

describe('10,000 random mutations of each text', () => {
  const ALPHABET = ' \n\t0123456789abcdefRXTXvf:,-@<>/\0\u00e9';
  const numbersIn = (text: string): ReadonlySet<string> => new Set(text.match(/\d+/g)?.map((digits) => digits.replace(/^0+(?=\d)/, '')));
  const mutate = (text: string, choose: (below: number) => number): string => {
    const characters = [...text];
    for (let n = choose(10); n >= 0; n -= 1) {
      const at = choose(characters.length);
      const what = choose(3);
      if (what === 0) characters[at] = ALPHABET[choose(ALPHABET.length)] as string;
      else if (what === 1) characters.splice(at, choose(30));
      else characters.splice(at, 0, ...characters.slice(choose(characters.length)).slice(0, choose(40)));
    }
    return characters.join('');
  };

  it('of ip never throw, and give no value that the text does not hold', () => {
    const choose = seeded(7);
    const whole = textOf('settings-of-every-kind');
    let counted = 0;
    const invented: string[] = [];
    for (let count = 0; count < 10_000; count += 1) {
      const text = mutate(whole, choose);
      const numbers = numbersIn(text);
      for (const { name, functions } of parseIpText(text)) {
        if (!text.includes(name)) invented.push(name);
        for (const { number, settings, counters = {} } of functions) {
          const { vlan = number, limit = number } = settings;
          const values = [number, vlan, limit, ...Object.values(counters)];
          for (const value of values) if (!numbers.has(String(value))) invented.push(`${count}: ${value}`);
          counted += Object.keys(counters).length;
        }
      }
    }
    expect(invented).toEqual([]);
    expect(counted).toBeGreaterThan(10_000);
  });

  it('of a file of a driver never throw, and give no value that the text does not hold', () => {
    const choose = seeded(8);
    const whole = 'tx_packets    : 5011\ntx_bytes      : 4450870\nrx_packets    : 5003\nrx_bytes      : 4450222\nrx_multicast  : 3\n';
    let counted = 0;
    const invented: string[] = [];
    for (let count = 0; count < 10_000; count += 1) {
      const text = mutate(whole, choose);
      const numbers = numbersIn(text);
      for (const value of Object.values(parseStatsText(text))) {
        if (!numbers.has(String(value))) invented.push(`${count}: ${value}`);
        counted += 1;
      }
    }
    expect(invented).toEqual([]);
    expect(counted).toBeGreaterThan(10_000);
  });
});
