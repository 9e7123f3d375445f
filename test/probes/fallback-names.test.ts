import { expect, it } from 'vitest';
import type { Device } from '../../src/model/device.ts';
import { FallbackNames } from '../../src/probes/kit/identities.ts';

const one = { identity: 'drive 1', wanted: 'eui.1', fallback: '0000:01:00.0-n1' };
const other = { identity: 'drive 2', wanted: 'eui.1', fallback: '0000:02:00.0-n1' };
const device = (identity: string, id: string): Device => ({ family: 'nvme', kind: 'namespace', aliases: [], identity, id });

it('names stay when another device with the same number comes or leaves', () => {
  const names = new FallbackNames([]);
  expect(names.of([one])).toEqual(['eui.1']);
  expect(names.of([one, other])).toEqual(['eui.1', '0000:02:00.0-n1']);
  expect(names.of([other, one]), 'in another order').toEqual(['0000:02:00.0-n1', 'eui.1']);
  expect(names.of([other]), 'the first one left').toEqual(['0000:02:00.0-n1']);
});

it('names stay over a restart of the probe', () => {
  const names = new FallbackNames([device('drive 1', 'eui.1'), device('drive 2', '0000:02:00.0-n1')]);
  expect(names.of([other])).toEqual(['0000:02:00.0-n1']);
  expect(new FallbackNames([]).of([other]), 'never seen beside another one').toEqual(['eui.1']);
});

it('a device without a number has the name of its place', () => {
  expect(new FallbackNames([]).of([{ ...one, wanted: undefined }, one])).toEqual(['0000:01:00.0-n1', 'eui.1']);
});
