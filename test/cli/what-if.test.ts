import { spawn } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at, policyFor, recordWeek } from '../health/rehearsal/week.ts';
import { MAIN, type Ran, run } from './command-line.ts';

/** A record of one day, in which a port was down for one minute at 10:00, 11:00 and 12:00. */
let recorded: string;
let root: string;

beforeAll(async () => {
  recorded = mkdtempSync(join(tmpdir(), 'device-agent-recorded-'));
  await recordWeek({ directory: recorded, policy: policyFor(), untilMs: at(1, 0) });
  root = mkdtempSync(join(tmpdir(), 'device-agent-what-if-'));
});
afterAll(() => {
  rmSync(recorded, { recursive: true, force: true });
  rmSync(root, { recursive: true, force: true });
});

const findings = (directory: string): string => join(directory, 'findings');
const lastFile = (directory: string): string => join(findings(directory), readdirSync(findings(directory)).sort().at(-1) as string);

/** A copy of the record that a test may damage. */
function copy(name: string): string {
  const directory = join(root, name);
  cpSync(recorded, directory, { recursive: true });
  return directory;
}

function policy(name: string, text: string): string {
  const path = join(root, name);
  writeFileSync(path, text);
  return path;
}

const LONGER = 'conditions:\n  infiniband.PortDown:\n    for: 5m\n';
const ALL = ['--since=20000d', '--log.level=warn', '--log.format=json'];
const whatIf = (directory: string, file: string, ...more: readonly string[]): Promise<Ran> =>
  run(['health', `--what-if=${file}`, `--state.file=${join(directory, 'health.json')}`, ...ALL, ...more]);

describe('device-agent health --what-if', () => {
  it('shows what differs, with status 1', async () => {
    const ran = await whatIf(recorded, policy('longer.yaml', LONGER));
    expect(ran.stderr).toBe('');
    expect(ran.status).toBe(1);
    expect(ran.stdout).toMatch(/^infiniband\/mlx5_0$/m);
    expect(ran.stdout).toMatch(/^present +2024-01-01T10:00:30\.\d+Z +1m30s +unhealthy +Unhealthy +PortDown\/1 +train\/first$/m);
    expect(ran.stdout).toMatch(
      /^present +2024-01-01T12:00:30\.\d+Z +1h1m30s +unhealthy +Unhealthy +PortDown\/1, Flapping\/PortDown\/1 +train\/second$/m,
    );
    expect(ran.stdout).toContain('1 of 4 devices differ');
    expect(ran.stdout).toMatch(
      /^Out of service under the present policy: 1\.075 device hours in 3 outages; 2 pods hit: train\/first, train\/second$/m,
    );
    expect(ran.stdout).toMatch(/^Out of service under .*longer\.yaml: 0 device hours$/m);
  });

  it('writes the same as JSON', async () => {
    const ran = await whatIf(recorded, policy('json.yaml', LONGER), '-o', 'json', '--device=0000:01:00.0');
    const answer = JSON.parse(ran.stdout);
    expect(answer).toMatchObject({
      differs: true,
      other: { outOfServiceSeconds: 0, outages: 0, podsHit: [] },
      record: { unlikePresent: 0 },
    });
    expect(answer.devices).toHaveLength(1);
    expect(answer.devices[0].present.filter(({ state }: { state: string }) => state === 'unhealthy')).toHaveLength(3);
    expect(answer.devices[0].other.every(({ state }: { state: string }) => state === 'healthy')).toBe(true);
  });

  it('takes a whole configuration file, whose other parts do not count', async () => {
    const file = policy('whole.yaml', `refresh:\n  interval: 5s\nhealth:\n  ${LONGER.replaceAll('\n', '\n  ').trimEnd()}\n`);
    expect((await whatIf(recorded, file)).status).toBe(1);
  });

  it('compares with the policy of the configuration', async () => {
    const file = policy('present.yaml', `health:\n  ${LONGER.replaceAll('\n', '\n  ').trimEnd()}\n`);
    const ran = await whatIf(recorded, file, `--config.file=${file}`);
    expect(ran.stdout).toContain('No device differs');
    // The agent judged by another policy: three times raised and cleared, three times out and in again, and the flapping.
    expect(ran.stdout).toMatch(/The present policy would have given other verdicts than the agent: 14 events differ\./);
    expect(ran.status).toBe(0);
  });

  it('has status 0 when nothing differs', async () => {
    const ran = await whatIf(recorded, policy('empty.yaml', '{}\n'));
    expect(ran.stdout).toContain('No device differs');
    expect(ran.status).toBe(0);
  });

  it('reads the policy from the standard input', async () => {
    const child = spawn(process.execPath, [MAIN, 'health', '--what-if=-', `--state.file=${join(recorded, 'health.json')}`, ...ALL], {
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    child.stdin.end(LONGER);
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(1);
  });

  it.each([
    [
      'a wrong value',
      'conditions:\n  infiniband.PortDown:\n    severity: bad\n',
      /wrong\.yaml:3:15: conditions\.infiniband\.PortDown\.severity must be one of/,
    ],
    ['a wrong value of a whole file', 'health:\n  unknown: ill\n', /wrong\.yaml:2:12: health\.unknown must be one of/],
    [
      'a condition that does not exist',
      'conditions:\n  infiniband.PortDwn:\n    for: 1s\n',
      /no enabled family has a condition 'infiniband\.PortDwn'/,
    ],
    ['a syntax error', 'conditions: {\n', /wrong\.yaml:\d+:\d+/],
  ])('refuses %s with its place', async (_, text, message) => {
    const ran = await whatIf(recorded, policy('wrong.yaml', text));
    expect(ran.stderr).toMatch(message);
    expect(ran.stdout).toBe('');
    expect(ran.status).toBe(2);
  });

  it.each([
    [['--what-if=absent.yaml'], /policy file absent\.yaml cannot be read/],
    [['--what-if=absent.yaml', '--since=soon'], /flag --since: must be a duration/],
    [['--since=1d'], /flag --since: needs --what-if/],
    [['--what-if=absent.yaml', '-o', 'taint-rule'], /flag --output: must be text or json/],
  ])('says what is wrong with %j', async (flags, message) => {
    const ran = await run(['health', ...flags]);
    expect(ran.stderr).toMatch(message);
    expect(ran.status).toBe(2);
  });

  it('says that nothing was recorded', async () => {
    const file = policy('any.yaml', LONGER);
    const nowhere = await whatIf(join(root, 'nowhere'), file);
    expect(nowhere.stderr).toMatch(/nothing was recorded since .*: there is no record/);
    expect(nowhere.status).toBe(2);
    const memory = await run(['health', `--what-if=${file}`, '--state.file=']);
    expect(memory.stderr).toMatch(/nothing was recorded since .*: state\.file is empty/);
    expect(memory.status).toBe(2);
    const later = await whatIf(recorded, file, '--since=7d');
    expect(later.stderr).toMatch(/nothing was recorded since .*: the record ends earlier/);
    expect(later.status).toBe(2);
  });

  it('uses what is whole of a record whose last line was cut off', async () => {
    const directory = copy('cut');
    appendFileSync(lastFile(directory), '{"run":"x","seq":1,"at":17040');
    const ran = await whatIf(directory, policy('cut.yaml', LONGER));
    expect(ran.stderr).toContain('damaged');
    expect(ran.stdout).toContain('1 of 4 devices differ');
    expect(ran.status).toBe(1);
  });

  it('counts the time after a lost record as a time without an agent', async () => {
    const directory = copy('lost');
    const path = lastFile(directory);
    const lines = readFileSync(path, 'utf8').split('\n');
    // The first record of the flap at 11:00: until the next picture, which comes with the next day, nothing is known.
    const lost = lines.findIndex((line) => line.includes('"at"') && JSON.parse(line).at >= at(0, 11));
    writeFileSync(path, lines.toSpliced(lost, 1).join('\n'));
    const ran = await whatIf(directory, policy('lost.yaml', LONGER), '-o', 'json');
    const answer = JSON.parse(ran.stdout);
    expect(Date.parse(answer.to)).toBeLessThan(at(0, 11));
    expect(answer.present.outages).toBe(1);
    expect(answer.record.broken).toBe(1);
    expect(ran.stderr).toContain('damaged');
  });

  it('does not read the record of a newer version', async () => {
    const directory = copy('newer');
    for (const name of readdirSync(findings(directory))) {
      const path = join(findings(directory), name);
      writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":99'));
    }
    const ran = await whatIf(directory, policy('newer.yaml', LONGER));
    expect(ran.stderr).toMatch(/nothing was recorded since .*: the files are from a newer version of the agent/);
    expect(ran.status).toBe(2);
  });

  it('does not fail on records of a strange form', async () => {
    const directory = copy('strange');
    const strange = [
      {},
      { run: 'x', seq: 0, at: 1, ticks: [['a']] },
      { run: 'y', seq: 0, at: 1, ticks: [[0]], picture: { part: 0, of: 1 }, devices: { a: {} } },
    ];
    appendFileSync(lastFile(directory), strange.map((record) => `${JSON.stringify(record)}\n`).join(''));
    mkdirSync(join(findings(directory), 'findings-folder'));
    const ran = await whatIf(directory, policy('strange.yaml', LONGER));
    expect(ran.stdout).toContain('1 of 4 devices differ');
    expect(ran.status).toBe(1);
  });
});
