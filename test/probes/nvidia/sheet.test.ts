import { describe, expect, it } from 'vitest';
import { CHANGE } from '../../../src/probes/nvidia/nvml/changes.ts';
import { Form, Sheet } from '../../../src/probes/nvidia/nvml/sheet.ts';

function sheet(): { readonly sheet: Sheet; readonly form: Form } {
  const form = new Form();
  form.add(['clocks/sm_clock'], 2);
  form.add(['utilization/gpu_util', 'utilization/memory_util'], 3);
  return { form, sheet: new Sheet(1, {}, form) };
}
const movedOf = ({ moved, movedCount }: Sheet): readonly number[] => [...moved.subarray(0, movedCount)];

describe('a form', () => {
  it('gives each question a place of its own', () => {
    const { form } = sheet();
    expect(form.add(['fan_speed'], 1)).toEqual({ index: 2, word: 5, path: 3 });
    expect(form.paths).toEqual(['clocks/sm_clock', 'utilization/gpu_util', 'utilization/memory_util', 'fan_speed']);
  });
});

describe('a sheet', () => {
  it('keeps what moved until somebody looked at it, each path once', () => {
    const { sheet: told } = sheet();
    told.move(1, 2, CHANGE.numbers);
    told.move(1, 2, CHANGE.numbers);
    told.change = CHANGE.none;
    told.move(0, 1, CHANGE.numbers);
    expect(movedOf(told)).toEqual([1, 2, 0]);
    told.rest();
    expect(movedOf(told)).toEqual([]);
    told.move(2, 1, CHANGE.numbers);
    expect(movedOf(told)).toEqual([2]);
  });

  it('lists no numbers where everything is made anew', () => {
    const { sheet: told } = sheet();
    told.move(0, 1, CHANGE.other);
    expect(movedOf(told)).toEqual([]);
    expect(told.change).toBe(CHANGE.other);
  });
});
