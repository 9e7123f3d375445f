// Project: programs. Hundreds of clients ask at once.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Certificates } from '../support/certificates.ts';
import { isInstalled } from '../support/installed.ts';
import { type ServedAgent, serve } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { DEADLINE_MS } from '../support/until.ts';

const PROBES = 8;

const requestOf = (path: string, header = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n`;
const STREAM = requestOf('/api/v1/devices/watch');

let root: string;
let agent: ServedAgent | undefined;
const sockets: Socket[] = [];
const timers: NodeJS.Timeout[] = [];
let isHolding = false;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-crowded-'));
});
afterEach(() => {
  isHolding = false;
  for (const timer of timers.splice(0)) clearInterval(timer);
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await agent?.stop();
  rmSync(root, { recursive: true, force: true });
});

/** The built agent, on a machine without devices. */
async function startWith(name: string, flags: readonly string[] = []): Promise<ServedAgent> {
  await agent?.stop();
  const paths = ['sysfs', 'procfs', 'dev'].map((path) => `--path.${path}=${root}`);
  agent = await serve([...paths, `--podresources.socket=${root}/none.sock`, `--state.file=${root}/${name}.json`, ...flags]);
  return agent;
}

/** Opens a connection that reads nothing, and sends a text. */
function open(url: string, text: string | Uint8Array): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(text);
  sockets.push(socket);
  return socket;
}
/** Keeps so many connections: one that the agent closes is opened again. */
function keep(url: string, count: number, text: string, isReading = true): void {
  isHolding = true;
  const again = (): void => {
    const socket = open(url, text);
    if (isReading) socket.resume();
    socket.once('close', () => isHolding && timers.push(setTimeout(again, 1_000)));
  };
  for (let at = 0; at < count; at += 1) again();
}

/** A probe of the kubelet: a connection of its own, from the address of the node. */
function probe(url: string): Promise<number | string> {
  return new Promise((resolve) => {
    const ask = url.startsWith('https:') ? httpsRequest : httpRequest;
    const options = { agent: false, localAddress: '127.0.0.2', rejectUnauthorized: false, timeout: DEADLINE_MS };
    const asked = ask(`${url}/healthz`, options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', (error) => resolve(error.message));
    asked.end();
  });
}

async function expectProbesAnswered(url: string): Promise<void> {
  const answers: (number | string)[] = [];
  for (let at = 0; at < PROBES; at += 1) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    answers.push(await probe(url));
  }
  expect(answers).toEqual(Array.from({ length: PROBES }, () => 200));
}

describe('the kubelet is answered while other clients', () => {
  let url: string;
  beforeAll(async () => {
    ({ url } = await startWith('open'));
  });

  it.each<[string, () => void]>([
    ['hold 256 idle connections', () => keep(url, 256, requestOf('/healthz'))],
    [
      'hold 64 streams that they do not read, and 192 idle connections',
      () => {
        keep(url, 64, STREAM, false);
        keep(url, 192, requestOf('/healthz'));
      },
    ],
    ['ask for 64 streams on each connection', () => keep(url, 256, STREAM.repeat(64), false)],
    ['ask for thousands of answers on each connection and read none', () => keep(url, 256, requestOf('/healthz').repeat(2_000), false)],
    [
      'send their headers byte by byte',
      () => {
        const slow = Array.from({ length: 300 }, () => open(url, 'GET /metrics HTTP/1.1\r\nX-Slow: '));
        const send = (): void => {
          for (const socket of slow) if (!socket.destroyed) socket.write('a');
        };
        timers.push(setInterval(send, 200));
      },
    ],
    ['come back with 1,000 connections', () => keep(url, 1_000, requestOf('/metrics'))],
  ])('%s', async (_name, load) => {
    load();
    await expectProbesAnswered(url);
  });
});

const hasOpenssl = isInstalled('openssl', 'version');
describe.skipIf(!hasOpenssl)(
  `with TLS and passwords, the kubelet is answered while other clients${unless(hasOpenssl, 'openssl is not installed')}`,
  () => {
    let certificates: Certificates;
    let url: string;
    beforeAll(async () => {
      certificates = new Certificates();
      certificates.issue('server');
      const file = certificates.path('web.yml');
      const lines = ['tls_server_config:', '  cert_file: server.crt', '  key_file: server.key', 'basic_auth_users:'];
      writeFileSync(file, `${[...lines, `  prometheus: ${hashSync('sesame', 10)}`].join('\n')}\n`);
      ({ url } = await startWith('tls', [`--web.config.file=${file}`]));
    });
    afterAll(() => certificates?.remove());

    it('begin 400 handshakes and do not go on', async () => {
      // The first bytes of a ClientHello of 512 bytes.
      for (let at = 0; at < 400; at += 1) open(url, Uint8Array.of(0x16, 3, 1, 2, 0, 1));
      await expectProbesAnswered(url);
    });

    it('try passwords', async () => {
      let count = 0;
      const wrong = () => ({ authorization: `Basic ${Buffer.from(`prometheus:${count++}`).toString('base64')}` });
      const attempt = (): void =>
        void httpsRequest(`${url}/metrics`, { agent: false, rejectUnauthorized: false, headers: wrong() }, (response) => response.resume())
          .on('error', () => undefined)
          .end();
      timers.push(setInterval(attempt, 20));
      await expectProbesAnswered(url);
    });
  },
);
