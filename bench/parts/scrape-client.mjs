// Scrapers in a process of their own, as cheap as they can be had: kept connections, one buffer to read into, the answer's length
// followed to its last byte. One answer before is not counted; it is looked at as a whole, and its series are told.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { AnswerReader } from './scrape-answer.mjs';

const READ_BYTES = 1 << 20;

process.once('disconnect', () => process.exit());
process.on('message', async (task) => {
  if (task.go) return;
  try {
    await takeTurn(task);
  } catch (error) {
    process.send({ error: error.message });
  }
});

/**
 * `{ port, scrapers, gzip, times, paceMs, isStepwise }`: tells `ready` and waits for the word to go, once or before each time; then
 * tells what it measured.
 */
async function takeTurn({ port, scrapers, gzip, times, paceMs, isStepwise }) {
  const clients = await Promise.all(Array.from({ length: scrapers }, () => createClient(port, gzip)));
  const first = await clients[0].scrape(true);
  const page = gzip ? gunzipSync(first.body) : first.body;
  const series = page.toString().match(/^[^#\n]/gm).length;
  if (!isStepwise) await toldToGo();
  const latencies = [];
  const begun = performance.now();
  for (let time = 0; time < times; time += 1) {
    if (isStepwise) await toldToGo();
    else await sleep(Math.max(0, begun + (time + 1) * paceMs - performance.now()));
    const took = await Promise.all(clients.map((client) => client.scrape(false)));
    latencies.push(...took.map(({ ms }) => ms));
  }
  process.send({ latencies, series, bytes: first.body.length, pageBytes: page.length });
  for (const client of clients) client.end();
}

async function toldToGo() {
  process.send({ ready: true });
  await once(process, 'message');
}

async function createClient(port, gzip) {
  let reader;
  let fail;
  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: { buffer: Buffer.allocUnsafe(READ_BYTES), callback: (count, buffer) => reader.take(buffer.subarray(0, count)) },
  });
  await once(socket, 'connect');
  socket.on('error', (error) => fail?.(error));
  socket.on('close', () => fail?.(new Error('the server closed the connection')));
  const accept = gzip ? 'gzip' : 'identity';
  const request = Buffer.from(
    `GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;version=0.0.4\r\nAccept-Encoding: ${accept}\r\n\r\n`,
  );
  return {
    scrape: (isKept) =>
      new Promise((resolve, reject) => {
        const begun = performance.now();
        fail = reject;
        reader = new AnswerReader(isKept, gzip, (error, body) =>
          error === undefined ? resolve({ ms: performance.now() - begun, body }) : reject(error),
        );
        socket.write(request);
      }),
    end() {
      fail = undefined;
      socket.destroy();
    },
  };
}
