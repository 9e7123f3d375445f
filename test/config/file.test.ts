import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkConfigText, readConfigFile } from '../../src/config/file.ts';
import { testRegistry } from './registry.ts';

/** Lines of a file; what is wrong as `line:column: message`. */
const problemsOf = async (...lines: string[]): Promise<string[]> => {
  const { problems } = await checkConfigText('x.yaml', lines.join('\n'), testRegistry());
  return problems.map(({ line, column, message }) => `${line}:${column}: ${message}`);
};

describe('a file with mistakes', () => {
  it.each<[string, string[], string[]]>([
    ['unknown section', ['log:', '  level: info', 'refrsh:', '  interval: 1s'], ['3:1: unknown key "refrsh"; did you mean refresh?']],
    [
      'unknown key, near one',
      ['probe:', '  nvidia:', '    smi-pth: x'],
      ['3:5: unknown key "smi-pth" in probe.nvidia; did you mean smi-path?'],
    ],
    [
      'unknown key, near none',
      ['probe:', '  nvidia:', '    zzzzz: x'],
      ['3:5: unknown key "zzzzz" in probe.nvidia; known are enabled, smi-path, strict, skip'],
    ],
    ['wrong kind', ['refresh:', '  interval: 10'], ['2:13: refresh.interval must be a duration such as 10s, 1m30s or 250ms, not 10']],
    ['too small', ['refresh: {interval: 1ms}'], ['1:21: refresh.interval must be 100ms or more, not 1ms']],
    [
      'no such choice',
      ['log:', '  level:   infos'],
      ['2:12: log.level must be one of debug, info, warn, error, not "infos"; did you mean info?'],
    ],
    ['value in place of a section', ['probe:', '  nvidia: false'], ['2:11: probe.nvidia must be a mapping, not false']],
    [
      'section in place of a value',
      ['log:', '  level:', '    x: 1'],
      ['3:5: log.level must be one of debug, info, warn, error, not a mapping'],
    ],
    ['key without value', ['log:', '  level:'], ['2:3: log.level must be one of debug, info, warn, error, not nothing']],
    ['missing key in a rule', ['join:', '  rules:', '    - resource: a/b'], ['3:7: join.rules[0] needs the key "devices"']],
    [
      'unknown key in a rule',
      ['join:', '  rules:', '    - resource: a/b', '      devices: [x]', '      device: y'],
      ['5:7: unknown key "device" in join.rules[0]; did you mean devices?'],
    ],
    [
      'wrong kind deep in a rule',
      ['join: {rules: [{resource: a/b, devices: [1]}]}'],
      ['1:42: join.rules[0].devices[0] must be a string, not 1'],
    ],
    ['not a resource', ['join: {rules: [{resource: ab, devices: [x]}]}'], ['1:27: join.rules[0].resource must match pattern']],
    [
      'two mistakes',
      ['log: {levle: x}', 'web: {max-connections: 0}'],
      ['1:7: unknown key "levle"', '2:24: web.max-connections must be 1 or more, not 0'],
    ],
    ['the same key twice', ['log:', '  level: info', 'log:', '  level: warn'], ['3:1: the key "log" occurs twice in this mapping']],
    ['broken syntax', ['log:', '  level: "info'], ['2:15: unexpected end of the stream within a double quoted scalar']],
    ['tab as indentation', ['log:', '\tlevel: info'], ['2:1: tab characters must not be used in indentation']],
    ['a path in place of a key', ['refresh.interval: 5s'], ['1:1: unknown key "refresh.interval"; write "interval" below "refresh"']],
    ['a list', ['- a'], ['1:1: must be a mapping of sections, not a list']],
    ['a text', ['hello'], ['1:1: must be a mapping of sections, not "hello"']],
    ['two documents', ['log: {}', '---', 'log: {}'], ['2:1: a second YAML document starts here; only one is allowed']],
    ['unknown tag', ['log: !secret {level: info}'], ['1:6: unknown mapping tag !<!secret>']],
    ['a key that is no text', ['1: x'], ['1:1: unknown key "1"']],
    ['a key of the prototype', ['__proto__: {level: x}'], ['1:1: unknown key "__proto__"']],
    [
      'aliases of nothing',
      ['log: {level: info}', 'web:', '  listen-address: *nowhere', 'refresh: *later', 'path: &later {}'],
      ['3:19: the anchor &nowhere is not defined before this alias', '4:10: the anchor &later is not defined before this alias'],
    ],
    ['an option without a place in the file', ['config: {file: y}'], ['1:1: unknown key "config"']],
    [
      'a value through an alias',
      ['web: {listen-address: &a 5}', 'log: {level: *a}'],
      ['1:26: web.listen-address must be a string', '2:14: log.level must be one of'],
    ],
  ])('%s', async (_name, lines, expected) => {
    const found = await problemsOf(...lines);
    expect(found.map((text, index) => text.slice(0, expected[index]?.length ?? 0))).toEqual(expected);
  });

  it('is told what a duration and a date look like', async () => {
    const ignored = '{device: a, condition: b, reason: c, until: tomorrow}';
    expect(await problemsOf(`health: {conditions: {a.B: {for: 30}}, ignore: [${ignored}]}`)).toEqual([
      '1:34: health.conditions.a.B.for must be a string (Duration such as 10s, 1m30s or 250ms), not 30',
      expect.stringMatching(/health\.ignore\[0\]\.until must match .*\(Date such as 2030-01-31, .*\), not "tomorrow"$/),
    ]);
  });

  it('is not endless by an alias within its own value', async () => {
    expect(await problemsOf('log: &a {level: *a}')).toEqual(['1:1: the value of &a contains itself']);
  });

  it('does not grow without bound by aliases', async () => {
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
    for (const [before, name] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh'].map((pair) => pair.split(''))) {
      bomb.push(`${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join(',')}]`);
    }
    expect(await problemsOf(...bomb)).toEqual([expect.stringMatching(/^1:1: it has more than 16000 entries/)]);
  });
});

/** Inputs that took seconds to minutes while the work grew with the square of their length. */
describe('a file of thousands of entries', () => {
  const many = (make: (at: number) => string): string[] => Array.from({ length: 5_000 }, (_, at) => make(at));
  it.each<[string, string[], number, string]>([
    ['wrong keys', many((at) => `key${at}: 1`), 5_000, '1:1: unknown key "key0"'],
    ['wrong keys in a section', ['health:', '  conditions:', ...many((at) => `    x.k${at}: {}`)], 5_000, '3:5: unknown key "x.k0"'],
    ['one key again and again', many(() => 'a: 1'), 4_999, '2:1: the key "a" occurs twice'],
    ['aliases', ['a: &a [1]', `b: [${many(() => '*a').join(',')}]`], 1, '2:305: more than 100 aliases'],
    ['brackets', ['['.repeat(10_000)], 1, 'the values are nested too deeply'],
  ])('%s', async (_name, lines, count, first) => {
    const problems = await problemsOf(...lines);
    expect(problems.length).toBeGreaterThanOrEqual(count);
    expect(problems[0]).toContain(first);
  });

  it('prints the first problems and the number of the others', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'config-'));
    const file = join(directory, 'x.yaml');
    writeFileSync(file, many((at) => `key${at}: 1`).join('\n'));
    const error = await readConfigFile(file, 'flag', testRegistry()).catch((caught: Error) => caught);
    rmSync(directory, { recursive: true });
    expect(String(error).match(/unknown key/g)).toHaveLength(20);
    expect(String(error)).toContain('and 4980 more problems');
  });
});

describe('a file without mistakes', () => {
  it.each<[string, string]>([
    ['empty', ''],
    ['only comments', '# nothing\n'],
    ['a section with everything commented out', 'log:\n#  level: info\nprobe:\n  nvidia:\n'],
    ['a document start', '---\nlog: {}\n'],
    ['CRLF', 'log:\r\n  level: info\r\n'],
    ['a byte order mark', '\ufefflog: {level: info}\n'],
  ])('may be %s', async (_name, text) => {
    expect((await checkConfigText('x.yaml', text, testRegistry())).problems).toEqual([]);
  });

  it('may be JSON', async () => {
    const { content } = await checkConfigText(
      'x.json',
      '{"log": {"level": "warn"},\n "probe": {"nvidia": {"skip": ["a", "b"]}}}',
      testRegistry(),
    );
    expect(content?.options.get('log.level')).toEqual({ value: 'warn', line: 1 });
    expect(content?.options.get('probe.nvidia.skip')).toEqual({ value: ['a', 'b'], line: 2 });
  });
});
