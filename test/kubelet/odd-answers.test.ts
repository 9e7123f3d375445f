import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http2';
import { dirname } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { gpuPod, holders, makeNode } from './support/node.ts';

/** The bytes that follow the headers of an answer with status 0. */
interface OddAnswer {
  readonly name: string;
  readonly data: Buffer | undefined;
}

const framed = (...bytes: readonly number[]): Buffer => Buffer.from([0, 0, 0, 0, bytes.length, ...bytes]);

const odd: readonly OddAnswer[] = [
  { name: 'no message at all', data: undefined },
  { name: 'a message whose first field is longer than the message', data: framed(0x0a, 0x7f, 0x01) },
  { name: 'a message of tags that there are none of', data: framed(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) },
];

const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

/** Serves any method of gRPC at the path with an answer that says that all is well. */
async function serve(path: string, data: Buffer | undefined, code = 200, type = 'application/grpc'): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer();
  server.on('stream', (stream) => {
    stream.respond({ ':status': code, 'content-type': type }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(data);
  });
  server.listen(path);
  await once(server, 'listening');
  endings.push(() => server.close());
}

describe.each(odd)('an answer that says all is well with $name', ({ data }) => {
  it('is told as protocol-error, and is over with the next refresh after it ended', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    const poller = makePoller();
    await serve(kubelet.podResourcesSocket, data);
    for (const _ of ['begins', 'lasts']) {
      await poller.refresh();
      expect(poller.current()).toMatchObject({ problem: { reason: 'protocol-error' }, allocations: [] });
    }
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
  });
});

describe.each([200, 401, 404, 503])('a web page with the status %i in place of an answer', (code) => {
  it('is told as what it is', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    const poller = makePoller();
    await serve(kubelet.podResourcesSocket, Buffer.from('<html><body>It works</body></html>'), code, 'text/html; charset=utf-8');
    await poller.refresh();
    const { problem, allocations } = poller.current();
    expect(problem?.reason).toBe('protocol-error');
    expect(problem?.message).toContain('the answer has the type "text/html; charset=utf-8" and not application/grpc');
    expect(allocations).toEqual([]);
  });
});
