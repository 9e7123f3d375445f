// Statistics, tables and machine facts that all benchmarks share.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { presentNodeExporters } from './node-exporter-builds.mjs';

const RESULTS = fileURLToPath(new URL('../results/', import.meta.url));
/** Clock ticks per second of /proc/<pid>/stat on every Linux of the last twenty years. */
const TICKS = 100;

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Median and range of the rounds, as numbers and as text. */
export function summary(values, digits = 0) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const middle = median(values);
  return { median: middle, low, high, text: `${middle.toFixed(digits)} (${low.toFixed(digits)}-${high.toFixed(digits)})` };
}

/** An agent and the readers that it started; any other program alone. */
export function withReaders(pid) {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
  const isReader = (child) => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('/reader.js');
    } catch {
      return false;
    }
  };
  return [pid, ...children.filter(isReader).map(Number)];
}

const sumOf = (pid, of) => withReaders(pid).reduce((sum, one) => sum + of(one), 0);

/** CPU of an agent with all its threads and readers, seconds, at a resolution of 10 ms. */
export const cpuSeconds = (pid) =>
  sumOf(pid, (one) => {
    const fields = readFileSync(`/proc/${one}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  });

/** The same as the scheduler counts it for the threads that there are, milliseconds: for what ends within a tick. */
export function cpuMillis(pid) {
  return [...threadMillis(pid).values()].reduce((sum, each) => sum + each, 0);
}

/** CPU of each thread that there is, by its id. That of the main thread is the id of the process. */
export function threadMillis(pid) {
  const nanos = (one, thread) => Number(readFileSync(`/proc/${one}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  return new Map(withReaders(pid).flatMap((one) => readdirSync(`/proc/${one}/task`).map((thread) => [thread, nanos(one, thread) / 1e6])));
}

const statusMiB = (pid, name) =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

/** Of the readers without pages of files, which all processes of one program share. */
export const rssMiB = (pid) => statusMiB(pid, 'VmRSS') + sumOf(pid, (one) => (one === pid ? 0 : statusMiB(one, 'RssAnon')));

export const openDescriptors = (pid) => sumOf(pid, (one) => readdirSync(`/proc/${one}/fd`).length);

/** What the open descriptors lead to. One that is closed meanwhile is left out. */
export function openFiles(pid) {
  return withReaders(pid).flatMap((one) =>
    readdirSync(`/proc/${one}/fd`).flatMap((name) => {
      try {
        return [readlinkSync(`/proc/${one}/fd/${name}`)];
      } catch {
        return [];
      }
    }),
  );
}

export const threadsOf = (pid) => sumOf(pid, (one) => readdirSync(`/proc/${one}/task`).length);

export function machine() {
  const { model } = cpus()[0];
  return {
    cpu: `${cpus().length} x ${model}`,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    nodeExporters: presentNodeExporters().map(({ version }) => version),
    compiler: firstLine('cc', ['--version']),
  };
}

function firstLine(command, args) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split('\n')[0];
  } catch {
    return undefined;
  }
}

/** Prints the rows and keeps them, with the machine and what else is to be known, as `results/<name>.json`. */
export function report(name, rows, details = {}) {
  printTable(rows);
  mkdirSync(RESULTS, { recursive: true });
  const content = { name, at: new Date().toISOString(), machine: machine(), rows, ...details };
  writeFileSync(`${RESULTS}${name}.json`, `${JSON.stringify(content, undefined, 2)}\n`);
}

/** Prints rows as a table of Markdown, whose columns stand below each other in a terminal too. What a row does not have is `-`. */
export function printTable(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '-').replaceAll('|', '\\|')))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const text = (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
  const [head, ...body] = lines.map(text);
  console.log([head, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...body].join('\n'));
}

/** Whether there is a C compiler. Says once what is left out without it. */
export function hasCompiler(leftOut) {
  const isThere = firstLine('cc', ['--version']) !== undefined;
  if (!isThere) console.error(`no C compiler (cc): ${leftOut}`);
  return isThere;
}
