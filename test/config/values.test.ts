import { describe, expect, it } from 'vitest';
import { checkFileValue, parseText, toText } from '../../src/config/values.ts';
import { seconds } from '../../src/model/duration.ts';
import { booleanOption, durationOption, integerOption, listOption, type OptionSpec, stringOption } from '../../src/model/options.ts';

const duration = durationOption(seconds(10), '', 100);
const integer = integerOption(3, '', 1);
const bounded = integerOption(3, '', 0, 9);
const flag = booleanOption(false, '');
const list = listOption([], '');
const text = stringOption('', '');
const choice = stringOption('json', '', ['json', 'text']);

describe('values from text', () => {
  it.each<[OptionSpec, string, unknown]>([
    [duration, '1m30s', 90_000],
    [duration, '100ms', 100],
    [integer, '7', 7],
    [integer, ' +7 ', 7],
    [bounded, '9', 9],
    [flag, 'true', true],
    [flag, 'OFF', false],
    [flag, '0', false],
    [list, 'a, b,,c', ['a', 'b', 'c']],
    [list, '', []],
    [text, '', ''],
    [choice, 'text', 'text'],
  ])('%j reads %j', (spec, given, value) => {
    expect(parseText(spec, given)).toEqual({ value });
  });

  it.each<[OptionSpec, string, string]>([
    [duration, '10', 'must be a duration such as 10s, 1m30s or 250ms, not "10"'],
    [duration, '-1s', 'must be a duration'],
    [duration, '1.5s', 'must be a duration'],
    [duration, '', 'must be a duration'],
    [duration, '99ms', 'must be 100ms or more, not 99ms'],
    [duration, '9999999999999999d', 'must be a duration'],
    [integer, '1.5', 'must be an integer, not "1.5"'],
    [integer, '0x10', 'must be an integer'],
    [integer, '1e3', 'must be an integer'],
    [integer, '99999999999999999999', 'must be an integer'],
    [integer, '0', 'must be 1 or more, not 0'],
    [bounded, '10', 'must be 9 or less, not 10'],
    [flag, 'maybe', 'must be true or false, not "maybe"'],
    [choice, 'jsn', 'must be one of json, text, not "jsn"; did you mean json?'],
    [choice, 'xml', 'must be one of json, text, not "xml"'],
  ])('%j refuses %j', (spec, given, problem) => {
    expect(parseText(spec, given).problem).toContain(problem);
  });
});

describe('values from the file', () => {
  it.each<[OptionSpec, unknown, unknown]>([
    [duration, '5s', 5_000],
    [{ ...duration, min: 0 }, 0, 0],
    [integer, 2, 2],
    [flag, false, false],
    [list, ['a'], ['a']],
    [text, 'x', 'x'],
  ])('%j takes %j', (spec, given, value) => {
    expect(checkFileValue(spec, given)).toEqual({ value });
  });

  it.each<[OptionSpec, unknown, string]>([
    [duration, 10, 'must be a duration such as 10s, 1m30s or 250ms, not 10'],
    [integer, '2', 'must be an integer, not "2"'],
    [integer, 2.5, 'not 2.5'],
    [flag, 'yes', 'must be true or false, not "yes"'],
    [flag, null, 'not nothing'],
    [list, 'a', 'must be a list of strings, not "a"'],
    [list, [1], 'must be a list of strings'],
    [text, 9835, 'must be a string, not 9835'],
    [text, { a: 1 }, 'not a mapping'],
    [text, ['a'], 'not a list'],
  ])('%j refuses %j', (spec, given, problem) => {
    expect(checkFileValue(spec, given).problem).toContain(problem);
  });

  it('writes a value in the form that it reads', () => {
    for (const [spec, value] of [
      [duration, 90_000],
      [integer, 7],
      [flag, true],
      [list, ['a', 'b']],
      [text, 'a b'],
    ] as const) {
      expect(parseText(spec, toText(spec, value))).toEqual({ value });
    }
  });
});
