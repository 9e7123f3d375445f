import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { commands } from '../../src/cli/commands.ts';
import { MAIN, run } from './command-line.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-cli-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(text: string): string {
  const path = join(folder, 'agent.yaml');
  writeFileSync(path, text);
  return path;
}

describe('wrong command lines', () => {
  it.each<[string, string[], string]>([
    ['no command', [], '"device-agent" needs a command:'],
    ['unknown command', ['docter'], 'unknown command "device-agent docter"; did you mean doctor?'],
    ['unknown command in a group', ['config', 'prnt'], 'unknown command "device-agent config prnt"; did you mean print?'],
    ['group without command', ['config'], '"device-agent config" needs a command: check, print, schema'],
    ['unknown flag', ['config', 'print', '--log.levl=debug'], 'unknown flag --log.levl; did you mean --log.level?'],
    ['unknown flag before the command', ['--paht.sysfs=/x', 'config', 'print'], 'unknown flag --paht.sysfs; did you mean --path.sysfs?'],
    ['unknown negation', ['config', 'print', '--no-log.level'], 'unknown flag --no-log.level'],
    ['switch with a value', ['list', '--probe.fpga=false'], 'flag --probe.fpga: takes no value: write --probe.fpga or --no-probe.fpga'],
    ['help on no command', ['help', 'lst'], 'unknown command "device-agent lst"; did you mean list?'],
    ['more than can be simulated', ['demo', '--sim.devices=nvidia=100000'], 'flag --sim.devices: nvidia must be 64 or less'],
    ['file without end', ['config', 'check', '--config.file=/dev/zero'], '/dev/zero cannot be read: not a regular file'],
    ['path too long for a socket', ['config', 'check', `--web.listen-address=/${'x'.repeat(107)}`], 'a socket path of 107 bytes at most'],
    ['flag without value', ['config', 'print', '--log.level'], '--log.level'],
    ['value of the wrong kind', ['config', 'print', '--refresh.interval=fast'], 'flag --refresh.interval: must be a duration'],
    ['too many words', ['config', 'print', 'all'], 'too many arguments'],
    ['unknown form of output', ['config', 'print', '-o', 'xml'], 'Allowed choices are yaml, table, json'],
    ['address without port', ['config', 'check', '--web.listen-address=localhost'], 'web.listen-address must be :port'],
    ['path without slash', ['config', 'check', '--web.telemetry-path=metrics'], 'web.telemetry-path must be a path'],
  ])('%s', async (_name, args, message) => {
    const { status, stdout, stderr } = await run(args);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2);
    expect([status, stdout]).toEqual([2, '']);
  });

  it('names file, line and column of a wrong file', async () => {
    const path = file('log:\n  level: info\nrefresh:\n  intervall: 5s\n');
    const { status, stderr } = await run(['config', 'check', `--config.file=${path}`]);
    expect(stderr).toContain(`  ${path}:4:3: unknown key "intervall" in refresh; did you mean interval?`);
    expect(status).toBe(2);
  });

  it('tells a health policy without effect, with status 1', async () => {
    const path = file('health: {conditions: {infiniband.NoSuchThing: {for: 3s}}}\n');
    const { status, stdout } = await run(['config', 'check', `--config.file=${path}`]);
    expect([status, stdout]).toEqual([1, "health.conditions: no enabled family has a condition 'infiniband.NoSuchThing'\n"]);
  });

  it('warns of a variable that nothing knows, and goes on', async () => {
    const { status, stderr } = await run(['config', 'check'], {
      DEVICE_AGENT_REFRESH_INTERVALL: '5s',
      DEVICE_AGENT_PORT: 'tcp://10.0.0.1:9835',
    });
    expect(stderr).toMatch(
      /WARN {2}unknown environment variable variable=DEVICE_AGENT_REFRESH_INTERVALL nearest=DEVICE_AGENT_REFRESH_INTERVAL\n$/,
    );
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(status).toBe(0);
  });
});

describe('a process that may open next to nothing', () => {
  // How many Node itself takes depends on its version: the agent does not start, or its probes do not, or not all of them.
  it('names the limit to raise, as soon as Node itself has enough to start', async () => {
    const told = await Promise.all([18, 19, 20, 21, 22, 23, 24].map((most) => run(['list'], {}, most)));
    expect(told.map(({ stderr }) => stderr).filter((text) => /Raise the open file limit/.test(text))).not.toEqual([]);
  });

  it.each([24, 28, 32, 40])('says so in sentences, and lists nothing (%i descriptors)', async (most) => {
    const { stdout, stderr } = await run(['list'], {}, most);
    expect(stderr).toMatch(/./);
    expect(stderr).not.toMatch(/^ +at |is a bug/m);
    expect(stdout.split('\n').slice(1).join('')).toBe('');
  });

  it('knows nothing of the health of devices, and does not call them sick', async () => {
    const { status, stdout } = await run(['health', '--web.listen-address=127.0.0.1:1'], {}, 32);
    expect(status).toBe(2);
    expect(stdout).toMatch(/^(no device is known\n)?$/);
  });
});

describe('the first process of a container', () => {
  const nobody = userInfo().uid !== 0;

  it.skipIf(nobody)(`is ended by a signal while it starts${nobody ? ' (skipped: needs root)' : ''}`, async () => {
    const early = `process.on('newListener', function heard(name) {
      if (name !== 'SIGTERM') return;
      process.off('newListener', heard);
      process.nextTick(() => process.kill(process.pid, 'SIGTERM'));
    });`;
    const preload = `--import=data:text/javascript,${encodeURIComponent(early)}`;
    const flags = ['--web.listen-address=:0', '--state.file=', '--podresources.checkpoint='];
    const args = ['--pid', '--fork', '--kill-child', process.execPath, preload, MAIN, 'serve', ...flags];
    const ended = await new Promise((resolve) => {
      execFile('unshare', args, (error, _stdout, stderr) => resolve([error?.code, stderr]));
    });
    // Newer versions of Node load all modules before they look for signals: the agent then stops in order, and is not ended.
    expect(ended).toEqual(
      expect.toBeOneOf([
        [143, ''],
        [undefined, expect.stringMatching(/ stopping signal=SIGTERM\n$/)],
      ]),
    );
  });
});

describe('a working directory that is gone', () => {
  it('keeps no probe from starting', async () => {
    const sysfs = join(folder, 'sys');
    mkdirSync(join(sysfs, 'class/net'), { recursive: true });
    const script = `cd ${folder} && mkdir gone && cd gone && rmdir ../gone && exec ${process.execPath} ${resolve(MAIN)} list -o json --path.sysfs=${sysfs}`;
    const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((done) => {
      execFile('bash', ['-c', script], (_error, out, err) => done({ stdout: out, stderr: err }));
    });
    expect(stderr).not.toContain('uv_cwd');
    const { problems } = JSON.parse(stdout) as { readonly problems: readonly { readonly family?: string }[] };
    expect(problems.filter(({ family }) => family !== undefined)).toEqual([]);
  });
});

describe('configuration', () => {
  it('takes options before and after the command, the environment and the file, each with its origin', async () => {
    const path = file('refresh: {interval: 5s, timeout: 7s}\n');
    const args = ['--log.level=warn', 'config', 'print', '-o', 'json', '--path.sysfs', '/x'];
    const { stdout } = await run(args, { DEVICE_AGENT_CONFIG_FILE: path, DEVICE_AGENT_REFRESH_TIMEOUT: '8s' });
    expect(JSON.parse(stdout)).toMatchObject({
      'config.file': { value: path, origin: 'environment DEVICE_AGENT_CONFIG_FILE' },
      'log.level': { value: 'warn', origin: 'flag --log.level' },
      'path.sysfs': { value: '/x', origin: 'flag --path.sysfs' },
      'refresh.interval': { value: '5s', origin: `file ${path}:1` },
      'refresh.timeout': { value: '8s', origin: 'environment DEVICE_AGENT_REFRESH_TIMEOUT' },
      'log.format': { value: 'text', origin: 'default' },
    });
  });

  it('prints what it accepts, and the schema accepts it too', async () => {
    const { stdout: printed } = await run(['config', 'print', '--refresh.interval=1m30s', '--refresh.stale-after=5m']);
    expect(await run(['config', 'check', `--config.file=${file(printed)}`])).toMatchObject({ status: 0, stdout: '', stderr: '' });
    const { stdout: schema } = await run(['config', 'schema']);
    const validate = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(schema) as object);
    expect(validate(parse(printed)), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ refresh: { intervall: '5s' } })).toBe(false);
  });

  it('shows in the help of a command its own options, and where the others are', async () => {
    const { stdout, status } = await run(['usage', '--help']);
    expect(status).toBe(0);
    expect([...stdout.matchAll(/^ +(?:-\w, )?(--[\w.-]+)/gm)].map(([, flag]) => flag)).toEqual([
      '--output',
      '--read',
      '--since',
      '--by',
      '--family',
      '--help',
    ]);
    expect(stdout).toContain('"device-agent --help-all" shows the options that all commands have.');
  });

  it('shows commands first and the usual options in the help, in 40 lines of 80 columns at most', async () => {
    const { stdout, status } = await run(['--help']);
    const lines = stdout.trimEnd().split('\n');
    expect(status).toBe(0);
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines.indexOf('Commands:')).toBeLessThan(lines.indexOf('Options:'));
    expect(stdout).toMatch(/^ {2}--help-all /m);
    const groups = new Set(commands.map(({ name }) => name.split(' ')[0] as string));
    for (const name of groups) expect(stdout, name).toMatch(new RegExp(`^  ${name} +\\S`, 'm'));
  });

  it('shows every option in the help of every command that asks for all', async () => {
    const { stdout } = await run(['config', 'print', '-o', 'json']);
    const structured = ['join.rules', 'health', 'plugin.resources', 'health.policy', 'expect', 'usage.idle', 'usage.prices'];
    const keys = Object.keys(JSON.parse(stdout) as object).filter((key) => !structured.includes(key));
    expect(keys.length).toBeGreaterThan(15);
    for (const args of [['--help-all'], ['doctor', '--help-all'], ['config', 'print', '--help-all']]) {
      const { stdout: help, status } = await run(args);
      expect(
        keys.filter((key) => !new RegExp(`^ +--(\\[no-\\])?${key.replaceAll('.', '\\.')}[ \\n]`, 'm').test(help)),
        args.join(' '),
      ).toEqual([]);
      expect(help).toContain('Examples:');
      expect(help.match(/^Options:$/gm)).toHaveLength(1);
      expect(status).toBe(0);
    }
  });
});

describe('version', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

  it.each([['version'], ['--version'], ['version', '-o', 'text'], ['version', '--log.level=debug']])(
    'is told by %s %s %s',
    async (...args) => {
      expect(await run(args)).toMatchObject({ status: 0, stdout: expect.stringContaining(`device-agent ${version} (node `), stderr: '' });
    },
  );

  it.each([['-o', 'json'], ['-ojson'], ['--output=json']])('is told as JSON by version %s %s', async (...args) => {
    expect(JSON.parse((await run(['version', ...args])).stdout)).toMatchObject({ version, nodeVersion: process.versions.node });
  });
});

describe('a reader that goes away', () => {
  it.each(['config schema', '--help', 'config print', 'version'])('ends "%s" quietly', async (command) => {
    const script = `set -o pipefail; ${process.execPath} ${MAIN} ${command} | true; echo "status \${PIPESTATUS[0]}"`;
    const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
      execFile('bash', ['-c', script], (_error, out, err) => resolve({ stdout: out, stderr: err }));
    });
    expect([stdout, stderr]).toEqual(['status 0\n', '']);
  });
});
