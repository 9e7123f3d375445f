import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bootIdOf } from '../../src/agent/state.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { createStateFile, decodeState, encodeState } from '../../src/health/journal/state-file.ts';
import { setAside } from '../../src/host/fs/kept-file.ts';
import { found, OneDevice, policyFor, spec } from './one-device.ts';

const BOOT = '6f1d2c1e-boot';
const policy = policyFor([spec('Down', { class: 'latched' }), spec('Errors', { class: 'rate' })]);

function someState(count = 1): HealthMemory {
  const one = new OneDevice(policy);
  one.read(0, found('Errors', { count: 0 }));
  for (let at = 1; at <= count; at += 1) one.read(at, found('Down', { instance: '1' }), found('Errors', { count: at }));
  return one.engine.state();
}

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the text of a state file', () => {
  it('decodes to the encoded state', async () => {
    const state = someState();
    const read = await decodeState(await encodeState(state, BOOT), BOOT);
    expect(read.state).toEqual(state);
    expect(createHealthEngine({ policy, state: read.state as HealthMemory }).knownDevices()).toHaveLength(1);
  });

  it('is complete or ignored when it is truncated at any byte', async () => {
    const state = someState();
    const whole = Buffer.from(await encodeState(state, BOOT));
    const outcomes = new Set<string>();
    for (let length = 0; length < whole.length; length += 1) {
      const read = await decodeState(whole.subarray(0, length).toString('utf8'), BOOT);
      if (read.state !== undefined) expect(read.state).toEqual(state);
      outcomes.add(read.ignored ?? `whole without ${whole.length - length} byte`);
    }
    expect([...outcomes].sort()).toEqual(['damaged', 'whole without 1 byte']);
  });

  it('is that of another boot where the boot has no identity that can be read', async () => {
    const boot = bootIdOf(folder);
    expect(await decodeState(await encodeState(someState(), boot), boot)).toMatchObject({ ignored: 'other-boot' });
  });

  it('is ignored when any one byte differs', async () => {
    const whole = Buffer.from(await encodeState(someState(), BOOT));
    for (let at = 0; at < whole.length - 1; at += 1) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] as number) ^ 1;
      expect((await decodeState(changed.toString('utf8'), BOOT)).state, `byte ${at}`).toBeUndefined();
    }
  });

  it('is ignored, with the reason, when it has another boot, another version or no state at all', async () => {
    const text = await encodeState(someState(), BOOT);
    expect(await decodeState(text, 'another')).toMatchObject({ ignored: 'other-boot', message: 'is from another boot of the machine' });
    expect(await decodeState(await encodeState(someState(), ''), ''), 'an unknown boot is never the same').toMatchObject({
      ignored: 'other-boot',
    });
    expect(await decodeState(text.replace('"version":5', '"version":9'), BOOT)).toMatchObject({ ignored: 'other-version' });
    for (const other of ['', '\n\n', '{}', '[]', 'null\nnull', '12', 'text', '\u0000\u0001']) {
      expect((await decodeState(other, BOOT)).ignored).toBe('damaged');
    }
    const wrongShape = await encodeState({ devices: {}, events: [] } as unknown as HealthMemory, BOOT);
    expect((await decodeState(wrongShape, BOOT)).ignored).toBe('damaged');
  });

  it('omits the history of counters first, then the events, but never the conditions', async () => {
    const path = join(folder, 'health.json');
    const state = someState(50);
    const written = async (maxBytes: number) => {
      const error = await createStateFile({ path, bootId: BOOT, maxBytes }).write(state);
      return error ?? (await decodeState(readFileSync(path, 'utf8'), BOOT)).state;
    };
    const full = (await encodeState(state, BOOT)).length;
    const smaller = (await written(full - 1)) as HealthMemory;
    expect(smaller.devices['test/one']).toMatchObject({ rates: {}, conditions: { 'Down/1': { phase: 'active' } } });
    expect(smaller.events).toEqual(state.events);
    const smallest = (await written(readFileSync(path).length - 1)) as HealthMemory;
    expect(smallest).toMatchObject({ events: [], lastEventId: state.lastEventId });
    expect(smallest.devices['test/one']?.conditions).toEqual(state.devices['test/one']?.conditions);
    expect(await written(100)).toBe('the state is larger than 100 bytes');
  });
});

describe('a state file', () => {
  it('is replaced as a whole and leaves no other file', async () => {
    const path = join(folder, 'deep', 'er', 'health.json');
    const file = createStateFile({ path, bootId: BOOT });
    expect(await file.read()).toMatchObject({ ignored: 'absent' });
    for (const count of [1, 2, 3]) expect(await file.write(someState(count))).toBeUndefined();
    expect((await file.read()).state).toEqual(someState(3));
    expect(readdirSync(join(folder, 'deep', 'er'))).toEqual(['health.json']);
  });

  it('loses nothing when an earlier write was interrupted at any moment', async () => {
    const path = join(folder, 'health.json');
    const file = createStateFile({ path, bootId: BOOT });
    await file.write(someState(1));
    const next = await encodeState(someState(2), BOOT);
    for (const length of [0, 1, 100, next.length - 1, next.length]) {
      writeFileSync(`${path}.4711.tmp`, next.slice(0, length));
      expect((await file.read()).state).toEqual(someState(1));
      expect(readdirSync(folder), 'what the cut write left is removed').toEqual(['health.json']);
    }
  });

  it('is complete after each write of two agents in two containers with the same path and process id', async () => {
    const path = join(folder, 'health.json');
    const files = [1, 2].map(() => createStateFile({ path, bootId: BOOT }));
    const states = [1, 40].map((count) => someState(count));
    const whole = await Promise.all(states.map((state) => encodeState(state, BOOT)));
    for (let round = 0; round < 50; round += 1) {
      const errors = await Promise.all(files.map((file, at) => file.write(states[at] as HealthMemory)));
      expect(errors).toEqual([undefined, undefined]);
      expect(whole).toContain(readFileSync(path, 'utf8'));
    }
    expect(readdirSync(folder)).toEqual(['health.json']);
  });

  it('leaves no other file when it cannot be written', async () => {
    mkdirSync(join(folder, 'health.json'));
    expect(await createStateFile({ path: join(folder, 'health.json'), bootId: BOOT }).write(someState())).toContain('EISDIR');
    expect(readdirSync(folder)).toEqual(['health.json']);
  });

  it('of a newer version is kept under another name', async () => {
    const path = join(folder, 'health.json');
    const newer = (await encodeState(someState(1), BOOT)).replace('"version":5', '"version":6');
    writeFileSync(path, newer);
    const file = createStateFile({ path, bootId: BOOT });
    expect(await file.read()).toMatchObject({ ignored: 'other-version' });
    expect(await file.write(someState(2))).toBeUndefined();
    expect(readFileSync(`${path}.unused`, 'utf8')).toBe(newer);
    expect((await file.read()).state).toEqual(someState(2));
  });

  it('removes no foreign file during cleanup', async () => {
    for (const name of ['health.json.tmp', 'health.json.old.tmp', 'other.json.1.tmp']) writeFileSync(join(folder, name), '');
    await createStateFile({ path: join(folder, 'health.json'), bootId: BOOT }).read();
    expect(readdirSync(folder)).toHaveLength(3);
  });

  it('is ignored when it is too large, a directory, a pipe without a writer or a link to itself', async () => {
    const read = async (name: string) => (await createStateFile({ path: join(folder, name), bootId: BOOT, maxBytes: 1000 }).read()).ignored;
    writeFileSync(join(folder, 'large'), 'x'.repeat(1001));
    mkdirSync(join(folder, 'directory'));
    symlinkSync('loop', join(folder, 'loop'));
    expect(await read('large')).toBe('too-large');
    expect(await read('directory')).toBe('unreadable');
    expect(await read('loop')).toBe('unreadable');
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(await read('pipe')).toBe('unreadable');
    expect(readdirSync(folder).sort()).toEqual(['directory', 'large.unused', 'loop', 'pipe']);
  });

  it('replaces no pipe and no device, and says so', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const file = createStateFile({ path: join(folder, 'pipe'), bootId: BOOT });
    expect(await file.write(someState())).toBe(`${join(folder, 'pipe')} is a device, a pipe or a socket; name a file`);
    expect(await setAside(join(folder, 'pipe'))).toBeUndefined();
    expect(lstatSync(join(folder, 'pipe')).isFIFO()).toBe(true);
    expect(readdirSync(folder)).toEqual(['pipe']);
  });

  const SPOILS: readonly (readonly [string, (state: HealthMemory) => unknown])[] = [
    ['no devices', () => ({ devices: null })],
    ['a list of devices', () => ({ devices: [1] })],
    ['a device that is null', () => ({ devices: { 'test/one': null } })],
    ['a device without conditions', ({ devices }) => ({ devices: { 'test/one': { ...devices['test/one'], conditions: undefined } } })],
    ['a series without points', ({ devices }) => ({ devices: withRate(devices, { value: 1, atMs: 1, points: [] }) })],
    ['a time beyond any date', ({ devices }) => ({ devices: { 'test/one': { ...devices['test/one'], listedAtMs: 1e300 } } })],
    ['an unknown state', ({ devices }) => ({ devices: { 'test/one': { ...devices['test/one'], verdict: { state: 'x', sinceMs: 1 } } } })],
    ['an event that is a number', () => ({ events: { 1: 7 } })],
    ['steps that are no list', () => ({ hung: { test: 'x' } })],
    ['counts of faults without marks', () => ({ faults: { marks: null, byEvents: {}, totals: {}, own: {}, held: {} } })],
    ['a holder of a fault that is null', () => ({ faults: { marks: {}, byEvents: {}, totals: {}, own: {}, held: { a: [null] } } })],
    ['families that are numbers', () => ({ completed: [1] })],
    ['too many devices', ({ devices }) => ({ devices: Object.fromEntries(range(20_000).map((n) => [`test/${n}`, devices['test/one']])) })],
    ['a deep value', ({ devices }) => ({ devices: { 'test/one': { ...devices['test/one'], more: deep(500) } } })],
  ];
  const range = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);
  const withRate = (devices: HealthMemory['devices'], rate: unknown) => ({
    'test/one': { ...devices['test/one'], rates: { Errors: rate } },
  });
  const deep = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);

  /** A file with a valid checksum, as another program can write it. */
  function textOf(state: unknown): string {
    const header = JSON.stringify({ format: 'device-agent-health', version: 5, bootId: BOOT });
    const body = typeof state === 'string' ? state : JSON.stringify(state);
    return `${header}\n${crc32(body, crc32(header)).toString(16).padStart(8, '0')} ${body}\n`;
  }

  function sectionsOf({ devices, events, ...engine }: HealthMemory): Record<string, unknown> {
    return { engine, devices, events: Object.fromEntries(events.map((event) => [event.id, event])) };
  }

  it.each(SPOILS)('with a valid checksum and %s is set aside, with the place of the error', async (_, spoil) => {
    const path = join(folder, 'health.json');
    const state = someState();
    const good = sectionsOf(state);
    expect((await decodeState(textOf(good), BOOT)).state, 'the text is right but for what is spoilt').toEqual(state);
    const { devices, events, ...engine } = spoil(state) as Record<string, unknown>;
    const wrapped = {
      engine: { ...(good.engine as object), ...engine },
      devices: devices === undefined ? good.devices : devices,
      events: events === undefined ? good.events : events,
    };
    writeFileSync(path, textOf(wrapped));
    const file = createStateFile({ path, bootId: BOOT });
    const read = await file.read();
    expect(read).toMatchObject({
      ignored: 'damaged',
      kept: `${path}.unused`,
      message: expect.stringMatching(/must|has|sections/),
    });
    expect(await file.write(state)).toBeUndefined();
    expect((await file.read()).state).toEqual(state);
  });

  it.each([
    'null',
    '[null]',
    '[[]]',
    '[7]',
    '7',
    '{"engine":null}',
    '{"engine":[1,2]}',
    `[${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}]`,
    `${'{"a":'.repeat(100_000)}[1]${'}'.repeat(100_000)}`,
  ])('whose line is no state is set aside: %.30s', async (line) => {
    const path = join(folder, 'health.json');
    writeFileSync(path, textOf(line));
    expect(await createStateFile({ path, bootId: BOOT }).read()).toMatchObject({ ignored: 'damaged', kept: `${path}.unused` });
  });

  it('reports why it could not be written and keeps the old file', async () => {
    const path = join(folder, 'health.json');
    await createStateFile({ path, bootId: BOOT }).write(someState(1));
    const before = readFileSync(path, 'utf8');
    expect(await createStateFile({ path, bootId: BOOT, maxBytes: 10 }).write(someState(2))).toBe('the state is larger than 10 bytes');
    expect(await createStateFile({ path: join(path, 'below-a-file'), bootId: BOOT }).write(someState(2))).toContain('ENOTDIR');
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it.each(['/proc/none/below/state.json', '/sys/none/state.json'])('reports when no directory can be created: %s', async (path) => {
    expect(await createStateFile({ path, bootId: BOOT }).write(someState())).toMatch(/^E[A-Z]+: .*mkdir '/);
  });

  it('creates the directories that it needs', async () => {
    const path = join(folder, 'one/two/three/state.json');
    expect(await createStateFile({ path, bootId: BOOT }).write(someState())).toBeUndefined();
    expect(readdirSync(join(folder, 'one/two/three'))).toEqual(['state.json']);
  });
});
