import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PseudoTerminal } from '../../support/pseudo-terminal.ts';
import { MAIN } from '../command-line.ts';
import { FakeAgent, renamed } from './fake-agent.ts';
import { fixedBoard } from './fixed-board.ts';

const COLOURS = { TERM: 'xterm-256color', LANG: 'C.UTF-8' };
const PLAIN = { TERM: 'xterm-256color', NO_COLOR: '1', LANG: 'C.UTF-8' };

let agent: FakeAgent;
let address: string;
const open: PseudoTerminal[] = [];

beforeEach(async () => {
  agent = new FakeAgent();
  address = await agent.listen();
});
afterEach(async () => {
  for (const terminal of open.splice(0)) terminal.kill();
  await agent.die().catch(() => {});
});

function top(columns: number, rows: number, environment: Readonly<Record<string, string>>, ...flags: string[]): PseudoTerminal {
  const command = [process.execPath, MAIN, 'top', `--web.listen-address=${address}`, ...flags];
  const terminal = new PseudoTerminal({ columns, rows }, command, { DEVICE_AGENT_STATE_FILE: '', ...environment });
  open.push(terminal);
  return terminal;
}

/** The port is another one in each run. */
const masked = (screen: string): string => screen.replaceAll(address, '127.0.0.1:PORT').replace(/(127\.0\.0\.1:PORT) +$/gm, '$1');

/** The first frame with the board. */
const READY = /GPU|mlx5/;

describe('screens of top', () => {
  it.each([
    [80, 24],
    [200, 50],
    [40, 12],
    [20, 8],
  ])('%ix%i without colour', async (columns, rows) => {
    const terminal = top(columns, rows, PLAIN);
    expect(masked(await terminal.until(READY))).toMatchSnapshot();
    expect(terminal.bytes).not.toContain('\u001b[3');
    expect(terminal.bytes).not.toMatch(new RegExp('\u001b\\[[1-9][0-9;]*m'));
  });
});
void renamed;
void fixedBoard;
void COLOURS;
