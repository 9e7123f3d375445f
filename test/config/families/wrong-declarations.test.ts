import { describe, expect, it } from 'vitest';
import { checkDeclaration } from '../../../src/config/families/family-file.ts';
import { ACME } from '../../probes/declared/support.ts';

const lines = ACME.split('\n');
const lineOf = (text: string): number => lines.findIndex((line) => line.includes(text)) + 1;

/** A change of one line, and the message for that line. */
const CASES: readonly (readonly [string, string, string, RegExp])[] = [
  ['an unknown key', 'summary:', 'sumary: Acme', /unknown key "sumary".*did you mean summary/],
  ['a family with a capital letter', 'family: acme', 'family: Acme', /family must match pattern/],
  [
    'an unknown shared metric',
    'metric: device_temperature_celsius',
    'metric: device_temperatur_celsius',
    /begins with device_acme_.*did you mean device_temperature_celsius/,
  ],
  ['a missing label', 'labels: { sensor: core }', 'labels: { sensr: core }', /needs the label "sensor"/],
  ['a label of the agent', 'labels: { queue:', "labels: { pod: '{1}' }", /"pod" belongs to the agent/],
  ['another unit', 'metric: device_acme_jobs_total', 'metric: device_acme_jobs_percent_total', /end the name in _ratio_total/],
  ['a counter without _total', 'metric: device_acme_jobs_total', 'metric: device_acme_jobs', /ends in _total/],
  ['a wildcard that the file does not have', 'labels: { queue:', "labels: { queue: '{2}' }", /\{2\} has no value here; known are \{1\}/],
  ['a way out of the tree', 'file: queue#/jobs', 'file: ../../../../etc/shadow', /no "\.\."/],
  [
    'a file outside of the trees',
    'file: queue#/jobs',
    'file: /etc/shadow',
    /below the directory of the device, \/sys\/ or \/proc\/driver\//,
  ],
  ['a file whose read triggers something', 'file: queue#/jobs', 'file: reset', /must not be read/],
  ['a debug file', 'file: queue#/jobs', 'file: /sys/kernel/debug/acme/stats', /must not be read/],
  ['too many wildcards', 'file: queue#/jobs', 'file: a*b*c*d*e/jobs', /3 wildcards at most/],
  [
    'a condition without a judge',
    'equals: [failed]',
    'latched: true',
    /exactly one of "above", "below", "equals", "bits", "growth", "still", "level", "log"/,
  ],
  ['an unknown remedy', 'remedy: reset', 'remedy: pray', /must be one of none, reset/],
  ['a duration without a unit', 'growth: { above: 0, within: 24h }', 'growth: { above: 0, within: 60 }', /within must be a string/],
  ['a long duration', 'growth: { above: 0, within: 24h }', 'growth: { above: 0, within: 999999999d }', /must not exceed 30d/],
  ['an id of an unknown fact', "ids: ['{index}'", "ids: ['{number}']", /\{number\} has no value here/],
  ['a node outside of /dev', 'nodes:', "    nodes: ['/etc/{index}']", /a path below \/dev\//],
  ['a syntax error', 'summary:', 'summary: [', /a quote or a bracket before this place is not closed/],
  ['a key twice', 'summary:', 'family: acme', /occurs twice/],
  ['a command that is not declared', 'model: { file: model }', 'model: { command: smi, column: name }', /there is no command "smi"/],
  ['two sources', 'model: { file: model }', 'model: { file: model, link: driver }', /exactly one of "file", "entry", "link" and "command"/],
];

describe('a declaration with', () => {
  it.each(CASES)('%s tells the line', async (_what, line, replacement, message) => {
    const quotes = (text: string): string => text.replaceAll("'", '"');
    const at = lines.findIndex((each) => quotes(each).includes(quotes(line)));
    expect(at, line).toBeGreaterThanOrEqual(0);
    const indent = /^ *(?:- )?/.exec(lines[at] as string)?.[0] ?? '';
    const text = lines.map((each, n) => (n === at ? indent + replacement.trimStart() : each)).join('\n');
    const { problems = [] } = await checkDeclaration(text);
    const found = problems.filter((problem) => message.test(problem.message));
    expect(found.length, problems.map((problem) => `${problem.line}:${problem.column}: ${problem.message}`).join('\n')).toBeGreaterThan(0);
    // A syntax error shows where the parser noticed it. A block without a judge has its place at its first key.
    const isNear = replacement.endsWith('[') || /exactly one of "above"/.test(message.source) ? 8 : 0;
    expect(Math.abs((found[0]?.line ?? 0) - (at + 1))).toBeLessThanOrEqual(isNear);
    expect(found[0]?.column).toBeGreaterThan(0);
  });

  it('nothing wrong is valid', async () => {
    expect((await checkDeclaration(ACME)).problems).toBeUndefined();
    expect(lineOf('family: acme')).toBeGreaterThan(0);
  });

  it('a program by a relative path, or with a long deadline, tells the line', async () => {
    const withCommand = (command: string): string => `${ACME}commands:\n  smi: ${command}\n`;
    const wrong = await Promise.all(
      [
        '{ path: acme-smi, format: json }',
        '{ path: /usr/bin/../../tmp/x, format: json }',
        '{ path: /usr/bin/x, format: json, timeout: 1m }',
      ].map((text) => checkDeclaration(withCommand(text))),
    );
    const last = withCommand('').split('\n').length - 1;
    expect(wrong.map(({ problems = [] }) => problems.map(({ line }) => line))).toEqual([[last], [last], [last]]);
  });
});
