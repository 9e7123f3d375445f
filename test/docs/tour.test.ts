import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../support/installed.ts';
import { PROGRAM } from '../support/program.ts';
import { startPrometheus } from '../support/prometheus.ts';
import { quickRules, scrapeJob } from '../support/scrapes.ts';
import { type ServedAgent, startAgent } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { DEADLINE_MS, eventually } from '../support/until.ts';

const text = readFileSync('docs/tour.md', 'utf8');
const steps = [...text.matchAll(/^```console\n\$ (.*)\n((?:.*\n)*?)```/gm)].map(([, line = '', printed = '']) => ({
  line,
  printed: printed.trimEnd().split('\n'),
}));
const [first, ...others] = steps as [(typeof steps)[number], ...(typeof steps)[number][]];
const installed = isInstalled('prometheus');
const hasCurl = isInstalled('curl');
const WAIT = { interval: 500 };

let directory: string;
let demo: ServedAgent;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'tour-'));
  mkdirSync(join(directory, 'bin'));
  mkdirSync(join(directory, 'tmp'));
  const program = join(directory, 'bin/device-agent');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${resolve(PROGRAM)}' "$@"\n`);
  chmodSync(program, 0o755);
  demo = await startAgent(first.line.replace('device-agent', program).split(' '), { env: environment() });
});
afterAll(async () => {
  expect(await demo.stop('SIGINT')).toBe(0);
  rmSync(directory, { recursive: true });
});

function environment(): Record<string, string | undefined> {
  return { ...process.env, PATH: `${directory}/bin:${process.env.PATH}`, TMPDIR: join(directory, 'tmp') };
}

/** Runs a command of the tour against the demo, which listens on a free port. */
function run(line: string): string {
  const address = new URL(demo.url).host;
  const [source = ''] = /^ *\. .*\/env$/m.exec(demo.log()) ?? [];
  const command = `${source}\n${line.replace('localhost:9835', address)}`;
  const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8', env: environment(), timeout: DEADLINE_MS });
  return stdout + stderr;
}

/** A line of the tour fits a line that begins with its words, however much space is between them; `…` stands for any text. */
function pattern(line: string): RegExp {
  const parts = line.split('…').map((part) => part.split(/ +/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  return new RegExp(`^ *${parts.map((words) => words.join(' +')).join('.*')}(?: .*)?$`);
}

/** The first line of the tour that is not printed, in its order. */
function missingIn(output: string, printed: readonly string[]): string | undefined {
  const lines = output.split('\n');
  let at = 0;
  return printed.find((wanted) => {
    const found = lines.findIndex((line, n) => n >= at && pattern(wanted).test(line));
    at = found + 1;
    return found < 0;
  });
}

describe('docs/tour.md', () => {
  it('starts a demo that says what the tour says', () => {
    expect(first.line).toMatch(/^device-agent demo/);
    expect(missingIn(demo.log(), first.printed)).toBeUndefined();
  });

  // The steps depend on each other, so they are one test.
  it.skipIf(!hasCurl)(`has commands that print what it shows${unless(hasCurl, 'curl is not installed')}`, async () => {
    expect(others.length).toBeGreaterThan(8);
    for (const { line, printed } of others) {
      const look = (): void => {
        const output = run(line);
        expect(missingIn(output, printed), `${line}\n${output}`).toBeUndefined();
      };
      // A fault begins and ends once; the rest is looked at until the agent has seen it.
      if (line.includes('demo fault')) look();
      else await eventually(look);
    }
  });

  it.skipIf(!installed)(`tells the alert that fires in a real Prometheus${unless(installed, 'prometheus is not installed')}`, async () => {
    const [, alert] = /raise the alert `(\w+)`/.exec(text) ?? [];
    const nodes = [{ address: new URL(demo.url).host, node: 'node-1' }];
    const config = { global: { evaluation_interval: '1s' }, rule_files: ['rules.yaml'], scrape_configs: [scrapeJob('plain', nodes)] };
    const prometheus = await startPrometheus(config, { 'rules.yaml': quickRules() });
    try {
      run('device-agent demo fault xid79 0008:01:00.0');
      const firing = async (): Promise<unknown[]> =>
        (await prometheus.query(`ALERTS{alertname="${alert}",alertstate="firing"}`)).map(({ metric }) => metric.device);
      await expect.poll(firing, WAIT).toContain('GPU-5e1f0000-0000-4000-8000-000000000001');
      run('device-agent demo fault clear');
      await expect.poll(firing, WAIT).toEqual([]);
    } finally {
      await prometheus.stop();
    }
  });
});
