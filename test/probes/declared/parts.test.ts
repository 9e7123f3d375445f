import { describe, expect, it } from 'vitest';
import { Tree } from '../../../src/host/fs/tree.ts';
import { Resolver } from '../../../src/join/resolve.ts';
import type { Device } from '../../../src/model/device.ts';
import { ownsNumbers, resolver } from '../../../src/probes/declared/family.ts';
import { capturesOf, findMatches, isAllowed } from '../../../src/probes/declared/glob.ts';
import { rowsOf, rowWith } from '../../../src/probes/declared/rows.ts';
import { numberOf, textsOf } from '../../../src/probes/declared/texts.ts';
import { fill, fillPath } from '../../../src/probes/kit/template.ts';
import { buildMachine } from '../../support/machine.ts';
import { allocation } from '../../support/snapshots.ts';

describe('a value', () => {
  it('is the declared part of a text', () => {
    const take = (text: string, rules: object): unknown => textsOf(text, rules).map(({ parsed }) => parsed.text ?? parsed.state);
    expect(take(' 37\n', {})).toEqual(['37']);
    expect(take('Temp: 45 C\nPower: 12 W\n', { line: 'Power:', field: 1 })).toEqual(['12']);
    expect(take('1,2,3', { field: 3, separator: ',' })).toEqual(['3']);
    expect(take('1,2', { field: 3, separator: ',' })).toEqual(['absent']);
    expect(take('672 MiB', { unit: 'MiB' })).toEqual(['672']);
    expect(take('672 GiB', { unit: 'MiB' })).toEqual(['invalid']);
    expect(take('N/A', { unit: 'MiB', absent: ['N/A'] })).toEqual(['absent']);
    expect(take('', {})).toEqual(['absent']);
    expect(take('constructor', { map: { ok: 1 } })).toEqual(['invalid']);
    expect(textsOf('RxErr 3\nBad TLP 4\nTOTAL 7\nnothing\n', { each: 'line', without: ['TOTAL'] })).toEqual([
      { key: 'RxErr', parsed: { text: '3' } },
      { key: 'Bad TLP', parsed: { text: '4' } },
    ]);
  });

  it('becomes a number without loss, or none', () => {
    expect(numberOf('45300', { scale: 0.001 })).toBe(45.3);
    expect(numberOf('18446744073709551615', { scale: 4 })).toBe(73786976294838206460n);
    expect(numberOf('0xff')).toBe(255);
    expect(numberOf('ff', { hex: true })).toBe(255);
    expect(numberOf('-5', { offset: 10 })).toBe(5);
    expect(numberOf('1.5e3')).toBe(1500);
    for (const text of ['', 'zz', '1 2', '0x', 'NaN', 'Infinity', '1e999', '--1', '9'.repeat(40)])
      expect(numberOf(text), text).toBeUndefined();
  });
});

describe('a glob', () => {
  it('captures what its wildcards stand for', () => {
    expect(capturesOf('neuron#', 'neuron15')).toEqual(['15']);
    expect(capturesOf('accel#', 'accel_controlD0')).toBeUndefined();
    expect(capturesOf('a*b', 'aXbYb')).toEqual(['XbY']);
    expect(capturesOf('a.c', 'abc')).toBeUndefined();
  });

  it('finds nothing outside of its tree, and nothing that must not be read', () => {
    const machine = buildMachine({
      about: '',
      files: { 'sys/class/a/a0/state': 'ok', 'sys/class/a/a0/reset': '1', 'sys/kernel/debug/a/x': '1', 'secret/key': 'x' },
      links: {
        'sys/class/a/a0/out': '../../../../secret',
        'sys/class/a/a0/dbg': '../../../kernel/debug/a',
        'sys/class/a/a0/key': '/etc/passwd',
      },
    });
    const found = (glob: string): readonly string[] => findMatches(new Tree(`${machine.root}/sys`), glob).matches.map(({ path }) => path);
    expect(found('class/a/a0/*')).toEqual(['class/a/a0/state']);
    expect([found('class/a/a0/out/key'), found('class/a/a0/key'), found('class/a/a0/dbg/x'), found('class/a/../a/a0/state')]).toEqual([
      [],
      [],
      [],
      [],
    ]);
    machine.remove();
    expect(['config', 'a/resource0', 'kernel/debug/x', 'a/../b', 'rom'].filter(isAllowed)).toEqual([]);
  });
});

it('a template of a path takes no directory from a file', () => {
  expect(fill('{a}/{b}', { a: '1', b: '2' })).toBe('1/2');
  expect(fill('{a}', {})).toBeUndefined();
  for (const text of ['../x', 'a/b', '*', '..', '']) expect(fillPath('x/{a}', { a: text }), text).toBeUndefined();
});

describe('rows', () => {
  it('of CSV have the number of cells of the columns', () => {
    const command = { path: '/x', format: 'csv', columns: ['a', 'b'] } as const;
    expect(rowsOf('1, 2\n3, 4\n', command)).toEqual([
      { a: '1', b: '2' },
      { a: '3', b: '4' },
    ]);
    expect(rowsOf('1, 2, 3\n', command)).toBeUndefined();
    expect(rowsOf('', command)).toEqual([]);
  });

  it('of JSON are found by a cell, and two fitting rows are none', () => {
    const rows =
      rowsOf('{"d": [{"bdf": "cc:00.0"}, {"bdf": "0000:dd:00.0"}, {"bdf": "dd:00.0"}, 5, null]}', {
        path: '/x',
        format: 'json',
        rows: '/d',
      }) ?? [];
    expect(rows).toHaveLength(3);
    expect(rowWith(rows, '/bdf', '0000:cc:00.0')).toEqual({ bdf: 'cc:00.0' });
    expect(rowWith(rows, '/bdf', '0000:dd:00.0')).toBeUndefined();
    for (const text of ['', '{', '[1', '"x"', '{"d": {}}'])
      expect(rowsOf(text, { path: '/x', format: 'json', rows: '/d' }), text).toBeUndefined();
  });
});

describe('the ids of a resource', () => {
  const device = (n: number): Device => ({
    family: 'neuron',
    id: `neuron${n}`,
    kind: 'device',
    index: String(n),
    pciAddress: `0000:0${n}:00.0`,
    pciDevice: '0x1060',
    aliases: [`core${2 * n}`, `core${2 * n + 1}`],
  });
  const devices = [device(0), device(1)];
  const resources = [
    { resource: 'aws.amazon.com/neuron', ids: ['{index}'] },
    { resource: 'aws.amazon.com/neuroncore', alias: 'core{id}' },
    { resource: 'dra.example', ids: ['{dashedAddress}-{pciDevice}'] },
  ];
  const rules = { pools: [], families: new Map([['neuron', resolver(resources)]]), numbers: new Map([['neuron', ownsNumbers(resources)]]) };
  const join = (resource: string, deviceId: string): readonly string[] =>
    new Resolver(devices, rules).resolve(allocation({ resource, deviceId })).devices;

  it('may be numbers of the family, and of no other resource', () => {
    expect(join('aws.amazon.com/neuron', '1')).toEqual(['neuron/neuron1']);
    expect(join('aws.amazon.com/neuroncore', '1')).toEqual(['neuron/neuron0']);
    expect(join('aws.amazon.com/neuroncore', '9')).toEqual([]);
    expect(join('example.com/other', '1')).toEqual([]);
    expect(join('example.com/other', 'neuron1')).toEqual(['neuron/neuron1']);
  });

  it('of a claim are the names of its driver', () => {
    const resolve = resolver(resources);
    const claim = { name: 'c', namespace: 'n', driver: 'dra.example', pool: 'p', device: '0000-01-00-0-0x1060' };
    expect(resolve({ resource: 'dra.example', deviceId: 'p/x', claim }, devices)).toEqual(['neuron1']);
    expect(resolve({ resource: 'x', deviceId: 'p/x', claim: { ...claim, driver: 'other' } }, devices)).toEqual([]);
  });
});
