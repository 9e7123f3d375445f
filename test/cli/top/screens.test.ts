import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Board } from '../../../src/board/board.ts';
import { PseudoTerminal } from '../../support/pseudo-terminal.ts';
import { MAIN, run } from '../command-line.ts';
import { FakeAgent } from './fake-agent.ts';

const UTF8 = { TERM: 'xterm-256color', LANG: 'C.UTF-8' };
const PLAIN = { ...UTF8, NO_COLOR: '1' };

const SIGINT = 2;
const SIGUSR2 = 12;
const SIGTERM = 15;

let agent: FakeAgent;
let address: string;
const opened: PseudoTerminal[] = [];

beforeEach(async () => {
  agent = new FakeAgent();
  address = await agent.listen();
});
afterEach(async () => {
  for (const terminal of opened.splice(0)) terminal.kill();
  await agent.die();
});

function top(columns: number, rows: number, environment: Readonly<Record<string, string>>, ...flags: string[]): PseudoTerminal {
  const command = [process.execPath, MAIN, 'top', `--web.listen-address=${address}`, ...flags];
  const terminal = new PseudoTerminal({ columns, rows }, command, { DEVICE_AGENT_STATE_FILE: '', ...environment });
  opened.push(terminal);
  return terminal;
}

/** The first frame that shows the board. */
const READY = /mlx5_0/;

/** The port is another one in each run. */
const masked = (screen: string): string => screen.replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT');

describe('screens of top', () => {
  it.each([
    [80, 24],
    [200, 50],
    [40, 12],
    [20, 8],
  ])('%ix%i without colour', async (columns, rows) => {
    const terminal = top(columns, rows, PLAIN);
    // Beside a long list stands the chosen device, of which the agent is asked next.
    expect(masked(await terminal.until(columns < 160 ? READY : /^(?=[\s\S]*mlx5_0)(?![\s\S]*not read yet)/))).toMatchSnapshot();
    expect(terminal.bytes).not.toMatch(/\[[\d;]*m/);
  });

  it('80x24 in ASCII', async () => {
    const screen = await top(80, 24, { ...PLAIN, LANG: 'C' }).until(READY);
    expect(masked(screen)).toMatchSnapshot();
    expect(screen).toMatch(/^[\n -~]*$/);
  });

  it.each([
    ['256 colours', UTF8, /\[1;38;5;160;48;5;240m■ Unhealthy/],
    ['16 colours', { ...UTF8, TERM: 'xterm' }, /\[1;31;4m■ Unhealthy/],
  ])('has %s where the terminal has them', async (_what, environment, sick) => {
    const terminal = top(80, 24, environment, '--filter=state:unhealthy');
    await terminal.until(READY);
    // The chosen line is inverted as a whole.
    terminal.type('G');
    await terminal.until(/^> training/m);
    expect(terminal.bytes).toMatch(sick);
  });

  it.each([
    ['TERM=dumb', { ...UTF8, TERM: 'dumb' }, []],
    ['--no-color', UTF8, ['--no-color']],
  ])('has no colour with %s', async (_what, environment, flags) => {
    const terminal = top(80, 24, environment, ...flags);
    await terminal.until(READY);
    expect(terminal.bytes).not.toMatch(/\[[\d;]*m/);
  });

  it('shows the same at the new size after a resize, as if it had begun there', async () => {
    const terminal = top(80, 24, PLAIN);
    await terminal.until(READY);
    terminal.resize(120, 30);
    const grown = await terminal.until(/HISTORY[\s\S]*n placement/m);
    terminal.resize(40, 12);
    const small = await terminal.until(/^1\/14 {2}Enter device/m);
    const fresh = [top(120, 30, PLAIN), top(40, 12, PLAIN)];
    expect(grown).toBe(await fresh[0]?.until(/HISTORY/));
    expect(small).toBe(await fresh[1]?.until(READY));
  });

  it('groups by pod and by place, filters, sorts, and helps', async () => {
    const terminal = top(100, 30, PLAIN);
    await terminal.until(READY);
    terminal.type('p');
    expect(masked(await terminal.until(/by pods/))).toMatchSnapshot('by pod');
    terminal.type('n');
    expect(masked(await terminal.until(/by placement/))).toMatchSnapshot('by place');
    terminal.type('ts');
    expect(masked(await terminal.until(/sorted by name/))).toMatchSnapshot('by name');
    terminal.type('/holder:mpi x\u007f\u007f\r');
    expect(masked(await terminal.until(/filter: holder:mpi {2}Enter/))).toMatchSnapshot('filtered');
    terminal.type('?');
    expect(masked(await terminal.until(/Ctrl-L/))).toMatchSnapshot('help');
  });

  it('opens one device with its conditions, holders, readings and events, and goes back', async () => {
    const terminal = top(100, 40, PLAIN);
    await terminal.until(READY);
    terminal.type('\r');
    expect(masked(await terminal.until(/mpi-3-0/))).toMatchSnapshot();
    terminal.type('\u001b');
    await terminal.until(READY);
    // A key of which the end comes later.
    terminal.type('\u001b[');
    terminal.type('B');
    await terminal.until(/^> ◇ Unknown/m);
  });

  it('begins as the flags say', async () => {
    const terminal = top(100, 30, PLAIN, '--by=pod', '--sort=name', '--filter=mlx5');
    const screen = await terminal.until(READY);
    expect(screen).toContain('training/mpi-0-0');
    expect(screen).toContain('filter: mlx5');
    expect(screen.split('STATE')[1]).not.toContain('GPU');
  });

  it('prints no escape sequence and no wide sign of a name from outside', async () => {
    const text = JSON.stringify(agent.board).replaceAll('finetune-0-0', '\\u001b[2J\\u001b]0;x\\u0007漢字\\u202e0');
    agent.board = JSON.parse(text);
    const terminal = top(260, 30, PLAIN);
    const screen = await terminal.until(/GPU 0/);
    expect(screen).toContain('training/\ufffd[2J\ufffd]0;x\ufffd\ufffd\ufffd\ufffd0/trainer');
    // Only the first frame and the change from it to the board clear anything.
    expect(terminal.bytes.split('\u001b[2J')).toHaveLength(2);
    expect(terminal.bytes).not.toContain('\u001b]0');
  });
});

describe('the end of top', () => {
  it.each([
    ['q', (terminal: PseudoTerminal) => terminal.type('q')],
    ['Ctrl-C', (terminal: PseudoTerminal) => terminal.type('\u0003')],
    ['SIGINT', (terminal: PseudoTerminal) => terminal.signal(SIGINT)],
    ['SIGTERM', (terminal: PseudoTerminal) => terminal.signal(SIGTERM)],
  ])('by %s gives the terminal back', async (_what, end) => {
    const terminal = top(80, 24, UTF8);
    await terminal.until(READY);
    expect(terminal.isAlternate).toBe(true);
    end(terminal);
    expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
    expect(terminal.isAlternate).toBe(false);
    // The agent of the test does not say who it is, and top names the one that it asked once the terminal is given back.
    expect(terminal.bytes).toMatch(/\[\?25h.*\[\?1049lasked the agent at [^\n]*\n$/);
    expect(terminal.screen().trim()).toMatch(/^asked the agent at .*$/);
  });

  it('by an error of the program gives the terminal back, and shows the error', async () => {
    const faulty = "process.on('SIGUSR2', () => { throw new Error('thrown by the test'); });";
    const terminal = top(80, 24, { ...UTF8, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(faulty)}` });
    await terminal.until(READY);
    terminal.signal(SIGUSR2);
    expect(await terminal.ended).toEqual({ how: 'exit', number: 1, areModesRestored: true });
    expect(terminal.isAlternate).toBe(false);
    expect(terminal.screen()).toContain('device-agent: this is a bug: Error: thrown by the test');
  });

  it('does not come when the agent dies: it says so, waits, goes on with the next agent, and q works', async () => {
    const terminal = top(80, 24, UTF8);
    await terminal.until(READY);
    const port = Number(address.split(':')[1]);
    await agent.die();
    const screen = await terminal.until(/! The agent does not answer since \d\d:\d\d:\d\d UTC; this is the last board\./);
    expect(screen).toContain('mlx5_0');
    agent = new FakeAgent();
    agent.board = { ...(agent.board as Board), node: 'node-8' };
    await agent.listen(port);
    expect(await terminal.until(/node-8/)).not.toContain('does not answer');
    await agent.die();
    await terminal.until(/does not answer/);
    terminal.type('q');
    expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
  });
});

describe('top without what it needs', () => {
  it('names the remedy where there is no terminal', async () => {
    expect(await run(['top'])).toEqual({
      status: 2,
      signal: null,
      stdout: '',
      stderr:
        'device-agent: top needs a terminal for its input and its output\n' +
        'Add -it to "kubectl exec", or use "device-agent list -w", which needs no terminal.\n',
    });
  });

  it.each([
    ['is no board', { hello: 'world' }],
    ['is a board with a broken row', { ...(new FakeAgent().board as Board), devices: [{ key: 'a/b', health: { conditions: [null] } }] }],
  ])('says so when the answer %s', async (_what, board) => {
    agent.board = board;
    const terminal = top(120, 24, PLAIN);
    await terminal.until(/What listens there is no agent of this version/);
    terminal.type('q');
    expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
  });

  it('says that no agent answers, and waits for one', async () => {
    await agent.die();
    const terminal = top(120, 24, PLAIN);
    await terminal.until(/The agent does not answer/);
    terminal.type('q');
    expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
  });
});
