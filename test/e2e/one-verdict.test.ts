import { spawnSync } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import type { HealthState } from '../../src/model/health.ts';
import { PROGRAM } from '../support/program.ts';
import { seededRandom } from '../support/seeded.ts';
import { seriesValue } from '../support/serve.ts';
import { HCA, NAMES, POLICIES, TroubledNode } from './troubled-node.ts';

const STEPS = 12;
const WAIT = { interval: 100 };

/** The parts of an answer of the API that are compared. */
interface ToldDevice {
  readonly id: string;
  readonly missingSince?: string;
  readonly health: { readonly state: HealthState; readonly conditions: readonly { readonly type: string; readonly instance?: string }[] };
}

let troubled: TroubledNode | undefined;
afterEach(async () => {
  await troubled?.node.stop();
  troubled = undefined;
});

const get = async (path: string): Promise<string> => (await fetch(`${troubled?.node.agent?.url}${path}`)).text();
const devices = async (): Promise<readonly ToldDevice[]> =>
  (JSON.parse(await get('/api/v1/devices')) as { readonly devices: readonly ToldDevice[] }).devices;
const byName = <T>(of: (name: string) => T): Record<string, T> => Object.fromEntries(NAMES.map((name) => [name, of(name)]));

/** Everything that somebody can be told, in one form. What never was anything but healthy has no event and no line. */
async function everyAnswer(node: TroubledNode): Promise<Record<string, unknown>> {
  const [told, metrics, page, events] = await Promise.all([devices(), get('/metrics'), get('/'), node.node.events()]);
  const pages = Object.fromEntries(await Promise.all(NAMES.map(async (name) => [name, await get(`/devices/infiniband/${name}`)] as const)));
  const of = (name: string): ToldDevice | undefined => told.find(({ id }) => id === name);
  const word = (html: string): string | undefined => /class="s [a-z]+">([A-Za-z]+)</.exec(html)?.[1]?.toLowerCase();
  const log = [...(node.log + node.node.agent?.log()).matchAll(/^.*health of a device changed.*$/gm)].map(
    ([line]) => JSON.parse(line) as Record<string, string>,
  );
  return {
    api: byName((name) => of(name)?.health.state),
    present: byName((name) => of(name)?.missingSince === undefined),
    metrics: byName((name) =>
      (['healthy', 'degraded', 'unhealthy', 'unknown'] as const)
        .filter((state) => seriesValue(metrics, 'device_health', { device: name, state }) === 1)
        .join(),
    ),
    healthy: byName((name) => seriesValue(metrics, 'device_healthy', { device: name })),
    conditions: byName(
      (name) =>
        (metrics.match(new RegExp(`^device_health_condition\\{.*device="${name}"`, 'gm')) ?? []).length ===
        of(name)?.health.conditions.length,
    ),
    overview: byName((name) => word(page.slice(page.indexOf(`data-key="infiniband/${name}"`)))),
    page: byName((name) => word(pages[name] ?? '')),
    events: byName(
      (name) => events.findLast(({ device, transition }) => device === `infiniband/${name}` && transition === 'state')?.to ?? 'healthy',
    ),
    log: byName((name) => log.findLast(({ device }) => device === `infiniband/${name}`)?.to ?? 'healthy'),
    kubelet: node.node.list(),
    plugin: ['healthy', 'unhealthy'].map((state) => seriesValue(metrics, 'device_agent_plugin_devices', { resource: HCA, state })),
    command: command(),
  };
}

/** What `device-agent health` prints of each device, and its exit status. */
function command(): { readonly status: number | null; readonly states: object } {
  const address = troubled?.node.agent?.url.replace('http://', '');
  const words = [PROGRAM, 'health', `--web.listen-address=${address}`, '-o', 'json'];
  const { status, stdout } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  const { devices: list } = JSON.parse(stdout) as {
    readonly devices: readonly { readonly key: string; readonly health: { readonly state: string } }[];
  };
  return { status, states: Object.fromEntries(list.map(({ key, health }) => [key.replace('infiniband/', ''), health.state])) };
}

/** The same as it should be. */
function everyExpectation(node: TroubledNode): Record<string, unknown> {
  const states = byName((name) => node.expected(name).state);
  const all = Object.values(states);
  const healthy = NAMES.filter((name) => node.expected(name).kubelet === 'Healthy').length;
  return {
    api: states,
    present: byName((name) => node.expected(name).isPresent),
    metrics: states,
    healthy: byName((name) => ({ healthy: 1, degraded: 1, unhealthy: 0, unknown: undefined })[states[name] as HealthState]),
    conditions: byName(() => true),
    overview: byName((name) => (node.expected(name).isPresent ? states[name] : 'missing')),
    page: byName((name) => (node.expected(name).isPresent ? states[name] : 'missing')),
    events: states,
    log: states,
    kubelet: byName((name) => node.expected(name).kubelet),
    plugin: [healthy, NAMES.length - healthy],
    command: { status: all.includes('unhealthy') ? 1 : all.includes('unknown') ? 2 : 0, states },
  };
}

const told = async (): Promise<Record<string, HealthState>> =>
  Object.fromEntries((await devices()).map(({ id, health }) => [id, health.state]));

async function anything(node: TroubledNode, random: () => number): Promise<string> {
  if (random() >= 0.25) return node.act(NAMES[Math.floor(random() * NAMES.length)] as string, random());
  const policy = POLICIES[Math.floor(random() * POLICIES.length)] as (typeof POLICIES)[number];
  await node.restart(policy);
  return `restarted with ${JSON.stringify(policy.health)}`;
}

describe('one verdict', () => {
  it('is what metrics, API, pages, events, log, command and kubelet tell, whatever happens and whatever is configured', async () => {
    const random = seededRandom(2);
    troubled = new TroubledNode();
    const node = troubled;
    await node.node.start();
    for (let step = 0; step < STEPS; step += 1) {
      const story = step === 0 ? 'at the start' : await anything(node, random);
      await expect.poll(told, { ...WAIT, message: story }).toEqual(byName((name) => node.expected(name).state));
      await expect.poll(() => everyAnswer(node), { ...WAIT, message: story }).toEqual(everyExpectation(node));
    }
  });
});
