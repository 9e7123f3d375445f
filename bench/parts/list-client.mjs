// One way to ask the kubelet in a process of its own, whose memory is bounded as the agent's. A message has it ask once and say, in
// microseconds of CPU, what the question took and what the process took since the question before. Arguments: way, socket, checkpoint.
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { Client, credentials } from '@grpc/grpc-js';
import { dist } from './dist.mjs';

const { boundHeaps } = await dist('cli/heap.js');
boundHeaps();

const [way, socket, checkpoint] = process.argv.slice(2);
const LIST = '/v1.PodResourcesLister/List';
const TIMEOUT_MS = 10_000;
/** Bytes of HTTP/2 and of gRPC before the message. */
const PREFIX = 5;

const ways = { poller, watching, client, http2, nothing: () => async () => ({}) };
const ask = await ways[way]();
let last = cpuMicros();

process.on('message', async ({ quietMs }) => {
  const before = cpuMicros();
  if (quietMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, quietMs));
    process.send({ quiet: cpuMicros() - before });
    return;
  }
  const answer = await ask();
  const call = cpuMicros() - before;
  process.send({ call, since: before - last, ...answer });
  last = before;
});
process.send({ ready: true });

function cpuMicros() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** What the agent does at each refresh. */
async function poller() {
  const poller = await makePoller();
  return async () => {
    await poller.refresh();
    const { problem, allocations } = poller.current();
    if (problem !== undefined) throw new Error(problem.message);
    return { allocations: allocations.length, methods: poller.stats().requests.map(({ count }) => count) };
  };
}

/** What the agent does between two refreshes. */
async function watching() {
  const poller = await makePoller();
  await poller.refresh();
  poller.watch();
  return async () => ({});
}

async function makePoller() {
  const { createPodResourcesPoller } = await dist('kubelet/poller.js');
  const { podResourcesOptions } = await dist('kubelet/options.js');
  const { defaultValues } = await dist('model/options.js');
  const { systemClock } = await dist('host/clock.js');
  const options = { ...defaultValues(podResourcesOptions), socket, checkpoint };
  return createPodResourcesPoller({ options, clock: systemClock, onChange: () => {} });
}

/** The gRPC library as it comes, the message left as it is. */
function client() {
  const asIs = (bytes) => bytes;
  const bare = new Client(`unix:${socket}`, credentials.createInsecure(), { 'grpc.default_authority': 'localhost' });
  return () =>
    new Promise((resolve, reject) => {
      const answered = (error, message) => (error ? reject(error) : resolve({ bytes: message.length }));
      bare.makeUnaryRequest(LIST, asIs, asIs, Buffer.alloc(0), { deadline: Date.now() + TIMEOUT_MS }, answered);
    });
}

/** The same bytes with nothing of gRPC but the headers that it needs. */
function http2() {
  const session = connectHttp2('http://localhost', { createConnection: () => connect(socket) });
  const headers = { ':method': 'POST', ':path': LIST, 'content-type': 'application/grpc', te: 'trailers' };
  return () =>
    new Promise((resolve, reject) => {
      const stream = session.request(headers);
      let bytes = -PREFIX;
      let status;
      stream.on('trailers', (trailers) => {
        status = trailers['grpc-status'];
      });
      stream.on('data', (chunk) => {
        bytes += chunk.length;
      });
      stream.on('end', () => (status === '0' ? resolve({ bytes }) : reject(new Error(`status ${status}`))));
      stream.on('error', reject);
      stream.end(Buffer.alloc(PREFIX));
    });
}
