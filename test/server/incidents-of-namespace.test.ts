import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freeze } from '../../src/incidents/freeze.ts';
import type { IncidentHolder, IncidentRecord } from '../../src/incidents/record.ts';
import { encodeRecord, IncidentStore } from '../../src/incidents/store.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { createLogger } from '../../src/log/logger.ts';
import { changed, state, T0, verdict } from '../incidents/scene.ts';
import { ask, start } from './asking.ts';

const at = (seconds: number): string => new Date(T0 + seconds * 1_000).toISOString();
const holder = (namespace: string, pod: string, more: Partial<IncidentHolder> = {}): IncidentHolder => ({
  ...{ namespace, pod, container: 'main', resource: 'toy/a', deviceId: `a::${namespace}`, since: at(-500) },
  ...more,
});

/** A record in which each text names a process and a pod of `secret-b`. */
function record(id: string, holders: readonly IncidentHolder[]): IncidentRecord {
  const frozen = freeze({
    id,
    place: { node: 'node-secret-b', agentVersion: '1', host: {} },
    event: { ...changed('healthy', 'unhealthy', T0), reason: 'secret-b', message: 'process 77 (secret-b)' },
    state: state({ verdict: verdict('unhealthy') }),
    holders: [],
    areHoldersKnown: true,
    events: [changed('healthy', 'degraded', T0 - 9_000)],
    isWiped: () => false,
  });
  const [condition] = frozen.after.conditions ?? [];
  return {
    ...frozen,
    after: { ...frozen.after, conditions: [{ ...condition, message: 'secret-b' } as NonNullable<typeof condition>] },
    holders,
    processes: [{ pid: 77, name: 'secret-b' }],
    kernel: { lines: [{ text: 'pid=77, name=secret-b' }] },
    others: [{ device: 'toy/secret-b', time: at(0), to: 'unhealthy' }],
    suppressed: { count: 3, last: at(60) },
  };
}

const FILES: Readonly<Record<string, IncidentRecord>> = Object.fromEntries(
  [
    record('20261123-200001-toy-a', [holder('team-a', 'web-0', { uid: 'u' }), holder('team-b', 'secret-b-0')]),
    record('20261123-200002-toy-a', [holder('team-b', 'secret-b-0')]),
    record('20261123-200003-toy-a', [holder('team-b', 'secret-b-1'), holder('team-a', 'web-1', { until: at(-20) })]),
    record('20261123-200004-toy-a', [holder('team-b', 'secret-b-1'), holder('team-a', 'early', { until: at(-400) })]),
    record('20261123-200005-toy-a', []),
    record('20261123-200006-toy-a', [
      ...Array.from({ length: 20 }, (_, n) => holder('team-b', `secret-b-${n}`)),
      holder('team-a', 'web-2'),
      holder('team-aa', 'secret-b'),
    ]),
  ].map((one) => [one.id, one]),
);

let directory: string;
let incidents: IncidentStore;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-incidents-'));
  mkdirSync(directory, { recursive: true });
  for (const [id, one] of Object.entries(FILES)) writeFileSync(join(directory, `${id}.json`), encodeRecord(one));
  const [damaged = ''] = Object.values(FILES).map(encodeRecord);
  // The first line and the end are right, so it is listed; the record itself cannot be read.
  const lines = damaged.replaceAll('20261123-200001', '20261123-200007').split('\n');
  writeFileSync(join(directory, '20261123-200007-toy-a.json'), `${lines[0]}\n"record":{"secret-b"}}\n`);
  const logger = createLogger({ level: 'info', format: 'json' }, { write: () => undefined });
  incidents = await IncidentStore.open({ directory, keep: 200, keepBytes: 2 ** 25 }, createChangeLog(logger));
});
afterAll(() => rmSync(directory, { recursive: true }));

const serve = () => start({ parts: { incidents } });
const answer = async (query: string): Promise<string> => (await ask(`${(await serve()).url}/api/incidents${query}`)).body.toString();

it('are told with nothing of other pods, and how many records could not be read', async () => {
  const text = await answer('?namespace=team-a');
  expect(text).not.toMatch(/secret|team-b|team-aa|77|early/);
  const own = { device: 'toy/a', time: at(0), states: ['healthy', 'unhealthy'], conditions: ['TooHot'], remedies: ['reset'] };
  expect(JSON.parse(text)).toMatchObject({
    incidents: [
      { ...own, id: '20261123-200006-toy-a', holders: ['team-a/web-2/main'], held: [holder('team-a', 'web-2')] },
      { ...own, id: '20261123-200003-toy-a', holders: ['team-a/web-1/main'], held: [holder('team-a', 'web-1', { until: at(-20) })] },
      { ...own, id: '20261123-200001-toy-a', holders: ['team-a/web-0/main'], held: [holder('team-a', 'web-0', { uid: 'u' })] },
    ],
    faults: [],
    // Whom the damaged record hit is unknown: perhaps a pod of this namespace.
    unread: 1,
  });
  expect(JSON.parse(await answer('?namespace=nowhere'))).toMatchObject({ incidents: [], unread: 1 });
  expect(JSON.parse(await answer(''))).toMatchObject({ incidents: incidents.list() });
});

it.each<[query: string, code: string]>([
  ['?namespace=team-a&namespace=team-b', 'parameter-invalid'],
  ['?namespace=', 'parameter-invalid'],
  ['?namespace=*', 'parameter-invalid'],
  ['?namespace=team-a,team-b', 'parameter-invalid'],
  ['?namespace=team-a%00', 'parameter-invalid'],
  ['?namespace[]=team-b', 'parameter-unknown'],
  ['?namespace[0]=team-b', 'parameter-unknown'],
  ['?Namespace=team-b', 'parameter-unknown'],
  ['?__proto__=team-b', 'parameter-unknown'],
])('are not told by %s: %s', async (query, code) => {
  const text = await answer(query);
  expect(JSON.parse(text)).toMatchObject({ error: { code } });
  expect(text).not.toContain('secret');
});
