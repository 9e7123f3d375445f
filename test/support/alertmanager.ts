import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './prometheus.ts';

/** One alert of a message, as Alertmanager posts it to a webhook. */
export interface PostedAlert {
  readonly status: 'firing' | 'resolved';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RunningAlertmanager {
  /** Its address, for the configuration of Prometheus. */
  readonly address: string;
  /** The messages so far, each with its alerts. */
  readonly messages: readonly (readonly PostedAlert[])[];
  /** The same messages as receivers of other kinds got them: what was posted to each path. */
  readonly posted: Readonly<Record<string, readonly string[]>>;
  stop(): Promise<void>;
}

/**
 * A real Alertmanager that posts to a webhook of the test. It groups by device, as docs/runbooks/README.md advises. `more`: other receivers of each message,
 * given the address of that server.
 */
export async function startAlertmanager(
  more: (url: string) => Readonly<Record<string, unknown>> = () => ({}),
  templates: readonly string[] = [],
): Promise<RunningAlertmanager> {
  const messages: (readonly PostedAlert[])[] = [];
  const posted: Record<string, string[]> = {};
  const webhook = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const path = request.url ?? '/';
      if (path === '/') messages.push((JSON.parse(body) as { alerts: PostedAlert[] }).alerts);
      posted[path] = [...(posted[path] ?? []), body];
      response.writeHead(path.endsWith('/enqueue') ? 202 : 200).end(path === '/' ? '' : 'ok');
    });
  }).listen(0, '127.0.0.1');
  await once(webhook, 'listening');
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-alertmanager-'));
  const url = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/`;
  const config = {
    route: { receiver: 'test', group_by: ['cluster', 'node', 'device'], group_wait: '1s', group_interval: '1s', repeat_interval: '1h' },
    receivers: [{ name: 'test', webhook_configs: [{ url, send_resolved: true }], ...more(url) }],
    templates,
  };
  writeFileSync(join(directory, 'alertmanager.yml'), JSON.stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const options = [
    `--config.file=${directory}/alertmanager.yml`,
    `--storage.path=${directory}/data`,
    `--web.listen-address=${address}`,
    '--cluster.listen-address=',
  ];
  const child = spawn('prometheus-alertmanager', options, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  return {
    address,
    messages,
    posted,
    async stop() {
      child.kill('SIGKILL');
      await ended;
      webhook.close();
      rmSync(directory, { recursive: true });
    },
  };
}
