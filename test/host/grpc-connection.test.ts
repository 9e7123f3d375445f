import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { GrpcConnection, type Method } from '../../src/host/grpc-connection.ts';

const ECHO: Method<string, string> = {
  path: '/test.Echo/Echo',
  requestSerialize: (text) => Buffer.from(text),
  responseDeserialize: (bytes) => bytes.toString(),
};
const MINUTE = 60_000;
const MOST_BYTES = 2 ** 20;

const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

/** A connection to a server that answers each call with `answer`. */
async function connected(answer: (stream: ServerHttp2Stream, request: Buffer) => void) {
  const directory = mkdtempSync(join(tmpdir(), 'grpc-'));
  const path = join(directory, 'server.sock');
  const sessions: ServerHttp2Session[] = [];
  const server = createServer();
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream) => {
    const parts: Buffer[] = [];
    stream.on('data', (bytes: Buffer) => parts.push(bytes));
    stream.on('error', () => {});
    stream.on('end', () => answer(stream, Buffer.concat(parts)));
  });
  server.listen(path);
  await once(server, 'listening');
  const connection = new GrpcConnection(path, MOST_BYTES);
  endings.push(() => {
    connection.close();
    for (const session of sessions) session.destroy();
    server.close();
    rmSync(directory, { recursive: true });
  });
  return { sessions, call: (timeoutMs = MINUTE) => connection.call(ECHO, 'hello', timeoutMs) };
}

/** Answers with these bytes and a status. */
function respond(stream: ServerHttp2Stream, parts: readonly Buffer[], trailers: Record<string, string> = { 'grpc-status': '0' }): void {
  stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  for (const part of parts) stream.write(part);
  stream.end();
}

const message = (bytes: Buffer, size = bytes.length): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(size, 1);
  return Buffer.concat([prefix, bytes]);
};

describe('a call', () => {
  it('shares one session with the calls before, and the next one begins another when that has ended', async () => {
    const { sessions, call } = await connected((stream, request) => respond(stream, [request]));
    for (const _ of [1, 2, 3]) expect(await call()).toEqual({ answer: 'hello' });
    // The first only tries whether the peer speaks HTTP/2.
    expect(sessions).toHaveLength(2);
    sessions[1]?.destroy();
    let last = await call();
    // It may have been sent before the end was known.
    if (last.error !== undefined) last = await call();
    expect(last).toEqual({ answer: 'hello' });
    expect(sessions).toHaveLength(4);
  });

  it('takes an answer that comes byte by byte, and one as large as it may be', async () => {
    const large = Buffer.alloc(MOST_BYTES, 'x');
    const answers = [[...message(Buffer.from('hello'))].map((byte) => Buffer.from([byte])), [message(large)]];
    const { call } = await connected((stream) => respond(stream, answers.shift() ?? []));
    expect(await call()).toEqual({ answer: 'hello' });
    expect((await call()).answer).toBe(large.toString());
  });

  it('refuses a larger answer as soon as its size is known', async () => {
    const { call } = await connected((stream) => {
      stream.respond({ 'content-type': 'application/grpc' });
      stream.write(message(Buffer.alloc(0), MOST_BYTES + 1));
    });
    expect((await call()).error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: expect.stringContaining('larger than max') });
  });

  it('gives the status and its text', async () => {
    const { call } = await connected((stream) => respond(stream, [], { 'grpc-status': '9', 'grpc-message': 'not%20yet: 100%25' }));
    expect((await call()).error).toMatchObject({ code: status.FAILED_PRECONDITION, details: 'not yet: 100%' });
  });

  it('ends with the connection as unavailable, and with a stream alone as failed', async () => {
    const ends = [
      (stream: ServerHttp2Stream) => stream.session?.destroy(),
      (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    ];
    const { call } = await connected((stream) => ends.shift()?.(stream));
    expect((await call()).error?.code).toBe(status.UNAVAILABLE);
    expect((await call()).error?.code).toBe(status.INTERNAL);
  });

  it('ends at its time, and the next one is answered', async () => {
    let isSilent = true;
    const { call } = await connected((stream, request) => isSilent || respond(stream, [request]));
    expect((await call(50)).error?.code).toBe(status.DEADLINE_EXCEEDED);
    isSilent = false;
    expect(await call()).toEqual({ answer: 'hello' });
  });
});
