// node_exporter as a peer, and scraping as Prometheus does.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.mjs';

/** With the infiniband collector alone. */
export function startInfinibandExporter(sysfs, exporter) {
  return startExporter(exporter, ['--collector.infiniband', `--path.sysfs=${sysfs}`]);
}

/** With the collectors given and nothing else. Throws when one of them has nothing to tell. */
export async function startExporter({ version, path }, flags) {
  const port = await freePort();
  const others = ['--collector.disable-defaults', '--web.disable-exporter-metrics', '--web.max-requests=0', '--log.level=error'];
  const child = spawn(path, [...others, ...flags, `--web.listen-address=127.0.0.1:${port}`], { stdio: ['ignore', 'ignore', 'inherit'] });
  const scraper = createScraper(port);
  const stop = async () => {
    scraper.close();
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
  let page = '';
  for (let tries = 0; tries < 100 && page === ''; tries += 1) page = await scraper.scrape().catch(() => sleep(50, ''));
  if (!page.includes('node_scrape_collector_success{') || /^node_scrape_collector_success\{.*\} 0$/m.test(page)) {
    await stop();
    throw new Error(`node_exporter ${version} does not read what it was given`);
  }
  return { name: `node_exporter ${version}`, pid: child.pid, port, scrape: scraper.scrape, stop };
}

/** Scrapes over kept connections; gives the bytes of the page as text. */
export function createScraper(port, { gzip = false, connections = 1 } = {}) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const headers = { accept: 'text/plain;version=0.0.4', 'accept-encoding': gzip ? 'gzip' : 'identity' };
  const scrape = () =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path: '/metrics', agent, headers }, (response) => {
        const isGzip = response.headers['content-encoding'] === 'gzip';
        if (response.statusCode !== 200 || isGzip !== gzip) reject(new Error(`an answer of ${response.statusCode}, compressed: ${isGzip}`));
        const parts = [];
        response.on('data', (part) => parts.push(part)).on('end', () => resolve(Buffer.concat(parts).toString()));
      }).on('error', reject);
    });
  return { scrape, close: () => agent.destroy() };
}
