/** The terminal screens of the pictures, as rows of runs for `svgOf`. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import xterm from '@xterm/headless';

const { Terminal } = xterm;

const COLUMNS = 120;
const ROWS = 32;
/** Time after which `top` has drawn its screen and has readings to compare. */
const DRAWN_MS = 8_000;
/** Time in which `q` ends it. */
const ENDED_MS = 5_000;

/** The screen of `top` in a real pseudo-terminal. `source`: the line of the shell that leads it to the demo. */
export async function topScreen(main, env, source) {
  const terminal = new Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true });
  const command = `stty cols ${COLUMNS} rows ${ROWS}; ${source}; exec '${process.execPath}' '${main}' top`;
  const settings = { env: { ...env, TERM: 'xterm-256color', COLORTERM: '' }, stdio: ['pipe', 'pipe', 'ignore'] };
  const child = spawn('script', ['-qfc', command, '/dev/null'], settings);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const parts = [];
  child.stdout.on('data', (part) => parts.push(part));
  await sleep(DRAWN_MS);
  const drawn = Buffer.concat(parts);
  child.stdin.write('q');
  await Promise.race([ended, sleep(ENDED_MS)]);
  child.kill('SIGKILL');
  await new Promise((resolve) => terminal.write(drawn, resolve));
  const rows = Array.from({ length: ROWS }, (_, y) => runsOf(terminal.buffer.active.getLine(y)));
  const last = rows.findLastIndex((row) => row.some(({ text }) => text.trim() !== ''));
  return rows.slice(0, last + 1);
}

/** Neighbours with the same look are one run. */
function runsOf(line) {
  const runs = [];
  for (let x = 0; x < COLUMNS; x += 1) {
    const cell = line?.getCell(x);
    if (cell === undefined || cell.getWidth() === 0) continue;
    const look = collectChecked(cell);
    const text = cell.getChars() || ' ';
    const last = runs.at(-1);
    if (last !== undefined && JSON.stringify(last.look) === JSON.stringify(look)) last.text += text;
    else runs.push({ text, look });
  }
  return runs.map(({ text, look }) => ({ text, ...look }));
}

function collectChecked(cell) {
  const own = cell.isFgDefault() ? undefined : cssOf(cell.getFgColor(), cell.isFgRGB());
  const behind = cell.isBgDefault() ? undefined : cssOf(cell.getBgColor(), cell.isBgRGB());
  const [color, background] = cell.isInverse() ? [behind ?? '#1c2128', own ?? '#d8dee9'] : [own, behind];
  return { ...(color && { color }), ...(background && { background }), ...(cell.isBold() && { isBold: true }) };
}

const BASIC = [
  ['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4'],
  ['#6e7681', '#ffa198', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#56d4dd', '#f0f6fc'],
].flat();

/** Colour of the palette of 256, or of 24 bits. */
function cssOf(value, isRgb) {
  if (isRgb) return `#${value.toString(16).padStart(6, '0')}`;
  if (value < 16) return BASIC[value];
  const level = (step) => (step === 0 ? 0 : 55 + 40 * step);
  const parts = value >= 232 ? Array(3).fill(8 + 10 * (value - 232)) : [36, 6, 1].map((base) => level(Math.floor((value - 16) / base) % 6));
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
