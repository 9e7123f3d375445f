import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { packCapture } from '../../src/capture/archive.ts';
import { commands } from '../../src/cli/commands.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { controlSocket } from '../../src/server/control/control-socket.ts';
import { SimulatedKubelet } from '../../src/sim/kubelet/kubelet.ts';
import { captureOf } from '../support/one-capture.ts';
import { PseudoTerminal } from '../support/pseudo-terminal.ts';
import { MAIN, run } from './command-line.ts';
import { toldBoard } from './top/fixed-board.ts';

/** A text with each kind of character that must not reach a terminal, and with a line of its own. */
const HOSTILE = `owned\u001b]0;t\u0007\u001b[5n\u009b6n\u202ert\u200f\u2066\u2028\u2029\u0085\u007f\u200b\ufe0f\u{e0041}\b\rback\nFORGED`;
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/u;
/** What the commands write themselves on a terminal: a screen, a table in place, progress. */
const ESCAPE = '\u001b\\[';
const OWN = new RegExp(`${ESCAPE}(?:\\?\\d+[hl]|\\d+;\\d+H|[HJK]|2J|0m)|\\r+(?=\\n|${ESCAPE}K|$)`, 'g');

let folder: string;
/** Answers `health accept` and `release`. */
const control = createServer((request, response) => {
  request.resume().on('end', () => response.end(JSON.stringify({ device: HOSTILE, accepted: [HOSTILE], family: HOSTILE, hanging: 0 })));
});
let kubelet: SimulatedKubelet;
let agent: Server;
let world: string[];
let asked: string[];
let archive: string;
const terminals: PseudoTerminal[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-hostile-'));
  const hca = join(folder, 'sys/class/infiniband/mlx5_0');
  for (const path of [join(hca, 'ports/1'), join(folder, 'proc'), join(folder, 'dev'), join(folder, HOSTILE)])
    mkdirSync(path, { recursive: true });
  const files = { node_type: '1: CA\n', hca_type: HOSTILE, fw_ver: HOSTILE, board_id: HOSTILE, 'ports/1/state': `4: ACTIVE${HOSTILE}` };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(hca, name), text);
  kubelet = new SimulatedKubelet({ directory: join(folder, 'kubelet') });
  const devices = [
    { resource: `${HOSTILE}/x`, id: 'mlx5_0', numaNodes: [] },
    { resource: 'nobody/knows', id: HOSTILE, numaNodes: [] },
  ];
  kubelet.admitPod({ namespace: HOSTILE, name: HOSTILE, uid: 'u', containers: [{ name: HOSTILE, devices }] } as never);
  await kubelet.start();
  agent = createServer((request, response) => {
    const { url = '' } = request;
    // An API server whose errors are hostile.
    if (url.startsWith('/api/v1/nodes/')) return response.writeHead(500).end(JSON.stringify({ message: HOSTILE }));
    if (url.startsWith('/refuses/')) return response.writeHead(503).end(JSON.stringify({ status: 'error', error: HOSTILE }));
    if (url === '/api/v1/query') {
      let sent = '';
      return request
        .on('data', (part) => {
          sent += part;
        })
        .on('end', () => response.end(JSON.stringify(answerToQuery(new URLSearchParams(sent).get('query') ?? ''))));
    }
    const body = answerTo(url);
    return response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
  });
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  world = [
    ...['sys', 'proc', 'dev'].map((name) => `--path.${name === 'sys' ? 'sysfs' : name === 'proc' ? 'procfs' : 'dev'}=${folder}/${name}`),
    `--podresources.socket=${kubelet.podResourcesSocket}`,
    '--podresources.checkpoint=',
    '--web.listen-address=127.0.0.1:1',
    '--refresh.interval=1s',
    ...Object.keys(familyLoaders)
      .filter((family) => family !== 'infiniband')
      .map((family) => `--no-probe.${family}`),
  ];
  asked = ['--state.file=', `--web.listen-address=127.0.0.1:${(agent.address() as AddressInfo).port}`];
  control.listen(controlSocket(`${folder}/health.json`));
  archive = join(folder, HOSTILE, 'a.json.gz');
  writeFileSync(archive, captureBytes(files));
});
afterAll(async () => {
  for (const terminal of terminals) terminal.kill();
  agent.close();
  control.close();
  agent.closeAllConnections();
  await kubelet.close();
  rmSync(folder, { recursive: true, force: true });
});

function captureBytes(files: Readonly<Record<string, string>>): Buffer {
  const options = Object.fromEntries([['probe.infiniband', 'true']]);
  const tree = Object.entries(files).map(([name, file]) => [`sys/class/infiniband/mlx5_0/${name}`, { file }] as const);
  const page = `device_x{name="${HOSTILE.replaceAll('\n', '\\n')}"} 1\n`;
  return packCapture(captureOf({ tree: Object.fromEntries(tree) }, undefined, { agentVersion: HOSTILE, node: HOSTILE, options, page }));
}

/** An agent whose every text is hostile. */
function answerTo(url: string): unknown {
  const condition = { type: HOSTILE, instance: HOSTILE, severity: HOSTILE, reason: HOSTILE, message: HOSTILE, remedy: HOSTILE };
  const device = { family: 'infiniband', id: HOSTILE, aliases: [HOSTILE], uuid: HOSTILE, key: HOSTILE };
  const incident = { id: HOSTILE, time: HOSTILE, device: HOSTILE, states: [HOSTILE], conditions: [HOSTILE], holders: [HOSTILE] };
  if (url.startsWith('/api/v1/devices?')) return hostileBoard({ ...condition, since: TIME });
  if (url === '/api/incidents') return { incidents: [incident] };
  if (url.startsWith('/api/incidents/')) {
    const holder = { namespace: HOSTILE, pod: HOSTILE, container: HOSTILE, resource: HOSTILE, deviceId: HOSTILE, since: HOSTILE };
    const verdict = { state: HOSTILE, conditions: [condition] };
    const lists = {
      changes: [{ time: HOSTILE, to: HOSTILE, reason: HOSTILE, message: HOSTILE }],
      holders: [holder],
      state: [],
      events: [],
      others: [],
    };
    const processes = [{ pid: 1, name: HOSTILE, command: HOSTILE }];
    const kernel = { lines: [{ time: HOSTILE, text: HOSTILE }] };
    const host = { kernel: HOSTILE };
    return {
      ...lists,
      id: HOSTILE,
      time: HOSTILE,
      node: HOSTILE,
      agentVersion: HOSTILE,
      host,
      device,
      before: verdict,
      after: verdict,
      processes,
      kernel,
      readings: { times: [], series: [] },
    };
  }
  if (url.startsWith('/api/usage')) {
    const amounts = { containers: 1, allocatedSeconds: 1, shareSeconds: 1, idleSeconds: 1, idleShareSeconds: 1, unobservedSeconds: 1 };
    const row = { name: HOSTILE, ...amounts, busySeconds: { [HOSTILE]: 1 } };
    return {
      since: HOSTILE,
      until: HOSTILE,
      by: HOSTILE,
      rows: [row, { ...row, name: '=HYPERLINK("x")' }],
      total: row,
      leftOut: 1,
      ledger: { error: HOSTILE },
    };
  }
  if (url.startsWith('/api/v1/explain/')) return { takenAt: HOSTILE, lines: [HOSTILE] };
  return undefined;
}

const TIME = '2026-03-01T12:00:00.000Z';

function hostileBoard(condition: object): object {
  const { devices, ...board } = toldBoard();
  const health = { state: 'unhealthy', since: TIME, conditions: [condition], pending: [{ ...condition, countsAt: TIME }] };
  const holder = { namespace: HOSTILE, pod: HOSTILE, container: HOSTILE, resource: HOSTILE, deviceId: HOSTILE };
  const names = { key: HOSTILE, id: HOSTILE, name: HOSTILE, aliases: [HOSTILE], uuid: HOSTILE, model: HOSTILE };
  return {
    ...board,
    node: HOSTILE,
    problems: [{ family: HOSTILE, code: HOSTILE, message: HOSTILE, remedy: HOSTILE }],
    unresolved: [{ ...holder, why: HOSTILE }],
    devices: [{ ...devices[0], ...names, holders: [holder], shown: [{ label: HOSTILE, text: HOSTILE }], health }],
  };
}

interface Case {
  readonly args: () => readonly string[];
  /** Also a variable of the environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The command runs on: it is ended when the screen shows this. */
  readonly until?: RegExp;
  /** It shows no text of others. */
  readonly isOwn?: true;
}

const prometheus = (path = ''): string => `--prometheus=http://127.0.0.1:${(agent.address() as AddressInfo).port}${path}`;

/** A Prometheus whose every label is hostile. */
function answerToQuery(query: string): unknown {
  if (query === 'time()') return { status: 'success', data: { resultType: 'scalar', result: [1_000, '1000'] } };
  const names = ['cluster', 'node', 'family', 'kind', 'model', 'device', 'condition', 'reason', 'holder_namespace', 'holder_pod'];
  const metric = { ...Object.fromEntries(names.map((name) => [name, HOSTILE])), level: '3', severity: 'fatal', what: 'clock' };
  return { status: 'success', data: { resultType: 'vector', result: [{ metric, value: [1_000, '1000'] }] }, warnings: [HOSTILE] };
}

/** Each command, with hostile text in all that it reads. */
const CASES: Readonly<Record<string, Case>> = {
  serve: {
    args: () => [...world, '--web.listen-address=127.0.0.1:0', '--state.file='],
    environment: { [`DEVICE_AGENT_${HOSTILE}`]: '1' },
    until: /listening|serving/,
  },
  list: { args: () => world },
  top: { args: () => asked, until: /owned/ },
  health: { args: () => asked },
  'health accept': { args: () => [HOSTILE, `--why=${HOSTILE}`, `--state.file=${folder}/health.json`] },
  release: { args: () => [HOSTILE, '--end', `--state.file=${folder}/health.json`] },
  incidents: { args: () => asked },
  explain: { args: () => ['--pod=a/b', ...asked] },
  publish: { args: () => [...asked, `--publish.api-server=http://127.0.0.1:${(agent.address() as AddressInfo).port}`], until: /owned/ },
  'kernel-log': { args: () => [`--socket=${folder}/${HOSTILE}/none/log.sock`], until: /passing/ },
  usage: { args: () => asked },
  doctor: { args: () => [...world, `--state.file=${folder}/${HOSTILE}/none/x.json`] },
  demo: { args: () => ['--replay', archive, '--web.listen-address=127.0.0.1:0', '--log.level=error'], until: /Ctrl-C/ },
  capture: { args: () => ['--no-redact', `--output=${folder}/${HOSTILE}/made.json.gz`, ...world] },
  replay: { args: () => [archive] },
  'demo fleet': { args: () => [], until: /Ctrl-C/, isOwn: true },
  'demo fault': { args: () => [HOSTILE, HOSTILE], environment: { TMPDIR: '/nonexistent' }, isOwn: true },
  'demo fault clear': { args: () => [HOSTILE], environment: { TMPDIR: '/nonexistent' }, isOwn: true },
  fleet: { args: () => [prometheus('/refuses'), '--listen=127.0.0.1:0'], until: /owned/ },
  'fleet list': { args: () => [prometheus()] },
  'fleet top': { args: () => [prometheus()] },
  'fleet usage': { args: () => [prometheus()] },
  'fleet incidents': { args: () => [prometheus()] },
  'config check': { args: () => [`--config.file=${folder}/${HOSTILE}/absent.yaml`] },
  'config print': { args: () => [`--podresources.socket=/${HOSTILE}`] },
  'config schema': { args: () => [], isOwn: true },
  'family check': { args: () => [`${folder}/${HOSTILE}/absent.yaml`] },
  'family list': { args: () => [`--family.dir=${folder}/${HOSTILE}/absent`] },
  'family schema': { args: () => [], isOwn: true },
  version: { args: () => [], isOwn: true },
};

async function onTerminal(args: readonly string[], { environment, until }: Case): Promise<string> {
  const terminal = new PseudoTerminal({ columns: 400, rows: 200 }, [process.execPath, MAIN, ...args], {
    DEVICE_AGENT_STATE_FILE: '',
    TERM: 'xterm',
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    ...environment,
  });
  terminals.push(terminal);
  if (until !== undefined) {
    await terminal.until(until);
    terminal.signal(15);
  }
  await terminal.ended;
  return terminal.bytes;
}

function expectHarmless(bytes: string): void {
  const text = bytes.replace(OWN, '');
  expect(JSON.stringify(text.match(new RegExp(`.{0,40}${UNSEEN.source}.{0,20}`, 'u'))?.[0])).toBeUndefined();
  expect(text).not.toMatch(/^\W*FORGED/m);
}

describe('a text of others on a terminal', () => {
  it('is tried with each command', () => {
    expect(Object.keys(CASES)).toEqual(commands.map(({ name }) => name));
  });

  it('passes through one writer: nothing else writes to the standard output', () => {
    const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
    // An archive has bytes and no text, and it is refused on a terminal.
    const others = ['cli/capture/file.ts'];
    expect(files.filter((path) => /stdout\.write|stdout\.fd|console\.log\(/.test(readFileSync(join('src', path), 'utf8')))).toEqual(others);
  });

  const runs = commands.flatMap(({ name, formats = [''] }) => formats.map((format) => [name, format] as const));
  it.concurrent.each(runs)('is shown with visible escapes by %s %s', async (name, format) => {
    const one = CASES[name] as Case;
    const bytes = await onTerminal([...name.split(' '), ...(format === '' ? [] : ['-o', format]), ...one.args()], one);
    expectHarmless(bytes);
    if (one.isOwn !== true) expect(bytes).toContain('owned');
  });

  it.concurrent.each<[string, () => readonly string[]]>([
    ['list --by=pod', () => ['list', '--by=pod', ...world]],
    ['incidents <id>', () => ['incidents', HOSTILE, ...asked]],
    ['incidents <unknown id>', () => ['incidents', `${HOSTILE}2`, ...asked]],
    ['health --device', () => ['health', '--device', HOSTILE, ...asked]],
    ['health --npd', () => ['health', '--npd', HOSTILE, ...asked]],
    ['health of an unknown device', () => ['health', '--device', `${HOSTILE}2`, ...asked]],
    ['logs in JSON', () => ['doctor', ...world, `--config.file=/${HOSTILE}`, '--log.format=json']],
    ['an unknown command', () => [HOSTILE]],
    ['an unknown flag', () => ['list', `--${HOSTILE}`]],
    ['a wrong value', () => ['list', `--refresh.interval=${HOSTILE}`]],
  ])('is shown with visible escapes by %s', async (_, args) => {
    const bytes = await onTerminal(args(), CASES.version as Case);
    expectHarmless(bytes);
    expect(bytes).toContain('owned');
  });

  it('is shown with visible escapes by list --watch', async () => {
    const bytes = await onTerminal(['list', '--watch', ...world], { ...(CASES.list as Case), until: /owned/ });
    expectHarmless(bytes);
  });
});

describe('a text of others in a pipe', () => {
  it('is the same text to those that read JSON and YAML, and has no control', async () => {
    const texts = await Promise.all(['json', 'yaml'].map(async (format) => (await run(['list', '-o', format, ...world])).stdout));
    for (const text of texts) expectHarmless(text);
    const pods = [JSON.parse(texts[0] as string), parse(texts[1] as string)].map(({ allocations }) => allocations[0].pod);
    expect(pods).toEqual([HOSTILE, HOSTILE]);
  });

  it('is as it was in metrics, whose format has no escapes for it', async () => {
    expect((await run(['list', '-o', 'prom', ...world])).stdout).toContain(HOSTILE.replaceAll('\n', '\\n'));
  });

  it('is no formula and no control in CSV', async () => {
    const { stdout } = await run(['usage', '-o', 'csv', ...asked]);
    expectHarmless(stdout.replaceAll('\r\n', '\n'));
    expect(stdout).toMatch(/^"'=HYPERLINK\(""x""\)",/m);
  });
});
