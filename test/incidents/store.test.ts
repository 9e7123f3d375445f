import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freeze } from '../../src/incidents/freeze.ts';
import { type IncidentRecord, incidentId } from '../../src/incidents/record.ts';
import { isOneIncident } from '../../src/incidents/recorder.ts';
import { encodeRecord, IncidentStore, type StoreSettings } from '../../src/incidents/store.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { createLogger } from '../../src/log/logger.ts';
import { changed, state, T0, verdict } from './scene.ts';

let root: string;
let log: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-incidents-'));
  log = [];
});
afterEach(() => rmSync(root, { recursive: true }));

const directory = (): string => join(root, 'incidents');
const open = (part: Partial<StoreSettings> = {}): Promise<IncidentStore> => {
  const logger = createLogger({ level: 'info', format: 'json' }, { write: (line) => log.push(line) });
  return IncidentStore.open({ directory: directory(), keep: 200, keepBytes: 2 ** 25, ...part }, createChangeLog(logger));
};
const record = (n: number, part: Partial<IncidentRecord> = {}): IncidentRecord => {
  const timeMs = T0 + n * 1_000;
  return {
    ...freeze({
      id: incidentId(timeMs, { family: 'toy', id: 'a' }, () => false),
      place: { node: 'n', agentVersion: '1', host: {} },
      event: changed('healthy', 'unhealthy', timeMs),
      state: state({ verdict: verdict('unhealthy') }),
      holders: [],
      areHoldersKnown: true,
      events: [],
      isWiped: () => false,
    }),
    ...part,
  };
};
const file = (id: string): string => join(directory(), `${id}.json`);

describe('the store of incidents', () => {
  it('has what a newer agent recorded when that has ended, and one record of what both did', async () => {
    let isHeld = true;
    const store = await IncidentStore.open(
      { directory: directory(), keep: 200, keepBytes: 2 ** 25 },
      createChangeLog(createLogger({ level: 'info', format: 'json' }, { write: () => {} })),
      () => isHeld,
    );
    store.save(record(1));
    await store.saved();
    isHeld = false;
    const newer = await open();
    // The last one is of the incident of which the older one has a record on the disk.
    for (const n of [61, 200, 5]) newer.save(record(n));
    await newer.saved();
    store.save(record(60));
    store.save(record(300));
    await store.saved();
    isHeld = true;
    await store.resume(isOneIncident);
    const ids = (n: readonly number[]): readonly string[] => n.map((one) => record(one).id);
    expect(store.list().map(({ id }) => id)).toEqual(ids([300, 200, 60, 1]));
    expect(readdirSync(directory()).sort()).toEqual(ids([1, 60, 200, 300]).map((id) => `${id}.json`));
  });

  it('writes one file for each record, for its owner only, and lists it again after a restart', async () => {
    const store = await open();
    store.save(record(1));
    store.save(record(2));
    store.save(record(2, { node: 'later version' }));
    await store.saved();
    expect(readdirSync(directory()).sort()).toEqual(['20261123-200001-toy-a.json', '20261123-200002-toy-a.json']);
    expect(statSync(file('20261123-200001-toy-a')).mode & 0o777).toBe(0o600);
    const again = await open();
    expect(again.list()).toEqual([
      expect.objectContaining({ id: '20261123-200002-toy-a', states: ['healthy', 'unhealthy'], conditions: ['TooHot'] }),
      expect.objectContaining({ id: '20261123-200001-toy-a', device: 'toy/a', time: '2026-11-23T20:00:01.000Z' }),
    ]);
    expect(await again.read('20261123-200002-toy-a')).toEqual({ record: record(2, { node: 'later version' }) });
    expect(JSON.parse(readFileSync(file('20261123-200001-toy-a'), 'utf8')), 'one JSON document').toMatchObject({ version: 1 });
    expect(log).toEqual([]);
  });

  it('removes the oldest above the number and above the size, and never the newest', async () => {
    const store = await open({ keep: 3 });
    for (let n = 0; n < 10; n += 1) store.save(record(n));
    await store.saved();
    expect(readdirSync(directory())).toHaveLength(3);
    expect(store.list().map(({ id }) => id)).toEqual(['20261123-200009-toy-a', '20261123-200008-toy-a', '20261123-200007-toy-a']);
    const small = await open({ keepBytes: 10 });
    small.save(record(20));
    await small.saved();
    expect(readdirSync(directory())).toEqual(['20261123-200020-toy-a.json']);
  });

  it('leaves foreign, cut and forged files alone, tells once, and removes what an interrupted write left', async () => {
    mkdirSync(directory());
    const whole = encodeRecord(record(1));
    writeFileSync(file('20261123-200001-toy-a'), whole);
    writeFileSync(file('20261123-200002-toy-a'), encodeRecord(record(2)).slice(0, -40));
    writeFileSync(file('20261123-200003-toy-a'), whole);
    writeFileSync(file('20261123-200004-toy-a'), '');
    writeFileSync(file('20261123-200005-toy-a'), '{"a":1}\n');
    writeFileSync(join(directory(), 'notes.txt'), 'mine');
    writeFileSync(join(directory(), '20261123-200001-toy-a.json.1234567890.tmp'), 'part');
    mkdirSync(file('20261123-200006-toy-a'));
    const store = await open();
    expect(store.list().map(({ id }) => id)).toEqual(['20261123-200001-toy-a']);
    expect(log).toHaveLength(1);
    expect(JSON.parse(log[0] as string)).toMatchObject({ level: 'warn', files: 6 });
    expect(readdirSync(directory()).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    expect(readFileSync(join(directory(), 'notes.txt'), 'utf8')).toBe('mine');
  });

  it('lists a record of a newer version and does not read it', async () => {
    mkdirSync(directory());
    writeFileSync(file('20261123-200001-toy-a'), encodeRecord(record(1)).replace('"version":1', '"version":2'));
    const store = await open();
    expect(store.list()).toEqual([expect.objectContaining({ id: '20261123-200001-toy-a', newerVersion: 2 })]);
    expect(await store.read('20261123-200001-toy-a')).toEqual({ problem: expect.stringContaining('version 2') });
  });

  it('reads listed ids only, whatever a path looks like', async () => {
    writeFileSync(join(root, 'secret.json'), encodeRecord(record(1)));
    const store = await open();
    store.save(record(1));
    await store.saved();
    for (const id of ['../secret', '..%2fsecret', '/etc/passwd', '', '.', '20261123-200001-toy-a.json', '20261123-200001-toy-a\0']) {
      expect(await store.read(id)).toBeUndefined();
    }
  });

  it('keeps the newest twenty in memory while the disk refuses, tells once, and writes them when it can', async () => {
    writeFileSync(directory(), 'a file is in the way');
    const store = await open();
    for (let n = 0; n < 30; n += 1) {
      store.save(record(n));
      await store.saved();
    }
    expect(store.list()).toHaveLength(20);
    expect(await store.read('20261123-200029-toy-a')).toEqual({ record: record(29) });
    const told = (): string[] => log.filter((line) => line.includes('incidents cannot be saved'));
    expect(told()).toHaveLength(1);
    rmSync(directory());
    await store.close();
    expect(readdirSync(directory())).toHaveLength(20);
    expect(log.at(-1)).toContain('they are saved again');
    expect(told()).toHaveLength(1);
  });

  it('without a directory keeps the newest twenty in memory only', async () => {
    const store = await open({ directory: undefined });
    for (let n = 0; n < 30; n += 1) store.save(record(n));
    await store.saved();
    expect(store.list()).toHaveLength(20);
    expect(await store.read('20261123-200029-toy-a')).toEqual({ record: record(29) });
    expect(readdirSync(root)).toEqual([]);
  });

  it('says that a file was damaged after it was listed', async () => {
    const store = await open();
    store.save(record(1));
    await store.saved();
    writeFileSync(file('20261123-200001-toy-a'), '{');
    chmodSync(file('20261123-200001-toy-a'), 0o600);
    expect(await store.read('20261123-200001-toy-a')).toEqual({ problem: expect.stringContaining('no record') });
  });
});
