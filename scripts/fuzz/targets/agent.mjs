import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { checkConfigText } from '../../../dist/config/file.js';
import { createRegistry } from '../../../dist/config/registry.js';
import { loadFamilies, optionSections } from '../../../dist/config/sections.js';
import { structuredParts } from '../../../dist/config/structured.js';
import { decodeState, encodeState } from '../../../dist/health/journal/state-file.js';
import { createLogger } from '../../../dist/log/logger.js';
import { createExposition } from '../../../dist/metrics/page/exposition.js';
import { labelText } from '../../../dist/metrics/page/labels.js';
import { defaultValues } from '../../../dist/model/options.js';
import { familyLoaders } from '../../../dist/probes/families.js';
import { createServer, serverLimits } from '../../../dist/server/http/server.js';
import { webOptions } from '../../../dist/server/options.js';
import { mutate, pick, randomText } from '../random.mjs';

/** Examples of the documentation, changed: a content, or problems with places in the text. */
export async function configuration() {
  const registry = createRegistry(optionSections(await loadFamilies(familyLoaders)), structuredParts);
  const examples = [...readFileSync('docs/configuration.md', 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text);
  assert.ok(examples.length > 0);
  return {
    make: (choose) => mutate(choose, pick(choose, examples)),
    async check(text) {
      const { content, problems } = await checkConfigText('x.yaml', text, registry);
      assert.equal(content === undefined, problems.length > 0);
      const lines = text.split('\n').length;
      for (const { line, column, message } of problems) {
        assert.ok(Number.isInteger(line) && line >= 1 && line <= lines + 1, `line ${line} of ${lines}`);
        assert.ok(Number.isInteger(column) && column >= 1, `column ${column}`);
        assert.ok(message !== '' && !/\n\s+at /.test(message), message);
      }
    },
  };
}

export async function state() {
  const device = { family: 'toy', id: 'd0', kind: 'toy', aliases: [] };
  const condition = { type: 'Fault', phase: 'active', sinceMs: 1, countsFromMs: 1, reason: 'R', message: 'm' };
  const memory = {
    judgedAtMs: 5,
    devices: {
      'toy/d0': {
        device,
        listedAtMs: 5,
        readAtMs: 5,
        verdict: { state: 'unhealthy', sinceMs: 2 },
        transitions: { unhealthy: 1 },
        conditions: { Fault: condition },
        rates: {},
        activations: { Fault: [1] },
      },
    },
    lastEventId: 3,
    events: [],
  };
  const text = await encodeState(memory, 'boot');
  assert.deepEqual((await decodeState(text, 'boot')).state, memory);
  return {
    make: (choose) => (choose(2) === 0 ? mutate(choose, text) : randomText(choose, 2_000)),
    async check(changed) {
      const read = await decodeState(changed, 'boot');
      if (read.state === undefined) return assert.ok(read.ignored !== undefined && read.message !== '');
      assert.deepEqual(read.state, memory, 'a changed state was believed');
    },
  };
}

const REQUEST =
  'GET /api/v1/devices?family=nvidia HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.5,*/*\r\nAccept-Encoding: gzip\r\n\r\n';
const STATUSES = new Set([200, 301, 302, 304, 400, 404, 405, 408, 413, 414, 417, 421, 431, 503]);

/** Raw bytes: each answer has a status of the closed set, and the server still answers a right request. */
export async function http() {
  const exposition = createExposition({
    families: [],
    snapshot: () => undefined,
    agent: () => ({ nowMs: 0, version: '0', podResourcesRequests: [], podResourcesDurations: [] }),
  });
  const errors = [];
  const server = createServer(
    {
      exposition,
      store: { snapshot: () => undefined },
      status: () => ({}),
      families: [],
      version: '0',
      node: 'node-1',
      options: { ...defaultValues(webOptions), 'listen-address': '127.0.0.1:0' },
      logger: createLogger({ level: 'error', format: 'json' }, { write: (line) => errors.push(line) }),
    },
    { ...serverLimits, headersMs: 200, requestMs: 400, checkMs: 100 },
  );
  const port = Number(new URL(await server.listen()).port);
  const ask = (text, endMs) =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      let got = '';
      const timer = setTimeout(() => socket.destroy(), endMs);
      socket.on('data', (chunk) => {
        got += chunk.toString('latin1');
        if (/^HTTP\/1\.1 \d{3}[\s\S]*?\r\n\r\n/.test(got)) setImmediate(() => socket.destroy());
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        clearTimeout(timer);
        resolve(got);
      });
      socket.write(text, 'latin1');
    });
  let count = 0;
  return {
    make: (choose) =>
      mutate(
        choose,
        REQUEST.replace(
          '/api/v1/devices?family=nvidia',
          pick(choose, [
            '/',
            '/metrics',
            '/api/v1/devices',
            '/api/v1/events?since=1',
            '/devices/nvidia/x',
            '/healthz',
            '/%',
            '/..%2f',
            '/api/v1/pods',
          ]),
        ),
      ),
    async check(text) {
      const got = await ask(text, 60);
      for (const [, status] of got.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) assert.ok(STATUSES.has(Number(status)), `status ${status}`);
      assert.deepEqual(errors, []);
      count += 1;
      if (count % 50 === 0) assert.match(await ask('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', 5_000), /^HTTP\/1\.1 200/);
    },
  };
}

/** Labels as Prometheus reads them back: an empty value is an absent label. */
export const labels = () => ({
  make: (choose) => JSON.stringify({ device: randomText(choose, 60), pod: randomText(choose, 60), port: `${choose(9)}` }),
  check(input) {
    const values = JSON.parse(input);
    const text = labelText(values);
    const found = {};
    const pattern = /([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/gy;
    const inner = text.replace(/^\{|\}$/g, '');
    for (let match = pattern.exec(inner); match !== null; match = pattern.exec(inner)) {
      found[match[1]] = match[2].replace(/\\(["\\n])/g, (_, mark) => (mark === 'n' ? '\n' : mark));
      if (match[3] === '') assert.equal(pattern.lastIndex, inner.length, text);
    }
    assert.deepEqual(found, Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')));
  },
});
