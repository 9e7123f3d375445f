import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compare, hashSync } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freeze } from '../../../src/incidents/freeze.ts';
import type { IncidentHolder, IncidentRecord } from '../../../src/incidents/record.ts';
import { encodeRecord, IncidentStore } from '../../../src/incidents/store.ts';
import { createChangeLog } from '../../../src/log/changes.ts';
import { createLogger } from '../../../src/log/logger.ts';
import { type Access, OPEN_ACCESS } from '../../../src/server/access/access.ts';
import { changed, state, T0, verdict } from '../../incidents/scene.ts';
import { ask, connectTo, start } from '../asking.ts';
import { feedOf, gpu } from '../feed/support.ts';

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
  directory = mkdtempSync(join(tmpdir(), 'device-agent-tenants-'));
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

const hash = (text: string): string => hashSync(text, 4);
const HASHES = new Map([
  ['admin', hash('0')],
  ['alice', hash('1')],
  ['both', hash('2')],
]);
const BOUND = new Map([
  ['alice', ['team-a']],
  ['both', ['team-a', 'team-b']],
]);
const PASSWORDS: Readonly<Record<string, string>> = { admin: '0', alice: '1', both: '2' };
const by = (user: string) => ({ authorization: `Basic ${Buffer.from(`${user}:${PASSWORDS[user]}`).toString('base64')}` });

function changing() {
  const subscribers: ((access: Access) => void)[] = [];
  const access = {
    current: { ...OPEN_ACCESS, users: HASHES, namespaces: BOUND } as Access,
    subscribe: (apply: (access: Access) => void) => void subscribers.push(apply),
    bind(namespaces: Access['namespaces']) {
      access.current = { ...access.current, namespaces };
      for (const apply of subscribers) apply(access.current);
    },
  };
  return access;
}
const serveTo = (access = changing(), more = {}, options = {}) =>
  start({ parts: { access, incidents, comparePassword: compare, ...more }, options });
interface Told {
  readonly incidents: readonly { readonly id?: string; readonly held: readonly IncidentHolder[]; readonly holders: readonly string[] }[];
  readonly unread?: number;
}
const told = async (url: string, user: string, query = ''): Promise<Told> =>
  JSON.parse((await ask(`${url}/api/incidents${query}`, by(user))).body.toString()) as Told;

describe('a user that is bound to namespaces', () => {
  it('reads the incidents that hit pods there, with nothing of other pods', async () => {
    const { url } = await serveTo();
    const { status, body } = await ask(`${url}/api/incidents`, by('alice'));
    expect(status).toBe(200);
    expect(body.toString()).not.toMatch(/secret|team-b|team-aa|77|early/);
    const own = { device: 'toy/a', time: at(0), states: ['healthy', 'unhealthy'], conditions: ['TooHot'], remedies: ['reset'] };
    const { takenAt: _takenAt, ...rest } = JSON.parse(body.toString()) as Told & { takenAt: string };
    expect(rest).toEqual({
      incidents: [
        { ...own, holders: ['team-a/web-2/main'], held: [holder('team-a', 'web-2')] },
        { ...own, holders: ['team-a/web-1/main'], held: [holder('team-a', 'web-1', { until: at(-20) })] },
        { ...own, holders: ['team-a/web-0/main'], held: [holder('team-a', 'web-0', { uid: 'u' })] },
      ],
      faults: [],
      // Whom the damaged record hit is unknown: perhaps a pod of hers.
      unread: 1,
    });
    expect(await told(url, 'alice', '?namespace=team-a')).toEqual(JSON.parse(body.toString()));
  });

  it('gets the same answer whatever pods of others did', async () => {
    const { url } = await serveTo();
    const without = Object.values(FILES)
      .map((one) => ({ ...one, holders: one.holders.filter(({ namespace }) => namespace === 'team-a') }))
      .filter(({ holders }) => holders.length > 0);
    const alone = {
      list: () => without.toReversed().map(({ id }) => ({ id, time: '', device: '', states: [], conditions: [], holders: [] })),
      read: (id: string) => Promise.resolve({ record: without.find((one) => one.id === id) as IncidentRecord }),
    };
    const other = await serveTo(changing(), { incidents: alone });
    expect((await told(url, 'alice')).incidents).toEqual((await told(other.url, 'alice')).incidents);
  });

  it.each<[query: string, status: number, code: string]>([
    ['?namespace=team-b', 403, 'namespace-not-allowed'],
    ['?namespace=nowhere', 403, 'namespace-not-allowed'],
    ['?namespace=team-a&namespace=team-b', 400, 'parameter-invalid'],
    ['?namespace=', 400, 'parameter-invalid'],
    ['?namespace=*', 400, 'parameter-invalid'],
    ['?namespace=team-a,team-b', 400, 'parameter-invalid'],
    ['?namespace=team-a%00', 400, 'parameter-invalid'],
    ['?namespace[]=team-b', 400, 'parameter-unknown'],
    ['?namespace[0]=team-b', 400, 'parameter-unknown'],
    ['?Namespace=team-b', 400, 'parameter-unknown'],
    ['?pod=secret-b-0', 400, 'parameter-unknown'],
    ['?__proto__=team-b', 400, 'parameter-unknown'],
  ])('gets by %s nothing: %i %s', async (query, status, code) => {
    const { url } = await serveTo();
    const answer = await ask(`${url}/api/incidents${query}`, by('alice'));
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ error: { code } });
    expect(answer.body.toString()).not.toContain('secret');
  });

  it('is told so by a page in a browser, with nothing of the node', async () => {
    const { url } = await serveTo();
    const { status, body } = await ask(`${url}/agent`, { ...by('alice'), accept: 'text/html' });
    expect(status).toBe(403);
    expect(body.toString()).toContain('<h1>This user is bound to namespaces, and this page shows other tenants.</h1>');
    expect(body.toString()).not.toMatch(/node-1|toy|secret|team/);
  });

  it.each([
    '/metrics',
    '/',
    '/nothing',
    '/devices/toy/toy-0',
    '/pods/team-a/web-0',
    '/incidents',
    '/incidents/20261123-200001-toy-a',
    '/usage',
    '/agent',
    '/conditions',
    '/assets/page.js',
    '/api',
    '/api/',
    '/api/incidents/',
    '/API/incidents',
    '//api/incidents',
    '/api//incidents',
    '/api/%69ncidents',
    '/api/incidents/20261123-200001-toy-a',
    '/api/incidents/..',
    '/api/incidents;x',
    '/api/v1/devices',
    '/api/v1/allocations',
    '/api/v1/events',
    '/api/v1/status',
    '/api/usage',
    '/api/v1/devices/trends',
    '/api/v1/devices/watch',
    '/api/health/watch',
    '/-/ready/devices',
  ])('is refused at %s, with the cause', async (path) => {
    const { url } = await serveTo(changing(), { feed: feedOf([gpu()]).feed });
    for (const target of [path, `http://127.0.0.1${path}`]) {
      const connection = connectTo(
        url,
        `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${by('alice').authorization}\r\nConnection: close\r\n\r\n`,
      );
      let text = '';
      connection.socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      await connection.closed;
      expect(text).toMatch(/^HTTP\/1\.1 403 /);
      expect(text).toContain('This user is bound to namespaces, and this page shows other tenants.');
    }
  });

  it.each(['http://localhost/metrics/../api/incidents', '/metrics/../api/incidents', '/api/v1/devices/../../incidents'])(
    'is refused at %s, which only looks like the path',
    async (target) => {
      const { url } = await serveTo();
      const connection = connectTo(
        url,
        `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${by('alice').authorization}\r\nConnection: close\r\n\r\n`,
      );
      let text = '';
      connection.socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      await connection.closed;
      expect(text).toMatch(/^HTTP\/1\.1 403 /);
    },
  );

  it('changes nothing', async () => {
    const { url } = await serveTo(changing(), {}, { 'enable-lifecycle': true });
    for (const path of ['/-/reload', '/-/release?family=toy&for=10m'])
      expect((await ask(url + path, by('alice'), 'POST')).status).toBe(403);
    expect((await ask(`${url}/api/incidents`, by('alice'), 'POST')).status).toBe(405);
  });

  it('gets 404 where the API is off', async () => {
    const { url } = await serveTo(changing(), {}, { api: false });
    expect((await ask(`${url}/api/incidents`, by('alice'))).status).toBe(404);
    expect((await ask(`${url}/`, by('alice'))).status).toBe(403);
  });

  it('may be bound to several, and choose one', async () => {
    const { url } = await serveTo();
    const ids = async (query: string) => (await told(url, 'both', query)).incidents.length;
    expect(await ids('')).toBe(5);
    expect(await ids('?namespace=team-a')).toBe(3);
    expect((await told(url, 'both', '?namespace=team-a')).incidents).toEqual((await told(url, 'alice')).incidents);
  });

  it('loses an open stream when it is bound, and one that is bound no more reads everything', async () => {
    const access = changing();
    const { url } = await serveTo(access, { feed: feedOf([gpu()]).feed });
    const stream = (user: string) =>
      connectTo(url, `GET /api/health/watch HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${by(user).authorization}\r\n\r\n`);
    const admin = stream('admin');
    await admin.answered();
    access.bind(new Map([['admin', ['team-a']]]));
    admin.socket.resume();
    await admin.closed;
    expect((await ask(`${url}/metrics`, by('admin'))).status).toBe(403);
    expect((await ask(`${url}/metrics`, by('alice'))).status).toBe(200);
  });
});

describe('a user that is bound to no namespace', () => {
  it('reads all incidents, as before', async () => {
    const { url } = await serveTo();
    expect(await told(url, 'admin')).toMatchObject({ incidents: incidents.list() });
    for (const path of ['/metrics', '/', '/api/v1/devices', '/api/incidents/20261123-200001-toy-a'])
      expect((await ask(url + path, by('admin'))).status).toBe(200);
  });

  it('reads those of a namespace with their ids, and how many records could not be read', async () => {
    const { url } = await serveTo();
    const { incidents: found, unread } = await told(url, 'admin', '?namespace=team-a');
    expect(found.map(({ id }) => id)).toEqual(['20261123-200006-toy-a', '20261123-200003-toy-a', '20261123-200001-toy-a']);
    expect(found.map(({ id: _id, ...one }) => one)).toEqual((await told(url, 'alice')).incidents);
    expect(unread).toBe(1);
    expect(await told(url, 'admin', '?namespace=nowhere')).toMatchObject({ incidents: [] });
  });
});
