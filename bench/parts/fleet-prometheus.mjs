// A real Prometheus on a directory of blocks or on a server of many targets, and promtool, which makes blocks.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.mjs';

/** No compaction beyond two hours; what was made of several nodes at the same time is still merged to one block. */
const STORAGE = ['--storage.tsdb.retention.time=10y', '--storage.tsdb.min-block-duration=2h', '--storage.tsdb.max-block-duration=2h'];

/** Resolves when it answers queries. */
export async function startPrometheus(directory, config = {}) {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify(config));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${directory}/prometheus.yml`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
      ...STORAGE,
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const ended = once(child, 'exit');
  for (;;) {
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined);
    if (answer?.ok) break;
    if (child.exitCode !== null) throw new Error('prometheus ended; its log is above');
    await sleep(200);
  }
  return {
    url,
    pid: child.pid,
    instant: (query, time) => ask(url, 'query', { query, time }),
    range: (query, { start, end, step }) => ask(url, 'query_range', { query, start, end, step }),
    /** One of its own metrics, summed over its series. */
    async own(name) {
      const page = await (await fetch(`${url}/metrics`)).text();
      const found = [...page.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))];
      return found.reduce((sum, [, value]) => sum + Number(value), 0);
    },
    async groups() {
      const { data } = await (await fetch(`${url}/api/v1/rules`)).json();
      return data.groups;
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function ask(url, path, parameters) {
  const body = new URLSearchParams({ ...parameters, stats: 'all' });
  const begun = performance.now();
  const answer = await fetch(`${url}/api/v1/${path}`, { method: 'POST', body });
  const text = await answer.text();
  const seconds = (performance.now() - begun) / 1_000;
  const { data, error } = JSON.parse(text);
  if (error !== undefined) throw new Error(`${parameters.query}: ${error}`);
  return { seconds, result: data.result, samples: data.stats.samples.totalQueryableSamples };
}

/** Blocks out of OpenMetrics. */
export function blocksOf(text, directory) {
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', text, directory], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Blocks with what the rules would have recorded. */
export function recordRules(rules, { url, start, end, seconds, directory }) {
  execFileSync(
    'promtool',
    [
      ...['tsdb', 'create-blocks-from', 'rules', `--url=${url}`, `--start=${start}`, `--end=${end}`],
      ...[`--eval-interval=${seconds}s`, `--output-dir=${directory}`, rules],
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
}

export const blockNames = (directory) => readdirSync(directory).filter((name) => /^[0-9A-Z]{26}$/.test(name));

/** Waits until overlapping blocks are merged to one and the old ones are gone, which Prometheus does once a minute. */
export async function merged(directory) {
  for (let tries = 0; blockNames(directory).length > 1; tries += 1) {
    if (tries > 600) throw new Error(`${directory}: prometheus did not merge the blocks within ten minutes`);
    await sleep(1_000);
  }
}

export function bytesOf(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, path, name }) => sum + statSync(join(parentPath ?? path, name)).size, 0);
}

export const discard = (path) => rmSync(path, { recursive: true, force: true });
