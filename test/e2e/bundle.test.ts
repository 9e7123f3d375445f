import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { removeAsKernel } from '../support/kernel-files.ts';
import { PROGRAM } from '../support/program.ts';
import { readersOf } from '../support/readers-of.ts';
import { type ServedAgent, seriesValue, startAgent } from '../support/serve.ts';

let root: string;
let flags: readonly string[];
/** Somewhere without package.json and node_modules above it. */
let elsewhere: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-bundle-'));
  elsewhere = join(root, 'elsewhere');
  mkdirSync(elsewhere);
  cpSync(dirname(PROGRAM), join(root, 'program'), { recursive: true });
  const hardware = hardwareOf(infiniband, { infiniband: 2 });
  new TreeWriter(root).apply(hardware);
  flags = [
    `--path.sysfs=${root}/sys`,
    `--path.procfs=${root}/proc`,
    `--path.dev=${root}/dev`,
    `--podresources.socket=${root}/absent.sock`,
    '--podresources.checkpoint=',
    '--state.file=',
    '--refresh.interval=200ms',
  ];
});

let agent: ServedAgent | undefined;
afterEach(() => agent?.stop('SIGKILL'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const program = (): string => join(root, 'program/main.js');
const run = (...args: string[]): string =>
  execFileSync(process.execPath, [program(), ...args], { cwd: elsewhere, encoding: 'utf8', stdio: 'pipe' });

/** Files of the program whose names begin with that of a module. */
const parts = (name: string): string[] => readdirSync(join(root, 'program')).filter((file) => new RegExp(`^${name}-\\w+\\.js$`).test(file));
const isWithoutProbe = (file: string): boolean =>
  readFileSync(join(root, 'program', file), 'utf8').includes('a probe runs in its own thread');
/** Texts of a file and of all that it imports as it is loaded. */
function loaded(file: string): string[] {
  const texts = new Map<string, string>();
  const load = (name: string): void => {
    if (texts.has(name)) return;
    const text = readFileSync(join(root, 'program', name), 'utf8');
    texts.set(name, text);
    for (const [, imported] of text.matchAll(/(?:^|;)(?:import|export)(?:[^;"'()]*from)?"\.\/([\w-]+\.js)"/gm)) load(imported as string);
  };
  load(file);
  return [...texts.values()];
}

function childrenOf(pid: number): string[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean));
}

describe('the bundled program, in a place where nothing is installed', () => {
  it('has one file for each thing that is started, parts that these load, and koffi beside', () => {
    const files = readdirSync(join(root, 'program'));
    expect(files).toEqual(expect.arrayContaining(['main.js', 'reader.js']));
    expect(readdirSync(join(root, 'program/node_modules')).toSorted()).toEqual(['@koromix', 'koffi']);
  });

  it('names its sources by their place in the checkout, wherever it was written', () => {
    const maps = readdirSync(join(root, 'program')).filter((file) => file.endsWith('.js.map'));
    const sources = maps.flatMap(
      (file) => (JSON.parse(readFileSync(join(root, 'program', file), 'utf8')) as { sources: string[] }).sources,
    );
    expect(sources).toContain('../src/cli/main.ts');
    expect(sources.filter((source) => !/^(?:\.\.\/(?:src|node_modules)\/|late:|empty:)/.test(source))).toEqual([]);
  });

  it('keeps out of each process what only others need', () => {
    const agent = ['main.js', ...parts('run'), ...parts('serve'), ...parts('nvidia').filter(isWithoutProbe)].flatMap(loaded).join('\n');
    expect(agent).toContain('node_modules/@grpc/');
    expect(agent).not.toMatch(/node_modules\/(?:ajv|systeminformation)\/|XMLParser/);
    // The reader's part of the same family has it.
    expect(
      parts('nvidia')
        .filter((file) => !isWithoutProbe(file))
        .flatMap(loaded)
        .join('\n'),
    ).toContain('XMLParser');
    const probe = ['reader.js', ...parts('infiniband')].flatMap(loaded).join('\n');
    expect(probe).toContain('port_xmit_data');
    expect(probe).not.toMatch(/node_modules\/(?:@grpc|express|fast-xml-parser)\//);
  });

  it('tells the same version as the program that was built', () => {
    expect(run('version')).toBe(execFileSync(process.execPath, ['dist/cli/main.js', 'version'], { encoding: 'utf8' }));
    expect(JSON.parse(run('version', '-o', 'json'))).toHaveProperty('version');
  });

  it('lists what the program that was built lists', () => {
    const lists = [
      run('list', '-o', 'prom', ...flags),
      execFileSync(process.execPath, ['dist/cli/main.js', 'list', '-o', 'prom', ...flags], { encoding: 'utf8' }),
    ];
    const [bundled, built] = lists.map((page) => page.replaceAll(/^(device_\w+_timestamp_seconds\S*) .*$/gm, '$1'));
    expect(bundled).toContain('device_received_bytes_total{device="mlx5_1",port="1"}');
    expect(bundled).toBe(built);
  });

  it('checks and prints its configuration, which takes YAML and JSON Schema', () => {
    expect(run('config', 'print', ...flags)).toContain('interval: 200ms');
    expect(JSON.parse(run('config', 'schema'))).toHaveProperty('properties');
  });

  it('lists the licence of each package in it', () => {
    const text = readFileSync(join(root, 'program/licences.txt'), 'utf8');
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> };
    const listed = [...text.matchAll(/^(\S+) [\d.]+ - \S.*$/gm)].map(([, name]) => name);
    expect(listed).toEqual(expect.arrayContaining(Object.keys(dependencies)));
    expect(text).toContain('Permission is hereby granted');
  });

  it('loads the native part of koffi', () => {
    const script = `import koffi from ${JSON.stringify(join(root, 'program/node_modules/koffi/index.js'))};
      process.stdout.write(String(koffi.load(null).func('int getpid()')() === process.pid));`;
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: elsewhere, encoding: 'utf8' });
    expect(said).toBe('true');
  });

  it('serves, is scraped, and ends on SIGTERM', async () => {
    agent = await startAgent([process.execPath, program(), 'serve', ...flags], { cwd: elsewhere });
    await agent.until('the HCAs', (page) => seriesValue(page, 'device_received_bytes_total', { device: 'mlx5_0' }) !== undefined);
    // The CPU is asked of commands that end afterwards.
    await agent.until('the host', (page) => (seriesValue(page, 'device_agent_host_cpus') ?? 0) > 0);
    const commands = (): string[] =>
      childrenOf(agent?.child.pid as number).map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').at(-2) ?? '');
    await expect.poll(commands, { message: 'one reader for all families of files' }).toEqual([expect.stringMatching(/\/reader\.js$/)]);
    // There are no FPGAs, and no probe for them.
    const runs = (page: string, family: string): number | undefined => seriesValue(page, 'device_agent_probe_runs_total', { family });
    const page = await agent.until('a ninth refresh', (text) => (runs(text, 'infiniband') ?? 0) > 8);
    expect(runs(page, 'fpga'), 'a family without hardware never runs').toBeUndefined();
    const [script = ''] = /\/assets\/live\.js[^"]*/.exec(await (await fetch(agent.url)).text()) ?? [];
    expect(await (await fetch(agent.url + script)).text(), 'the script of the pages').toContain('EventSource');
    const runbooks = `${agent.url}/docs/runbooks/devices.md`;
    expect(await (await fetch(runbooks)).text()).toEqual(readFileSync('docs/runbooks/devices.md', 'utf8'));
    const inBrowser = await (await fetch(runbooks, { headers: { accept: 'text/html,*/*;q=0.8' } })).text();
    expect(inBrowser, 'the address of a section').toContain('<h2 id="deviceunhealthy">DeviceUnhealthy</h2>');
    expect(inBrowser).toContain('<a href="../health.md">');
    expect(agent.log()).not.toMatch(/"level":"error"|probe-crashed/);
    expect(await agent.stop()).toBe(0);
  });

  it('reads on by another reader when a device hangs, which ends with the agent', async () => {
    const counter = join(root, 'sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data');
    removeAsKernel(counter);
    execFileSync('mkfifo', [counter]);
    agent = await startAgent([process.execPath, program(), 'serve', ...flags], { cwd: elsewhere });
    const page = await agent.until(
      'the other HCA',
      (text) =>
        seriesValue(text, 'device_agent_probe_hung', { family: 'infiniband' }) === 1 &&
        seriesValue(text, 'device_received_bytes_total', { device: 'mlx5_1' }) !== undefined,
    );
    expect(seriesValue(page, 'device_received_bytes_total', { device: 'mlx5_0' })).toBeUndefined();
    const readers = readersOf(agent.child.pid as number);
    expect(readers).toHaveLength(1);
    expect(await agent.stop()).toBe(0);
    // In a container without an init process, an ended one stays as a zombie, which has no command line.
    const isThere = (): boolean => existsSync(`/proc/${readers[0]}`) && readFileSync(`/proc/${readers[0]}/cmdline`, 'utf8') !== '';
    await expect.poll(isThere).toBe(false);
  });
});
