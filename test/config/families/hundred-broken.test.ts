import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readFamilyDirectory } from '../../../src/config/families/family-directory.ts';
import { checkDeclaration, readFamilyFile } from '../../../src/config/families/family-file.ts';
import type { UserError } from '../../../src/errors.ts';

/** A sound declaration that has each part. Each case changes one line of it, or adds lines behind one. */
const SOUND = `family: acme
summary: Acme X1 accelerators
commands:
  ls: { path: /opt/acme/ls, format: json, rows: /cards, key: /serial }
  csv: { path: /opt/acme/csv, format: csv, columns: [id, power], key: id }
devices:
  - kind: card
    find: { sysfs: class/acme/acme# }
    rows: { ls: "{name}" }
    id: { file: serial }
    aliases: ["{name}"]
    facts: { index: "{1}", model: { file: model } }
    nodes: ["/dev/acme{index}"]
  - kind: part
    find: { sysfs: class/acme/acme#/part# }
    id: "{name}"
    parent: { file: ../serial_of_card, as: "{value}" }
  - kind: fn
    find: { pci: { vendor: "0x1ab8", class: "12" } }
    id: "{pci}"
pcie: true
inherit: true
readings:
  - metric: device_temperature_celsius
    file: hwmon/hwmon*/temp#_input
    scale: 0.001
    labels: { sensor: "{2}" }
  - { metric: device_acme_jobs_total, type: counter, help: Jobs., file: "queue#/jobs", labels: { queue: "{1}" } }
  - { metric: device_acme_depth, help: Depth., command: ls, pointer: /depth, kinds: [card] }
conditions:
  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, file: state, map: { ok: ok, bad: failed }, equals: [failed] }
  - { type: Hot, severity: degraded, meaning: M., remedy: reset, source: S, reading: device_temperature_celsius, above: 95 }
  - { type: Stands, severity: fatal, meaning: M., remedy: reset, source: S, file: alive, still: 30s, message: "at {value}" }
  - { type: Grows, severity: fatal, meaning: M., remedy: reset, source: S, file: errors, growth: { above: 0, within: 1h } }
  - { type: Bits, severity: fatal, meaning: M., remedy: reset, source: S, file: flags, bits: "0x06" }
  - { type: Logged, severity: fatal, meaning: M., remedy: reset, source: S, log: {} }
lines:
  - { event: dead, drivers: [acme], text: "dead, code {code}", means: dead, source: S, condition: Logged }
  - { event: ready, drivers: [acme], text: "ready*", means: ready, source: S, ends: [Logged] }
resources:
  - { resource: acme.example/x1, ids: ["{index}"], kinds: [card] }
activity: { traffic: { above: 1, metrics: [device_acme_jobs_total] }, isForHoldersOnly: true }
`.replace('{ file: ../serial_of_card, as: "{value}" }', '{ file: card, as: "{value}" }');

/** The text of a line, what replaces it (`+` adds a line behind it), and the message. */
type Case = readonly [find: string, replacement: string, message: RegExp];
const many = (count: number, item: (n: number) => string): string => Array.from({ length: count }, (_, n) => item(n)).join('');

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'text that is no YAML': [
    ['family: acme', 'family: [acme', /a quote or a bracket before/],
    ['family: acme', 'family: "acme', /a quote or a bracket before this place is not closed/],
    ['family: acme', '\tfamily: acme', /has no tabs/],
    ['summary:', 'summary: a: b', /mapping|key|:/i],
    ['summary:', 'summary: !!js/function "x"', /tag/i],
    ['summary:', 'summary: @home', /indentation/],
    ['summary:', '%YAML 1.2', /directive|expected|document|%|indentation|key/i],
    ['summary:', ' summary: x', /mapping|indentation/i],
    ['resources:', '---\nresources:', /second YAML document/],
    ['family: acme', '- family', /does not fit the lines before/],
    ['    id: { file: serial }', '    id: { file: serial', /a quote or a bracket before/],
  ],
  'keys twice and anchors': [
    ['summary:', 'family: other', /"family" occurs twice/],
    ['    id: { file: serial }', '    id: { file: serial, file: model }', /"file" occurs twice/],
    ['    kind: card', '  - kind: card\n    kind: part', /"kind" occurs twice/],
    ['summary:', 'summary: *none', /&none is not defined|anchor|alias/i],
    ['    facts:', '    facts: &f { index: "{1}", model: *f }', /&f|contains itself|not defined/],
    [
      'resources:',
      `x0: &x0 [1,1]\n${many(30, (n) => `x${n + 1}: &x${n + 1} [*x${n},*x${n},*x${n},*x${n}]\n`)}resources:`,
      /entries|aliases|values/,
    ],
    ['resources:', `y: &y 1\nz: [${many(101, () => '*y,')}]\nresources:`, /aliases/],
    ['summary:', '<<: { summary: x }', /unknown key "<<"|merge|needs the key/],
  ],
  'unknown fields and kinds': [
    ['summary:', 'sumary: x', /unknown key "sumary".*did you mean summary/],
    ['    kind: card', '  - knd: card', /unknown key "knd".*did you mean kind/],
    ['    find: { sysfs: class/acme/acme# }', '    find: { sysf: class/acme/acme# }', /unknown key "sysf"/],
    ['    find: { pci:', '    find: { pci: { vender: "0x1ab8" } }', /unknown key "vender".*did you mean vendor/],
    ['  - metric: device_temp', '  - metrik: device_x', /unknown key "metrik"/],
    [
      'type: Failed',
      '  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, file: state, equal: [a] }',
      /unknown key "equal".*equals/,
    ],
    ['event: dead', '  - { event: dead, driver: [acme], text: x, means: x, source: S }', /unknown key "driver".*drivers/],
    ['pcie: true', 'pice: true', /unknown key "pice".*pcie/],
    [
      'kinds: [card] }',
      '  - { metric: device_acme_depth, help: D., command: ls, pointer: /d, kinds: [crad] }',
      /no kind "crad".*did you mean card/,
    ],
    ['acme.example/x1', '  - { resource: acme.example/x1, ids: ["{index}"], kinds: [gpu] }', /no kind "gpu"/],
    ['constructor', '+constructor: 1', /unknown key "constructor"/],
    ['constructor', '+__proto__: { family: x }', /unknown key "__proto__"/],
  ],
  'wrong types': [
    ['family: acme', 'family: 12', /family must be a string/],
    ['family: acme', 'family: null', /family must be a string/],
    ['family: acme', 'family: Acme', /family must match pattern/],
    ['summary:', 'summary: [x]', /summary must be a string/],
    ['summary:', 'summary: ""', /summary must NOT have fewer/],
    ['devices:', 'devices: []\nothers:', /devices must NOT have fewer|unknown key/],
    ['    kind: card', '  - kind: [card]', /kind must be a string/],
    ['    find: { sysfs: class/acme/acme# }', '    find: class/acme', /find must be a mapping/],
    ['    find: { sysfs: class/acme/acme# }', '    find: { sysfs: class/acme/acme#, command: ls }', /find must NOT have more/],
    ['    find: { sysfs: class/acme/acme# }', '    find: {}', /find must NOT have fewer/],
    ['    id: { file: serial }', '    id: 7', /id must be a string or a mapping/],
    ['    nodes:', '    nodes: /dev/acme', /nodes must be a list/],
    ['pcie: true', 'pcie: "yes"', /pcie must be true or false/],
    ['    scale: 0.001', '    scale: tiny', /scale must be a number/],
    ['    labels: { sensor', '    labels: [sensor]', /labels must be a mapping/],
    ['    labels: { sensor', '    labels: { sensor: 1 }', /sensor must be a string/],
    ['type: Failed', '  - Failed', /must be a mapping/],
    [
      'type: Hot',
      '  - { type: Hot, severity: bad, meaning: M., remedy: reset, source: S, file: a, above: 1 }',
      /severity must be one of fatal/,
    ],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: pray, source: S, file: a, above: 1 }',
      /remedy must be one of none/,
    ],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a, above: hot }',
      /above must be a number or a mapping/,
    ],
    [
      'type: Grows',
      '  - { type: Grows, severity: fatal, meaning: M., remedy: reset, source: S, file: a, growth: 3 }',
      /growth must be a mapping/,
    ],
    [
      'type: Grows',
      '  - { type: Grows, severity: fatal, meaning: M., remedy: reset, source: S, file: a, growth: { above: 1, within: 60 } }',
      /within must be a string/,
    ],
    ['type: Bits', '  - { type: Bits, severity: fatal, meaning: M., remedy: reset, source: S, file: a, bits: 0xzz }', /bits must match/],
    [
      'type: Bits',
      '  - { type: bits, severity: fatal, meaning: M., remedy: reset, source: S, file: a, bits: 1 }',
      /type must match pattern/,
    ],
    ['event: dead', '  - { event: dead, drivers: acme, text: x, means: x, source: S }', /drivers must be a list/],
    ['activity:', 'activity: { isForHoldersOnly: 1 }', /isForHoldersOnly must be true or false/],
    ['  ls:', '  ls: { path: ls, format: json }', /path must match pattern/],
    ['  ls:', '  ls: { path: /opt/ls, format: xml }', /format must be one of json, csv/],
  ],
  'missing fields': [
    ['family: acme', '# nothing', /needs the key "family"/],
    ['    id: "{pci}"', '    aliases: ["x"]', /needs the key "id"/],
    ['type: Hot', '  - { type: Hot, severity: fatal, meaning: M., source: S, file: a, above: 1 }', /needs the key "remedy"/],
    ['event: dead', '  - { event: dead, drivers: [acme], means: x, source: S }', /needs the key "text"/],
    ['type: counter', '  - { metric: device_acme_jobs_total, type: counter, file: a }', /needs "help"/],
  ],
  'numbers and lists out of range': [
    ['    scale: 0.001', '    scale: 1e99', /scale must be <= 1000000000000000/],
    ['    scale: 0.001', '    scale: .inf', /scale must be/],
    ['    scale: 0.001', '    scale: .nan', /scale must be/],
    ['    scale: 0.001', '    scale: 0', /a scale of 0 loses the value/],
    ['    scale: 0.001', '    field: 0', /field must be >= 1/],
    ['type: Stands', '  - { type: Stands, severity: fatal, meaning: M., remedy: reset, source: S, file: a, still: 0s }', /a time of 0/],
    [
      'type: Stands',
      '  - { type: Stands, severity: fatal, meaning: M., remedy: reset, source: S, file: a, still: 99999d }',
      /must not exceed 30d/,
    ],
    [
      'type: Grows',
      '  - { type: Grows, severity: fatal, meaning: M., remedy: reset, source: S, file: a, growth: { above: -1, within: 1h } }',
      /above must be >= 0/,
    ],
    ['  ls:', '  ls: { path: /opt/ls, format: json, timeout: 1m }', /8s at most/],
    ['    nodes:', `    nodes: [${many(17, (n) => `/dev/a${n},`)}]`, /nodes must NOT have more than 16/],
    [
      'lines:',
      `lines:\n${many(70, (n) => `  - { event: e${n}, drivers: [acme], text: "t${n} ", means: x, source: S }\n`)}`,
      /lines must NOT have more than 64/,
    ],
    ['resources:', `many: [${many(20_000, () => '1,')}]\nresources:`, /more than 16000|entries/],
    ['summary:', `summary: ${'a'.repeat(5_000)}`, /summary must NOT have more than 120/],
    ['    find: { sysfs: class/acme/acme# }', `    find: { sysfs: ${'a/'.repeat(100)}a }`, /12 parts at most/],
    ['activity:', `activity: ${'['.repeat(100)}${']'.repeat(100)}`, /nested too deeply|depth/],
  ],
  'globs, paths and texts like regular expressions': [
    ['    find: { sysfs: class/acme/acme# }', '    find: { sysfs: "*/acme" }', /first part of the place has no wildcard/],
    ['    find: { sysfs: class/acme/acme# }', '    find: { sysfs: class//acme }', /no empty part/],
    ['    find: { sysfs: class/acme/acme# }', '    find: { sysfs: class/acme/** }', /two wildcards need a text/],
    ['    file: hwmon/hwmon*', '    file: a*b*c*d*e', /3 wildcards at most/],
    ['    file: hwmon/hwmon*', '    file: ../../etc/passwd', /no "\.\."/],
    ['    file: hwmon/hwmon*', '    file: /etc/passwd', /below the directory of the device/],
    ['    file: hwmon/hwmon*', '    file: /sys/kernel/debug/x', /must not be read/],
    ['    file: hwmon/hwmon*', '    file: reset', /must not be read/],
    [
      'event: dead',
      '  - { event: dead, drivers: [acme], text: "(a+)+$**", means: x, source: S, condition: Logged }',
      /two wildcards need a text/,
    ],
    [
      'event: dead',
      '  - { event: dead, drivers: [acme], text: "a*b*c*d*e*f*g*h*i*j", means: x, source: S, condition: Logged }',
      /8 words and wildcards at most/,
    ],
    [
      'event: dead',
      '  - { event: dead, drivers: [acme], text: "{a} {a}", means: x, source: S, condition: Logged }',
      /each word of a line has a name/,
    ],
    [
      'event: dead',
      '  - { event: dead, drivers: [acme], text: "x {y}", device: { class: acme, name: "{y}" }, means: x, source: S, condition: Logged }',
      /16 fixed characters/,
    ],
    ['acme.example/x1', '  - { resource: "a*b*c*d*e", ids: ["{index}"] }', /few "\*" wildcards/],
    ['    nodes:', '    nodes: ["/etc/passwd"]', /a path below \/dev\//],
    ['    nodes:', '    nodes: ["/dev/../etc/passwd"]', /a path below \/dev\//],
  ],
  'names that lead nowhere': [
    ['    nodes:', '    nodes: ["/dev/acme{number}"]', /\{number\} has no value here/],
    ['    id: { file: serial }', '    id: "{serial}"', /\{serial\} has no value here/],
    ['    labels: { sensor', '    labels: { sensor: "{3}" }', /\{3\} has no value here; known are \{1\}, \{2\}/],
    ['    labels: { sensor', '    labels: { sensor: "{1" }', /a brace in a template/],
    [
      'still: 30s',
      '  - { type: Stands, severity: fatal, meaning: M., remedy: reset, source: S, file: a, still: 1s, message: "{limit}" }',
      /\{limit\} has no value here/,
    ],
    ['kinds: [card] }', '  - { metric: device_acme_depth, help: D., command: lss, pointer: /d }', /no command "lss".*did you mean ls/],
    [
      'kinds: [card] }',
      '  - { metric: device_acme_depth, help: D., command: csv, column: pover }',
      /no column "pover".*did you mean power/,
    ],
    ['kinds: [card] }', '  - { metric: device_acme_depth, help: D., command: csv, pointer: /power }', /csv, which has columns/],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, reading: device_temperature, above: 1 }',
      /no reading of device_temperature/,
    ],
    [
      'event: dead',
      '  - { event: dead, drivers: [acme], text: x, means: x, source: S, condition: Loged }',
      /no condition "Loged".*did you mean Logged/,
    ],
    [
      'event: ready',
      '  - { event: ready, drivers: [acme], text: "ready", means: x, source: S, ends: [Hot] }',
      /no condition "Hot" with "log"/,
    ],
    [
      'activity:',
      'activity: { traffic: { above: 1, metrics: [device_acme_depth] }, isForHoldersOnly: true }',
      /no declared counter device_acme_depth/,
    ],
    ['  - metric: device_temp', '  - metric: device_temperatur_celsius', /did you mean device_temperature_celsius/],
    ['    file: hwmon/hwmon*', '    labels2: {}', /unknown key "labels2"/],
  ],
  'rules that contradict each other': [
    [
      'type: Hot',
      '  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, file: a, above: 1 }',
      /"Failed" is declared twice/,
    ],
    [
      'type: Hot',
      '  - { type: AerFatal, severity: fatal, meaning: M., remedy: reset, source: S, file: a, above: 1 }',
      /a trait of the family already has the condition "AerFatal"/,
    ],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a, above: 1, below: 0 }',
      /exactly one of "above"/,
    ],
    ['type: Hot', '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a }', /exactly one of "above"/],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a, link: b, above: 1 }',
      /exactly one of "file"/,
    ],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a, above: { scale: 2 } }',
      /exactly one of "file"/,
    ],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a, above: 1, progress: true }',
      /"progress" needs "for"/,
    ],
    [
      'type: Hot',
      '  - { type: Hot, severity: fatal, meaning: M., remedy: reset, source: S, file: a, level: highest, latched: true }',
      /neither latched nor in progress/,
    ],
    [
      'type: Failed',
      '  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, file: a, map: { a: ok }, equals: [oke] }',
      /"map" never gives oke.*did you mean ok/,
    ],
    [
      'type: Failed',
      '  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, file: a, map: { a: ok }, above: 1 }',
      /the value is a number here, and ok is none/,
    ],
    [
      'type: Logged',
      '  - { type: Logged, severity: fatal, meaning: M., remedy: reset, source: S, log: {}, file: a }',
      /has no other source/,
    ],
    [
      'type: Logged',
      '  - { type: Logged, severity: fatal, meaning: M., remedy: reset, source: S, log: {}, message: x }',
      /"means" of its lines/,
    ],
    [
      'type: Logged',
      '  - { type: Logged, severity: fatal, meaning: M., remedy: reset, source: S, log: { above: 3 } }',
      /both "above" and "within"/,
    ],
    ['    parent:', '    parent: "{id}"', /no part of itself/],
    ['    parent:', '    parent: "{name}"', /no part of itself/],
    ['    parent:', '    aliases: ["x"]', /no kind of device has a "parent"/],
    ['resources:', '  - { event: ready, drivers: [acme], text: "steady", means: x, source: S }\nresources:', /"ready" is declared twice/],
    [
      'resources:',
      '  - { event: again, drivers: [acme], text: "ready, firmware 4", means: x, source: S }\nresources:',
      /lines\[1\] takes all that this one would take/,
    ],
    [
      'conditions:',
      '  - { metric: device_acme_jobs_total, file: "queue#/jobs", labels: { queue: "{1}" } }\nconditions:',
      /readings\[1\] takes all/,
    ],
    ['pcie: true', '  - { kind: twin, find: { sysfs: class/acme/acme# }, id: { file: serial } }\npcie: true', /devices\[0\] takes all/],
    ['type: counter', '  - { metric: device_acme_jobs, type: counter, help: J., file: a }', /ends in _total/],
    ['type: counter', '  - { metric: device_acme_power_mw, help: J., file: a }', /base units/],
    [
      'type: counter',
      '  - { metric: device_power_watts, help: J., file: a, labels: { sensor: x } }',
      /shared metric, which has its own help/,
    ],
    [
      'type: counter',
      '  - { metric: device_acme_jobs_total, type: counter, help: J., file: a, labels: { pod: x } }',
      /"pod" belongs to the agent/,
    ],
    ['type: counter', '  - { metric: device_pcie_link_width_lanes, file: a }', /"pcie: true" already reads/],
  ],
};

function broken([find, replacement]: Case): { readonly text: string; readonly line: number } {
  if (replacement.startsWith('+')) return { text: `${SOUND}${replacement.slice(1)}\n`, line: SOUND.split('\n').length };
  const lines = SOUND.split('\n');
  const at = lines.findIndex((line) => line.includes(find) || line.replace('  - ', '    ').includes(find));
  if (at < 0) throw new Error(`no line has ${find}`);
  return { text: lines.map((line, n) => (n === at ? replacement : line)).join('\n'), line: at + 1 };
}

const all = Object.entries(CASES).flatMap(([kind, cases]) => cases.map((one, n) => [`${kind} ${n + 1}`, one] as const));

const directory = mkdtempSync(join(tmpdir(), 'device-agent-broken-'));
afterAll(() => rmSync(directory, { recursive: true }));

it('begins with a sound declaration, and has a hundred cases', async () => {
  expect((await checkDeclaration(SOUND)).problems).toBeUndefined();
  expect(all.length).toBeGreaterThanOrEqual(100);
});

describe('a broken declaration tells line and column', () => {
  it.each(all)('%s', async (name, one) => {
    const { text, line: edited } = broken(one);
    const { problems = [] } = await checkDeclaration(text);
    const told = problems.map(({ line, column, message }) => `${line}:${column}: ${message}`).join('\n');
    const found = problems.filter(({ message }) => one[2].test(message));
    expect(found.length, `${one[1]}\n${told || 'nothing is told'}`).toBeGreaterThan(0);
    const last = text.split('\n').length;
    for (const { line, column } of problems) expect(line >= 1 && line <= last && column >= 1, told).toBe(true);
    // What is missing has the place of what should have it, and a text without end that of its end.
    const isElsewhere = /no YAML|missing|keys twice/.test(name) || one[1].includes('\n') || /entries|nested|no kind of device/.test(told);
    if (!isElsewhere)
      expect(
        found.map(({ line }) => line),
        told,
      ).toContain(edited);

    // The command that checks a file, and the start of the agent, which reads its directory, say the same.
    const own = join(directory, name.replaceAll(' ', '-'));
    mkdirSync(own);
    const file = join(own, 'acme.yaml');
    writeFileSync(file, text);
    chmodSync(file, 0o644);
    const [checked, served] = await Promise.all([
      readFamilyFile(file).then(
        () => undefined,
        (error: UserError) => error.message,
      ),
      readFamilyDirectory({ path: own, isGiven: true }).then(
        () => undefined,
        (error: UserError) => error.message,
      ),
    ]);
    expect(checked).toContain(`${file}:`);
    expect(served).toBe(checked);
  });
});
