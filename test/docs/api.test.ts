import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ServedAgent, serve } from '../support/serve.ts';
import { eventually } from '../support/until.ts';

const text = readFileSync('docs/api.md', 'utf8');
const overview = text.split('\n').filter((line) => /^\| `\//.test(line));
const paths = overview.flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, path]) => path as string));
const examples = [...text.matchAll(/^## GET (\S+)\n.*?```json\n(.*?)```/gms)].map(
  ([, path, example]) => [path as string, JSON.parse(example as string) as unknown] as const,
);
const sources = ['src/server/api/api.ts', 'src/server/api/usage.ts', 'src/server/pages/pages.ts']
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

let demo: ServedAgent;
let directory: string;
/** Id of the incident of the event. */
let incident = '';

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-api-'));
  const log = join(directory, 'kernel.log');
  writeFileSync(log, '');
  demo = await serve(['--refresh.interval=1s', '--sim.pod-change=0s', `--path.kmsg=${log}`], 'demo');
  // What the log holds when it is first read is the past, which the state of the GPU decides: so lines come again.
  await demo.until('two runs', (page) => /^device_agent_probe_runs_total\{family="nvidia"\} (?:[2-9]|\d\d)/m.test(page));
  await demo.until('a holder of the example', (page) => /^container_device_allocation\{.*device="mlx5_4"/m.test(page));
  let line = 100;
  await demo.until('an event', (page) => {
    line += 1;
    appendFileSync(log, `4,${line},${line}000000,-;NVRM: Xid (PCI:0008:01:00): 119, pid=77, name=train, Timeout after 6s\n`);
    return /^device_health_transitions_total\{.*state="unhealthy"\} 1/m.test(page);
  });
  const { incidents } = await json<{ incidents: { id: string; states: string[]; device: string }[] }>('/api/incidents');
  incident = incidents.find(({ states, device }) => states.includes('unhealthy') && device.startsWith('nvidia'))?.id ?? 'none';
  // A fault waits for an answer of the kubelet that is not older.
  await eventually(async () => expect((await json<{ faults: object[] }>('/api/incidents')).faults).not.toEqual([]));
  // The thread that reads the kernel log answers a little later.
  await eventually(async () =>
    expect((await json<{ kernel?: { lines: object[] } }>(`/api/incidents/${incident}`)).kernel?.lines).not.toEqual([]),
  );
});
afterAll(async () => {
  await demo?.stop();
  rmSync(directory, { recursive: true });
});

const real = (path: string): string =>
  path
    .replace('{family}', 'infiniband')
    .replace('{id}', 'mlx5_4')
    .replace('{incident}', incident)
    .replace('{namespace}', 'simulation')
    .replace('{pod}', 'mpi-0-0');
const get = (path: string, settings: RequestInit = {}): Promise<Response> => fetch(demo.url + real(path), settings);
const json = async <T>(path: string): Promise<T> => (await get(path)).json() as Promise<T>;

/** Keys of an example with the types of their values. Elements of a list count together. */
function shapes(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => shapes(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [`${path}: ${typeof value}`];
  return Object.entries(value).flatMap(([key, item]) => shapes(item, `${path}.${key}`));
}

describe('docs/api.md', () => {
  it('has every path that the server has', () => {
    const routes = [...sources.matchAll(/router\.get\(\s*'([^']+)'/g)].map(([, path]) => (path as string).replaceAll(/:(\w+)/g, '{$1}'));
    expect(routes.length).toBeGreaterThan(5);
    expect(paths.map((path) => path.replace(/\?.*/, ''))).toEqual(expect.arrayContaining(routes));
  });

  it.each(paths)('%s is answered', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(
      path.startsWith('/api/')
        ? 'application/json'
        : /^\/(?:devices|pods|incidents|usage|agent|conditions|$)/.test(path)
          ? 'text/html'
          : 'text/plain',
    );
  });

  it.each(examples)('the example of %s has the form of the answer', async (path, example) => {
    const answered = new Set(shapes(await json(path)));
    expect(shapes(example).filter((shape) => !answered.has(shape))).toEqual([]);
  });

  it('has an example for each path of the API', () => {
    expect(examples.map(([path]) => path)).toEqual(paths.filter((path) => path.startsWith('/api/')));
  });

  it('has every key that a device of the demo has', async () => {
    const { devices } = await json<{ devices: { health: object; processes: object[] }[] }>('/api/v1/devices');
    const keys = devices.flatMap((device) => [...Object.keys(device), ...Object.keys(device.health).map((key) => `health.${key}`)]);
    expect([...new Set(keys)].filter((key) => key !== 'health' && !text.includes(`\`${key}\``))).toEqual([]);
  });

  it('has the errors that the server gives', async () => {
    const asked: [string, RequestInit, number][] = [
      ['/api/v1/events?since=x', {}, 400],
      ['/api/usage?since=x', {}, 400],
      ['/api/v1/devices/none/none', {}, 404],
      ['/api/incidents/none', {}, 404],
      ['/api/v1/none', {}, 404],
      ['/api/v1/status', { method: 'POST' }, 405],
    ];
    for (const [path, settings, status] of asked) {
      const answer = await get(path, settings);
      const { error } = (await answer.json()) as { error: { code: string } };
      expect(answer.status).toBe(status);
      expect(text).toContain(`| ${status} | \`${error.code}\` |`);
    }
    const folder = ['app', 'limit-answers'].map((name) => readFileSync(`src/server/http/${name}.ts`, 'utf8')).join('\n') + sources;
    const codes = [...folder.matchAll(/sendError\(request, response, (\d+), '([\w-]+)'/g)].map(
      (match) => `| ${match[1]} | \`${match[2]}\` |`,
    );
    expect(codes.filter((row) => !text.includes(row))).toEqual([]);
  });
});
