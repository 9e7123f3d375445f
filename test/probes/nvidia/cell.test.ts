import { describe, expect, it } from 'vitest';
import { asBoolean, numberValue, parseCell } from '../../../src/probes/nvidia/smi/document.ts';
import type { Quantity } from '../../../src/probes/nvidia/values.ts';

describe('a cell with a number', () => {
  it.each<[string, number, Quantity]>([
    ['81559 MiB', 85_520_809_984, 'bytes'],
    ['16 KiB', 16_384, 'bytes'],
    ['2 GiB', 2_147_483_648, 'bytes'],
    ['142.33 W', 142.33, 'watts'],
    ['+21.50 W', 21.5, 'watts'],
    ['61500 mW', 61.5, 'watts'],
    ['-8 C', -8, 'celsius'],
    ['2619 MHz', 2_619_000_000, 'hertz'],
    ['29 %', 0.29, 'ratio'],
    ['57 %', 0.57, 'ratio'],
    ['100.00%', 1, 'ratio'],
    ['105 %', 1.05, 'ratio'],
    ['550 KB/s', 550_000, 'bytes_per_second'],
    ['123456 us', 0.123456, 'seconds'],
    ['12 seconds', 12, 'seconds'],
    ['912.500 mV', 0.9125, 'volts'],
    ['16x', 16, 'lanes'],
    ['2560 bank(s)', 2_560, 'count'],
    ['3 group(s)', 3, 'count'],
    ['0', 0, 'count'],
    ['\n\t\t 7 \n', 7, 'count'],
    ['[42 C]', 42, 'celsius'],
  ])('%j is %d %s', (text, value, quantity) => {
    expect(numberValue(parseCell(text), quantity)).toBe(value);
  });

  it('keeps every digit of a count that a double cannot hold', () => {
    expect(numberValue(parseCell('9007199254740993'), 'count')).toBe(9_007_199_254_740_993n);
    expect(numberValue(parseCell('18446744073709551615'), 'count')).toBe(18_446_744_073_709_551_615n);
  });

  it.each<[string, Quantity]>([
    ['45 GHz', 'hertz'],
    ['37 F', 'celsius'],
    ['0x20', 'count'],
    ['1e3 %', 'ratio'],
    ['5 constructor', 'count'],
    ['5 toString', 'count'],
    ['1,024 MiB', 'bytes'],
    ['12 MiB of 15', 'bytes'],
    ['Infinity', 'count'],
    ['NaN', 'count'],
    [`${'9'.repeat(40)}`, 'count'],
  ])('%j is no number', (text, quantity) => {
    expect(parseCell(text).kind).toBe('text');
    expect(numberValue(parseCell(text), quantity)).toBeUndefined();
  });

  it.each<[string, Quantity]>([
    ['51 MiB', 'celsius'],
    ['51', 'bytes'],
    ['-1 %', 'ratio'],
    ['-5 mV', 'volts'],
    ['-3', 'count'],
  ])('%j is no value in %s', (text, quantity) => {
    expect(numberValue(parseCell(text), quantity)).toBeUndefined();
  });
});

describe('a cell without a value', () => {
  const spellings = [
    'N/A',
    '[N/A]',
    'n/a',
    'Not Supported',
    '[Not Supported]',
    'Not Available',
    'Requested functionality has been deprecated',
    '[Requested functionality has been deprecated]',
    'Insufficient Permissions',
    '[Insufficient Permissions]',
    'Function Not Found',
    '[Function Not Found]',
    '[REDACTED]',
    'REDACTED',
    '-',
    '',
    ' \n ',
    '[]',
  ];
  it.each(spellings)('%j is absent', (text) => {
    expect(parseCell(text)).toEqual({ kind: 'absent' });
  });

  it('is absent when there is no element', () => {
    expect(parseCell(undefined)).toEqual({ kind: 'absent' });
  });

  it.each(['GPU is lost', '[GPU is lost]', 'gpu is lost'])('%j says that the GPU is lost', (text) => {
    expect(parseCell(text)).toEqual({ kind: 'lost' });
  });

  it.each(['GPU requires reset', '[GPU requires reset]'])('%j says that the GPU needs a reset', (text) => {
    expect(parseCell(text)).toEqual({ kind: 'reset-required' });
  });

  it.each(['Unknown Error', '[Unknown Error]', 'ERR!', '[ERR!]'])('%j is an error of the driver', (text) => {
    expect(parseCell(text).kind).toBe('error');
  });

  it('is no number and no flag in any of these cases', () => {
    for (const text of [...spellings, 'GPU is lost', 'Unknown Error', 'None']) {
      expect(numberValue(parseCell(text), 'count')).toBeUndefined();
      expect(asBoolean(parseCell(text))).toBeUndefined();
    }
  });
});

describe('a cell with a flag', () => {
  it.each<[string, boolean | undefined]>([
    ['Yes', true],
    ['No', false],
    ['Enabled', true],
    ['Disabled', false],
    ['disabled', false],
    ['Active', true],
    ['Not Active', false],
    ['True', true],
    ['False', false],
    ['Supported', undefined],
    ['Perhaps', undefined],
    ['constructor', undefined],
    ['1', true],
    ['0', false],
    ['-1', undefined],
    ['2', undefined],
  ])('%j is %s', (text, value) => {
    expect(asBoolean(parseCell(text))).toBe(value);
  });
});
