// What the agent is compared with: the agent's own core in a child, node_exporter, and a C program that only reads.
import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuSeconds } from './measure.mjs';
import { imageFlags, imageStart } from './shipped.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The agent without its web server, its memory bounded as in the image. `ask` resolves with what the command measured. */
export async function startCore(settings, flags = []) {
  const child = fork(here('agent-core.mjs'), [JSON.stringify(settings)], {
    execArgv: [...imageFlags(), ...flags],
    env: { ...process.env, ...imageStart().env },
  });
  const exited = once(child, 'exit');
  const answer = () => Promise.race([once(child, 'message'), exited.then((how) => Promise.reject(new Error(`the core ended: ${how}`)))]);
  await answer();
  return {
    pid: child.pid,
    async ask(command, rest = {}) {
      child.send({ command, ...rest });
      return (await answer())[0];
    },
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** The infiniband collector alone, as cheap as it can be had. Throws when it does not read the tree. */
export async function startNodeExporter(sysfs, exporter) {
  const peer = await startExporter(exporter, ['--collector.infiniband', `--path.sysfs=${sysfs}`]);
  return { ...peer, series: peer.page.split('\n').filter((line) => line.startsWith('node_infiniband_')).length };
}

/** node_exporter with the collectors given and nothing else. Throws when one of them has nothing to tell. */
export async function startExporter({ version, path }, flags) {
  const port = await freePort();
  const others = ['--collector.disable-defaults', '--web.disable-exporter-metrics', '--web.max-requests=0', '--log.level=error'];
  const child = spawn(path, [...others, ...flags, `--web.listen-address=127.0.0.1:${port}`], { stdio: ['ignore', 'ignore', 'inherit'] });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const scrape = () => fetchText({ host: '127.0.0.1', port, path: '/metrics', agent });
  let page = '';
  for (let tries = 0; tries < 100 && page === ''; tries += 1) page = await scrape().catch(() => sleep(50, ''));
  const isRead = page.includes('node_scrape_collector_success{') && !/^node_scrape_collector_success\{.*\} 0$/m.test(page);
  if (!isRead) {
    child.kill('SIGKILL');
    throw new Error(`node_exporter ${version} does not read what it was given`);
  }
  return {
    version,
    pid: child.pid,
    port,
    page,
    scrape,
    cpuSeconds: () => cpuSeconds(child.pid),
    stop: async () => {
      agent.destroy();
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** Files that the agent reads at each refresh: all counters of all ports, with state, physical state and rate. */
export function counterFiles(sysfs) {
  const files = [];
  for (const device of readdirSync(join(sysfs, 'class/infiniband'))) {
    const port = join(sysfs, 'class/infiniband', device, 'ports/1');
    for (const set of ['counters', 'hw_counters']) files.push(...readdirSync(join(port, set)).map((name) => join(port, set, name)));
    files.push(...['state', 'phys_state', 'rate'].map((name) => join(port, name)));
  }
  return files;
}

/** A C program that has the files open and preads each into one buffer, once per request. */
export async function startFloor(files) {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-floor-'));
  const program = join(directory, 'floor');
  execFileSync('cc', ['-O2', '-o', program, here('floor.c')]);
  writeFileSync(join(directory, 'files'), `${files.join('\n')}\n`);
  const child = spawn(program, [join(directory, 'files')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    /** CPU microseconds of one pass. */
    async pass() {
      child.stdin.write('\n');
      return Number((await lines.next()).value);
    },
    stop: async () => {
      child.stdin.end();
      await once(child, 'exit');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export function fetchText(options) {
  return new Promise((resolve, reject) => {
    get(options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
}

/** Scrapes as Prometheus 2 does: over one kept connection, in the format that it prefers and compressed. */
export function prometheus(port) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = {
    accept:
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'accept-encoding': 'gzip',
    'user-agent': 'Prometheus/2.42.0',
    'x-prometheus-scrape-timeout-seconds': '10',
  };
  const scrape = () =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path: '/metrics', agent, headers }, (response) => {
        if (response.headers['content-encoding'] !== 'gzip') reject(new Error('the page is not compressed'));
        response.on('end', resolve).resume();
      }).on('error', reject);
    });
  return { scrape, leave: () => agent.destroy() };
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
