import { describe, expect, it } from 'vitest';
import {
  parseCount,
  parseGuid,
  parseLid,
  parseNodeType,
  parsePhysicalState,
  parsePortState,
  parseRate,
  scaleCount,
} from '../../../src/probes/infiniband/counters.ts';

describe('a counter file', () => {
  it.each([
    ['0\n', 0],
    ['741\n', 741],
    ['  17 \n\n', 17],
    ['999999999999999', 999999999999999],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['9007199254740992', 9007199254740992n],
    ['18446744073709551614\n', 18446744073709551614n],
    ['18446744073709551615\n', 'all-ones'],
    ['18446744073709551616', 'too-large'],
    ['99999999999999999999999999', 'too-large'],
    ['', 'empty'],
    [' \n', 'empty'],
    ['N/A (no PMA)\n', 'not-available'],
    ['N/A (not available)', 'not-available'],
    ['010', 'not-decimal'],
    ['00', 'not-decimal'],
    ['0x10', 'not-decimal'],
    ['-1', 'not-decimal'],
    ['+1', 'not-decimal'],
    ['1.5', 'not-decimal'],
    ['1e3', 'not-decimal'],
    ['1 2', 'not-decimal'],
    ['１２', 'not-decimal'],
  ])('with %j gives %s', (text, count) => {
    expect(parseCount(text)).toBe(count);
  });

  it.each([
    [1, 4, 4],
    [230539874932483, 4, 922159499729932],
    [2251799813685247, 4, 9007199254740988],
    [2251799813685248, 4, 9007199254740992n],
    [18446744073709551615n, 4, 73786976294838206460n],
    [9007199254740993n, 1, 9007199254740993n],
  ])('value %s times %s keeps every digit', (count, scale, product) => {
    expect(scaleCount(count, scale)).toBe(product);
  });
});

describe('a port state', () => {
  it.each([
    ['0: NOP', 'nop'],
    ['1: DOWN\n', 'down'],
    ['2: INIT', 'init'],
    ['3: ARMED', 'armed'],
    ['4: ACTIVE\n', 'active'],
    ['5: ACTIVE_DEFER', 'active_defer'],
    ['9: UNKNOWN', undefined],
    ['4: DOWN', undefined],
    ['4', undefined],
    ['', undefined],
    ['constructor', undefined],
  ])('%j is %j', (text, state) => {
    expect(parsePortState(text)).toBe(state);
  });

  it.each([
    ['1: Sleep', 'sleep'],
    ['2: Polling', 'polling'],
    ['3: Disabled', 'disabled'],
    ['4: PortConfigurationTraining', 'training'],
    ['5: LinkUp\n', 'link_up'],
    ['6: LinkErrorRecovery', 'link_error_recovery'],
    ['7: Phy Test', 'phy_test'],
    ['4: ACTIVE', undefined],
    ['0: <unknown>', undefined],
    ['', undefined],
  ])('%j is the physical state %j', (text, state) => {
    expect(parsePhysicalState(text)).toBe(state);
  });
});

describe('a rate', () => {
  it.each([
    ['400 Gb/sec (4X NDR)\n', { gigabits: 400, lanes: 4, speed: 'NDR' }],
    ['2.5 Gb/sec (1X SDR)', { gigabits: 2.5, lanes: 1, speed: 'SDR' }],
    ['10 Gb/sec (4X)', { gigabits: 10, lanes: 4 }],
    ['300 Gb/sec (12X EDR)', { gigabits: 300, lanes: 12, speed: 'EDR' }],
    ['40 Gb/sec (4X FDR10)', { gigabits: 40, lanes: 4, speed: 'FDR10' }],
    ['100 Gb/sec', { gigabits: 100 }],
    ['0 GB/sec', undefined],
    ['0 Gb/sec (4X)', undefined],
    ['1.2.3 Gb/sec (4X)', undefined],
    ['Gb/sec (4X NDR)', undefined],
    ['400 Gb/sec (4X NDR) more', undefined],
    ['', undefined],
  ])('%j', (text, rate) => {
    expect(parseRate(text)).toEqual(rate);
  });
});

describe('identity files', () => {
  it.each([
    ['0x2a\n', 42],
    ['0x0', 0],
    ['0xFFFF', 65535],
    ['42', undefined],
    ['', undefined],
  ])('LID %j', (text, lid) => {
    expect(parseLid(text)).toBe(lid);
  });

  it.each([
    ['a088:c203:00aa:b000\n', 'a088:c203:00aa:b000'],
    ['0A7F:BC12:45EF:D23B', '0a7f:bc12:45ef:d23b'],
    ['0000:0000:0000:0000\n', undefined],
    ['a088c20300aab000', undefined],
    ['', undefined],
  ])('GUID %j', (text, guid) => {
    expect(parseGuid(text)).toBe(guid);
  });

  it.each([
    ['1: CA\n', 'CA'],
    ['4: RNIC', 'RNIC'],
    ['7: unspecified', 'unspecified'],
    ['CA', undefined],
    ['', undefined],
  ])('node type %j', (text, type) => {
    expect(parseNodeType(text)).toBe(type);
  });
});
