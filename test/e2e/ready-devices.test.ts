import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { HCA, NAMES, TroubledNode } from './troubled-node.ts';

const WAIT = { interval: 200 };
/** So that a read on a busy machine does not count as hung. */
const PATIENT = [4_000, 6_000] as const;
/** Choices of `TroubledNode.act`. */
const TO = { up: 0, down: 0.3, gone: 0.6, hung: 0.9 } as const;

let troubled: TroubledNode | undefined;
afterEach(async () => {
  await troubled?.node.stop();
  troubled = undefined;
});

/** Status and text of each question. */
async function answers(questions: readonly string[]): Promise<Readonly<Record<string, readonly [number, string]>>> {
  const asked = questions.map(async (question) => {
    const answer = await fetch(`${troubled?.node.agent?.url}/-/ready/devices${question}`);
    return [question, [answer.status, await answer.text()]] as const;
  });
  return Object.fromEntries(await Promise.all(asked));
}

const becomes = (story: string, table: Readonly<Record<string, readonly [number, string]>>): Promise<void> =>
  expect.poll(() => answers(Object.keys(table)), { ...WAIT, message: story }).toEqual(table);

/** Writes what is expected. The agent reads it at its next start. */
function expectDevices(expected: object | undefined): void {
  const path = join(troubled?.node.root as string, 'config.yaml');
  const { expect: _, ...config } = parse(readFileSync(path, 'utf8')) as { expect?: object };
  writeFileSync(path, stringify({ ...config, ...(expected === undefined ? {} : { expect: expected }) }));
}

/** A machine that boots without a device: what was remembered is gone. */
async function bootWith(expected: object | undefined): Promise<void> {
  await troubled?.node.agent?.stop();
  rmSync(join(troubled?.node.root as string, 'state'), { recursive: true, force: true });
  expectDevices(expected);
  await troubled?.node.startAgent();
}

const ready = [200, '3 of 3 devices are ready.\n'] as const;
const down = 'infiniband/mlx5_1: unhealthy, PortDown/1 (LinkPolling), remedy: check-cable\n';
const hung = 'infiniband/mlx5_1: unknown, DeviceNotRead (Stale), remedy: inspect\n';
const gone = '2 of 3 expected infiniband devices are present\ninfiniband/mlx5_1: missing\n';
const allGone = `0 of 3 expected infiniband devices are present\n${NAMES.map((name) => `infiniband/${name}: missing\n`).join('')}`;
const noOther = [503, 'nvme: no device was found\n'] as const;

describe('GET /-/ready/devices', () => {
  it('is yes only while the expected devices are there, were read and can be used', async () => {
    troubled = new TroubledNode(...PATIENT);
    expectDevices({ infiniband: 3 });
    await troubled.node.start();
    await becomes('all work', {
      '': ready,
      '?family=infiniband': ready,
      '?family=nvme': noOther,
      [`?resource=${HCA}`]: ready,
      '?resource=example.com/other': [503, 'example.com/other: no device was found\n'],
      '?max-unhealthy=1': ready,
    });
    troubled.act('mlx5_1', TO.down);
    await becomes('a port is down', {
      '': [503, down],
      '?family=infiniband': [503, down],
      '?family=nvme': noOther,
      [`?resource=${HCA}`]: [503, down],
      '?max-unhealthy=1': [200, `2 of 3 devices are ready.\n${down}`],
      '?max-unhealthy=34%25': [200, `2 of 3 devices are ready.\n${down}`],
      '?max-unhealthy=33%25': [503, down],
      [`?resource=${HCA}&max-unhealthy=1`]: [200, `2 of 3 devices are ready.\n${down}`],
    });
    troubled.act('mlx5_1', TO.up);
    await becomes('it is up again', { '': ready });
    troubled.act('mlx5_1', TO.hung);
    await becomes('reads of it hang, and the answer does not', {
      '': [503, hung],
      [`?resource=${HCA}`]: [503, hung],
      '?max-unhealthy=1': [200, `2 of 3 devices are ready.\n${hung}`],
    });
    troubled.act('mlx5_1', TO.up);
    await becomes('it answers again', { '': ready });
    troubled.act('mlx5_1', TO.gone);
    await becomes('it is gone', {
      '': [503, gone],
      [`?resource=${HCA}`]: [503, gone],
      '?max-unhealthy=1': [200, `2 of 3 devices are ready.\n${gone}`],
    });
    for (const name of NAMES) if (name !== 'mlx5_1') troubled.act(name, TO.gone);
    await becomes('all are gone', { '': [503, allGone], '?max-unhealthy=3': [503, `no device is ready\n${allGone}`] });
  });

  it('is no where nothing was found, unless nothing is expected', async () => {
    troubled = new TroubledNode(...PATIENT);
    await troubled.node.start();
    await becomes('all work', { '': ready });
    for (const name of NAMES) troubled.act(name, TO.gone);
    await bootWith({ infiniband: 3 });
    const none = [503, '0 of 3 expected infiniband devices are present\n'] as const;
    await becomes('three are expected', {
      '': none,
      '?family=infiniband': none,
      '?max-unhealthy=3': [503, 'no device is ready\n0 of 3 expected infiniband devices are present\n'],
    });
    await bootWith(undefined);
    await becomes('nothing is said', {
      '': [503, 'no device was found\n'],
      '?max-unhealthy=100%25': [503, 'no device was found\n'],
      '?family=infiniband': [503, 'infiniband: no device was found\n'],
      [`?resource=${HCA}`]: [503, `${HCA}: no device was found\n`],
    });
    await bootWith({ infiniband: 0 });
    await becomes('none is expected', {
      '': [200, 'No device is expected, and none was found.\n'],
      '?family=infiniband': [503, 'infiniband: no device was found\n'],
    });
  });

  it('refuses what it does not understand, and says why', async () => {
    troubled = new TroubledNode(...PATIENT);
    await troubled.node.start();
    const refused = await answers([
      '?family=nosuch',
      '?family=infiniband&family=nvme',
      '?resource=gpu',
      '?max-unhealthy=-1',
      '?max-unhealthy=101%25',
      '?max-unhealthy=',
      '?maxunhealthy=1',
    ]);
    expect(Object.values(refused).map(([status]) => status)).toEqual(Array.from({ length: 7 }, () => 400));
    expect(refused['?family=nosuch']?.[1]).toMatch(/^The parameter "family" must be a family that the agent reads: .*infiniband.*\.\n$/);
    expect(refused['?family=infiniband&family=nvme']?.[1]).toBe('The parameter "family" can be given once.\n');
    expect(refused['?resource=gpu']?.[1]).toContain('the name of a Kubernetes resource');
    expect(refused['?max-unhealthy=101%25']?.[1]).toContain('or a share of them, such as 25%');
    expect(refused['?maxunhealthy=1']?.[1]).toContain('Known here: family, resource, max-unhealthy.');
    expect((await fetch(`${troubled.node.agent?.url}/-/ready/devices`, { method: 'POST' })).status).toBe(405);
  });

  it('gives the same text while the state stays, so that a reporter of node conditions writes once for each change', async () => {
    troubled = new TroubledNode(...PATIENT);
    await troubled.node.start();
    await becomes('all work', { '': ready });
    // Writes as the reporter of the Node Readiness Controller: when status, reason or message differ from those of the node.
    const written: string[] = [];
    const report = async (): Promise<void> => {
      const answer = await fetch(`${troubled?.node.agent?.url}/-/ready/devices`);
      const text = await answer.text();
      const condition = answer.ok ? 'True EndpointOK' : `False EndpointNotReady ${text}`;
      if (condition !== written.at(-1)) written.push(condition);
    };
    const sequence = async (): Promise<number> =>
      ((await (await fetch(`${troubled?.node.agent?.url}/api/v1/devices`)).json()) as { sequence: number }).sequence;
    const overSnapshots = async (until: number): Promise<void> => {
      const end = (await sequence()) + until;
      while ((await sequence()) < end) await report();
    };
    await overSnapshots(5);
    troubled.act('mlx5_1', TO.down);
    await becomes('a port is down', { '': [503, down] });
    await overSnapshots(10);
    troubled.act('mlx5_1', TO.up);
    await becomes('it is up again', { '': ready });
    await overSnapshots(5);
    expect(written).toEqual(['True EndpointOK', `False EndpointNotReady ${down}`, 'True EndpointOK']);
  });
});
