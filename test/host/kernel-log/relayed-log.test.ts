import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { type KmsgMessage, type KmsgReader, openKmsg } from '../../../src/host/kernel-log/reader.ts';
import { relayServer } from '../../../src/host/kernel-log/relay.ts';
import { PROGRAM } from '../../support/program.ts';

const BOOT_MS = Date.now() - 3_600_000;
const WAIT = { interval: 20 };

let directory: string;
let log: string;
let socket: string;
let children: ChildProcess[];
let readers: KmsgReader[];
let messages: KmsgMessage[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-relay-'));
  [log, socket] = [join(directory, 'kmsg'), join(directory, 'socket')];
  [children, readers, messages] = [[], [], []];
  writeFileSync(log, '');
});

afterEach(async () => {
  for (const reader of readers) reader.close();
  await Promise.all(children.map(end));
  rmSync(directory, { recursive: true, force: true });
});

const record = (seq: number, text: string): string => `3,${seq},${seq * 1_000_000},-;${text}\n`;
const append = (seq: number, text = `line ${seq}`): void => appendFileSync(log, record(seq, text));
const texts = (): readonly string[] => messages.map(({ text }) => text);

function open(taken: KmsgMessage[] = messages): KmsgReader {
  const reader = openKmsg({ path: socket, clock: systemClock, bootTimeMs: BOOT_MS, onRecord: (message) => taken.push(message) });
  readers.push(reader);
  return reader;
}

function start(...words: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, words, { stdio: 'ignore' });
  children.push(child);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function problemOf(reader: KmsgReader) {
  reader.poll();
  return reader.status().problem;
}

/** Polls until the log was read to its end. A process on a busy machine can answer late. */
const pollWell = (reader: KmsgReader): Promise<void> => expect.poll(() => problemOf(reader), WAIT).toBeUndefined();

/** The reader in a process of its own. A socket of one that was killed stays, so only an answer shows that the new one is there. */
async function startReader(path = log): Promise<ChildProcess> {
  const child = start(PROGRAM, 'kernel-log', `--socket=${socket}`, `--path.kmsg=${path}`);
  await expect
    .poll(async () => {
      const client = connect(socket);
      const answers = once(client, 'connect').then(
        () => true,
        () => false,
      );
      return answers.finally(() => client.destroy());
    }, WAIT)
    .toBe(true);
  return child;
}

/** Another process in its place. `answer`: what it does with each connection `c`. */
async function startForger(answer: string): Promise<ChildProcess> {
  const child = start('-e', `require('net').createServer((c) => { c.on('error', () => {}); ${answer} }).listen(${JSON.stringify(socket)})`);
  await expect.poll(() => existsSync(socket), WAIT).toBe(true);
  return child;
}

const FRAMES = `const f = (t, s) => Buffer.concat([Buffer.from(t), Buffer.from([s.length >> 8, s.length & 255]), Buffer.from(s)]);`;

describe('the kernel log by another process', () => {
  it('is the log, and only the user of the process may open its socket', async () => {
    append(1, 'one');
    appendFileSync(log, '6,2,2000000,-;two\\x0a\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n');
    await startReader();
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    const reader = open();
    await pollWell(reader);
    append(3, 'three');
    await pollWell(reader);
    expect(messages.map(({ text, level, device, live }) => [text, level, device, live])).toEqual([
      ['one', 3, undefined, false],
      ['two ', 6, '+pci:0000:3b:00.0', false],
      ['three', 3, undefined, true],
    ]);
    expect(messages[0]?.timeMs).toBe(BOOT_MS + 1_000);
    expect(reader.status()).toEqual({ records: 3, lost: 0, malformed: 0 });
  });

  it('goes on when the process was ended and started again: what was logged meanwhile comes once, and is not of now', async () => {
    append(1);
    append(2);
    const first = await startReader();
    const reader = open();
    await pollWell(reader);
    await end(first);
    append(3);
    reader.poll();
    expect(reader.status().problem?.code).toBe('kmsg-failed');
    await startReader();
    await pollWell(reader);
    append(4);
    await pollWell(reader);
    expect(messages.map(({ text, live }) => [text, live])).toEqual([
      ['line 1', false],
      ['line 2', false],
      ['line 3', false],
      ['line 4', true],
    ]);
    expect(reader.status()).toEqual({ records: 4, lost: 0, malformed: 0 });
  });

  it('goes on in the same poll when the next process is there already', async () => {
    append(1);
    const first = await startReader();
    const reader = open();
    await pollWell(reader);
    await end(first);
    await startReader();
    append(2);
    await pollWell(reader);
    expect(texts()).toEqual(['line 1', 'line 2']);
  });

  it('shows what was overwritten while nobody passed it on', async () => {
    append(1);
    const first = await startReader();
    const reader = open();
    await pollWell(reader);
    await end(first);
    writeFileSync(log, record(8, 'eight'));
    await startReader();
    await pollWell(reader);
    expect(reader.status()).toEqual({ records: 2, lost: 6, malformed: 0 });
  });

  it('is complete for each of two clients, also when one of them asks late', async () => {
    const other: KmsgMessage[] = [];
    append(1);
    await startReader();
    const [one, two] = [open(), open(other)];
    await pollWell(one);
    for (let seq = 2; seq <= 5_000; seq += 1) append(seq, 'x'.repeat(100));
    await pollWell(one);
    await pollWell(two);
    expect([messages.length, other.length]).toEqual([5_000, 5_000]);
    expect(other.map(({ seq }) => seq)).toEqual(messages.map(({ seq }) => seq));
  });

  it.each([
    ['is missing', () => join(directory, 'none'), 'kmsg-missing', 'ENOENT'],
    ['is another device', () => '/dev/null', 'kmsg-not-a-log', 'ENOTKMSG'],
    ['is a directory', () => directory, 'kmsg-not-a-log', 'EISDIR'],
    // It would ask itself.
    ['is its own socket', () => socket, 'kmsg-not-a-log', 'ENOTKMSG'],
  ])('has the problem of the log that %s there, and is read when it is back', async (_what, path, code, errno) => {
    await startReader(path());
    const reader = open();
    await expect
      .poll(() => problemOf(reader), WAIT)
      .toEqual({ code, message: `"device-agent kernel-log" at ${socket} cannot read the log: ${errno}` });
    if (errno !== 'ENOENT') return;
    writeFileSync(path(), record(1, 'one'));
    await pollWell(reader);
    expect(texts()).toEqual(['one']);
  });

  it.each([
    ['no socket', () => {}, 'kmsg-missing'],
    ['a socket on which nobody answers', async () => end(await startForger('')), 'kmsg-failed'],
  ])('is not read by %s', async (_what, prepare, code) => {
    await prepare();
    const reader = open();
    reader.poll();
    expect(reader.status()).toMatchObject({ problem: { code }, records: 0 });
  });

  it('is the device of this machine, where it can be read', async () => {
    try {
      closeSync(openSync('/dev/kmsg', 'r'));
    } catch {
      return;
    }
    await startReader('/dev/kmsg');
    await pollWell(open());
    const own: number[] = [];
    const direct = openKmsg({ path: '/dev/kmsg', clock: systemClock, onRecord: ({ seq }) => own.push(seq) });
    direct.poll();
    direct.close();
    const passed = messages.map(({ seq }) => seq);
    // Further records may have come, and the oldest may have gone.
    expect(passed.filter((seq) => seq >= (own[0] ?? 0))).toEqual(own.slice(0, own.indexOf(passed.at(-1) ?? -1) + 1));
    expect(passed.length).toBeGreaterThan(0);
  });
});

describe('a process that is not the reader', () => {
  it.each([
    ['garbage', `c.on('data', () => c.write('HTTP/1.1 400 Bad Request\\r\\n\\r\\n'));`, 'kmsg-not-a-log'],
    ['a frame that is too large', `c.on('data', () => c.write(Buffer.from([0x72, 0xff, 0xff])));`, 'kmsg-not-a-log'],
    ['text in the place of an errno', `${FRAMES} c.on('data', () => c.write(f('x', 'well <b>')));`, 'kmsg-not-a-log'],
    ['nothing', '', 'kmsg-failed'],
    ['half a frame', `c.on('data', () => c.write('r'));`, 'kmsg-failed'],
    ['its end', `c.end();`, 'kmsg-failed'],
    ['records of no log', `${FRAMES} c.on('data', () => c.write(Buffer.concat([f('r', 'no record'), f('e', '')])));`, 'kmsg-malformed'],
  ])('can only make the log unread by %s', async (_what, answer, code) => {
    await startForger(answer);
    const before = readdirSync('/proc/self/fd').length;
    const reader = open();
    for (let times = 0; times < 5; times += 1) reader.poll();
    await expect.poll(() => problemOf(reader)?.code, WAIT).toBe(code);
    expect(reader.status().records).toBe(0);
    reader.close();
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before);
  });

  it('is waited for once when it does not answer', async () => {
    await startForger('');
    const reader = open();
    reader.poll();
    // Each wait that follows would be a third of a second, and the test would not end.
    for (let times = 0; times < 5_000; times += 1) reader.poll();
    expect(reader.status().problem).toEqual({ code: 'kmsg-failed', message: `${socket} does not answer in time` });
  });

  it('does not hide the records of the reader that comes after it, by numbers that are never reached', async () => {
    const forger = await startForger(
      `${FRAMES} c.on('data', () => c.write(Buffer.concat([f('r', '3,999999999,1,-;forged'), f('e', '')])));`,
    );
    const reader = open();
    await pollWell(reader);
    await end(forger);
    append(1);
    append(2);
    await startReader();
    await pollWell(reader);
    expect(texts()).toEqual(['forged', 'line 1', 'line 2']);
    append(3);
    await pollWell(reader);
    expect(texts().slice(1)).toEqual(['line 1', 'line 2', 'line 3']);
  });
});

describe('the server that passes the log on', () => {
  let server: Server;
  let client: Socket;
  /** One for each client that asked, in that order. */
  let logs: { reads: number; isClosed: boolean }[];

  beforeEach(async () => {
    logs = [];
    const endless = () => {
      const log = { reads: 0, isClosed: false };
      logs.push(log);
      return {
        next() {
          log.reads += 1;
          return Buffer.from(record(log.reads, 'x'.repeat(1_000)));
        },
        close() {
          log.isClosed = true;
        },
      };
    };
    server = relayServer(endless, () => {});
    server.listen(socket);
    await once(server, 'listening');
    client = connect(socket);
    await once(client, 'connect');
  });

  afterEach(() => {
    client.destroy();
    server.close();
  });

  /** Another client asked and was answered twice: what the server got before is done. */
  async function othersAnswered(): Promise<void> {
    for (let times = 0; times < 2; times += 1) {
      const other = connect(socket);
      other.write('?');
      await once(other, 'data');
      other.destroy();
    }
  }

  it('reads nothing before it is asked, and one answer for one question', async () => {
    await othersAnswered();
    expect(logs, 'of the two others').toHaveLength(2);
    client.write('?');
    client.resume();
    await once(client, 'data');
    await othersAnswered();
    expect((logs[2]?.reads ?? Number.NaN) * 1_000).toBeLessThan(100_000);
  });

  it('leaves the log where it is while a client takes nothing, however often that asks', async () => {
    client.pause();
    for (let times = 0; times < 10_000; times += 1) client.write('?');
    await expect.poll(() => logs[0]?.reads ?? 0, WAIT).toBeGreaterThan(0);
    for (let times = 0; times < 10_000; times += 1) client.write('?');
    await othersAnswered();
    // What the buffers of the socket take, and one answer: an answer to each question would be hundreds of megabytes.
    expect((logs[0]?.reads ?? Number.NaN) * 1_000).toBeLessThan(2_000_000);
  });

  it('closes the log of a client that is gone, in the middle of an answer, too', async () => {
    client.pause();
    client.write('??');
    await expect.poll(() => logs[0]?.reads ?? 0, WAIT).toBeGreaterThan(0);
    client.destroy();
    await expect.poll(() => logs[0]?.isClosed, WAIT).toBe(true);
  });
});
