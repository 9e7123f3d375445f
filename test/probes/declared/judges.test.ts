import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Tree } from '../../../src/host/fs/tree.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import { withoutExcluded } from '../../../src/supervisor/collection-limits.ts';
import { buildMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { declaredFamily, HandClock } from './support.ts';

const CARD = 'sys/class/acme/acme0';

/** A family of one kind with these rows, on a tree of files; `reread` can stand in for what the driver answers. */
async function start(rows: string, files: Readonly<Record<string, string>>, find = 'class/acme/acme#', id = '{name}') {
  const machine = buildMachine({
    about: '',
    files: {
      'dev/kmsg': '6,0,0,-;Linux version 6.8\n',
      ...Object.fromEntries(Object.entries(files).map(([path, text]) => [path, `${text}\n`])),
    },
    directories: ['proc'],
  });
  const { root } = machine;
  const family = await declaredFamily(
    `family: acme\nsummary: Acme\ndevices:\n  - { kind: card, find: { sysfs: ${find} }, id: "${id}" }\n${rows}`,
  );
  const clock = new HandClock();
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock);
  const probe = family.createProbe(host, probeOptions(family, {}));
  onTestFinished(() => {
    void probe.close?.();
    machine.remove();
  });
  return {
    clock,
    sys: host.sys as Tree,
    root,
    family,
    put(path: string, text: string): void {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), `${text}\n`);
    },
    collect: async (): Promise<Collection> => await probe.collect(),
    /** Findings of the first device in words. */
    async look(): Promise<readonly string[]> {
      const [report] = (await probe.collect()).reports;
      return toldBy(report);
    },
  };
}

const toldBy = (report: DeviceReport | undefined): readonly string[] =>
  [...(report?.read?.findings ?? []), ...(report?.outOfBand?.findings ?? [])].map(
    ({ type, instance = '-', status, level, count, message }) => `${type} ${instance} ${status ?? level ?? count}: ${message}`,
  );

const condition = (rule: string, type = 'Rule'): string =>
  `conditions:\n  - { type: ${type}, severity: fatal, meaning: M., remedy: reset, source: S, ${rule} }\n`;

describe('a limit in another file', () => {
  const RULE = 'file: "hwmon/hwmon*/temp#_input", scale: 0.001, above: { file: "hwmon/hwmon*/temp#_crit", scale: 0.001, absent: ["0"] }';
  const file = (name: string): string => `${CARD}/hwmon/hwmon2/${name}`;

  it('is that of the same wildcards, and a part without one is not judged', async () => {
    const { look, put } = await start(condition(RULE), {
      [file('temp1_input')]: '45000',
      [file('temp1_crit')]: '90000',
      [file('temp2_input')]: '95000',
      [file('temp2_crit')]: '94000',
      [file('temp3_input')]: '200000',
    });
    expect(await look()).toEqual([
      'Rule 2-1 false: hwmon2/temp1_input is 45000, the limit is 90',
      'Rule 2-2 true: hwmon2/temp2_input is 95000, the limit is 94',
    ]);
    put(file('temp2_crit'), '0');
    expect(await look()).toEqual(['Rule 2-1 false: hwmon2/temp1_input is 45000, the limit is 90']);
  });

  it('that no file holds leaves the condition unknown', async () => {
    const { look } = await start(condition(RULE), { [file('temp1_input')]: '45000' });
    expect(await look()).toEqual(['Rule - unknown: no limit can be read']);
  });

  it('without wildcards is that of all values, exactly also beyond 2^53', async () => {
    const { look } = await start(condition('file: "n#", below: { file: floor }'), {
      [`${CARD}/n1`]: '9007199254740992',
      [`${CARD}/n2`]: '9007199254740993',
      [`${CARD}/floor`]: '9007199254740993',
    });
    expect((await look()).map((line) => line.split(':')[0])).toEqual(['Rule 1 true', 'Rule 2 false']);
  });
});

describe('the other judges', () => {
  it.each([
    ['level: highest', '16', 'Rule - 16: acme0/value is 16'],
    ['bits: "0x06"', '0x04', 'Rule - true: acme0/value is 0x04'],
    ['bits: "0x06"', '0x08', 'Rule - false: acme0/value is 0x08'],
    ['growth: { above: 0, within: 1h }, message: "{value} errors"', '7', 'Rule - 7: 7 errors'],
    ['scale: 0.001, above: 3, message: "{value} V, at most {limit} V"', '3300', 'Rule - true: 3.3 V, at most 3 V'],
    ['map: { a: fine, b: broken }, equals: [broken], message: "the state is {value}"', 'b', 'Rule - true: the state is broken'],
  ])('%s of %s', async (rule, text, told) => {
    const { look, family } = await start(condition(`file: value, ${rule}`), { [`${CARD}/value`]: text });
    const found = await look();
    expect(found).toEqual([told]);
    const [finding] = (await start(condition(`file: value, ${rule}`), { [`${CARD}/value`]: text }).then(({ collect }) => collect()))
      .reports[0]?.read?.findings ?? [undefined];
    expect(family.conditions[0]?.reasons).toContain(finding?.reason);
  });
});

describe('parts', () => {
  const LINES = `lines:
  - { event: dead, drivers: [acme], text: "dead", means: the card is dead, source: S, condition: Dead }
`;
  const ROWS = `  - { kind: part, find: { sysfs: "class/acme/acme#/part#" }, id: "acme{1}/{2}", parent: "acme{1}" }
inherit: true
conditions:
  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, kinds: [card], file: state, equals: [failed] }
  - { type: Slow, severity: degraded, meaning: M., remedy: reset, source: S, kinds: [card], file: state, equals: [failed] }
  - { type: Idle, severity: info, meaning: M., remedy: none, source: S, kinds: [part], file: use, equals: ["0"] }
  - { type: Dead, severity: fatal, meaning: M., remedy: reset, source: S, log: {} }
${LINES}    kinds: [card]
`.replace('condition: Dead }\n    kinds: [card]', 'condition: Dead, kinds: [card] }');

  it('have the fatal conditions of their whole, which the finding names, also those of the kernel log', async () => {
    const { collect, put, root } = await start(ROWS, { [`${CARD}/state`]: 'ok', [`${CARD}/part1/use`]: '3' });
    const part = async () => (await collect()).reports.find(({ device }) => device.kind === 'part');
    expect(toldBy(await part())).toContain('Failed - false: acme0: acme0/state is ok');
    put(`${CARD}/state`, 'failed');
    const told = await part();
    expect(toldBy(told)).toContain('Failed - true: acme0: acme0/state is failed');
    expect(toldBy(told).join()).not.toContain('Slow');
    expect(told?.read?.findings.find(({ type }) => type === 'Failed')?.causedBy).toBe('acme0');
    appendFileSync(join(root, 'dev/kmsg'), '3,2,1,-;acme acme0: dead\n SUBSYSTEM=acme\n DEVICE=+acme:acme0\n');
    expect(toldBy(await part())).toContain('Dead - true: acme0: the card is dead');
    put(`${CARD}/state`, '');
    expect(toldBy(await part()).join(), 'a whole that is unread denies nothing').not.toContain('Failed');
  });

  it('that name each other as parents are parts of nothing, and the agent says so', async () => {
    const { collect } = await start(
      'conditions:\n  - { type: Failed, severity: fatal, meaning: M., remedy: reset, source: S, file: state, equals: [failed] }\n',
      { [`${CARD}/state`]: 'ok', [`${CARD}/above`]: 'acme1', 'sys/class/acme/acme1/state': 'ok', 'sys/class/acme/acme1/above': 'acme0' },
      'class/acme/acme#',
      '{name}", parent: { file: above }, identity: "{name}',
    );
    const collection = await collect();
    expect(collection.reports.map(({ device }) => [device.id, device.parent])).toEqual([
      ['acme0', undefined],
      ['acme1', undefined],
    ]);
    expect(collection.problems.map(({ code, device }) => `${code} ${device}`)).toEqual(['parent-circle acme0', 'parent-circle acme1']);
    expect(withoutExcluded(collection, ['other']).reports).toHaveLength(2);
  });
});

describe('a counter whose reads the driver refuses', () => {
  it('is read again after a minute, then after two and more, and its last error is told meanwhile', async () => {
    const { collect, sys, clock } = await start(
      'readings:\n  - { metric: device_acme_jobs_total, type: counter, help: Jobs., file: jobs }\n  - { metric: device_acme_depth, help: Depth., file: depth }\n',
      { [`${CARD}/jobs`]: '7', [`${CARD}/depth`]: '3' },
    );
    const reread = sys.reread.bind(sys);
    let [reads, isRefused] = [0, false];
    sys.reread = (path) => {
      if (!path.endsWith('/jobs') && !path.endsWith('/depth')) return reread(path);
      if (path.endsWith('/jobs')) reads += 1;
      return isRefused ? { error: 'EINVAL' } : reread(path);
    };
    const readsIn = async (minutes: number): Promise<number> => {
      reads = 0;
      const told = new Set<string>();
      for (let n = 0; n < minutes * 6; n += 1) {
        for (const { message } of (await collect()).problems) told.add(message);
        clock.nowMs += 10_000;
      }
      expect([...told].filter((message) => message.includes('jobs'))).toEqual(
        isRefused ? ['reading /sys/class/acme/acme0/jobs fails with EINVAL'] : [],
      );
      return reads;
    };
    expect(await readsIn(1)).toBe(6);
    isRefused = true;
    expect(await readsIn(60)).toBeLessThanOrEqual(7);
    isRefused = false;
    clock.nowMs += 3_600_000;
    expect(await readsIn(1)).toBe(6);
  });
});

it('leaves a device unread while one of its reads hangs, and reads the others', async () => {
  const { collect, sys } = await start(condition('file: state, equals: [failed]'), {
    [`${CARD}/state`]: 'ok',
    'sys/class/acme/acme1/state': 'failed',
  });
  const read = async () => (await collect()).reports.map((report) => [report.device.id, ...toldBy(report)]);
  const all = await read();
  const reread = sys.reread.bind(sys);
  sys.reread = (path) => (path.startsWith('class/acme/acme0/') ? { error: 'EHUNG' } : reread(path));
  const { reports, problems } = await collect();
  expect(reports.map((report) => [report.device.id, report.read !== undefined])).toEqual([
    ['acme0', false],
    ['acme1', true],
  ]);
  expect(problems, 'who watches the reads tells it').toEqual([]);
  sys.reread = reread;
  expect(await read()).toEqual(all);
});
