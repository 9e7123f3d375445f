// Project: programs. It starts a command and an API server for each case, and a case waits for what must not come.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { millis } from '../../../src/model/duration.ts';
import { defaultValues } from '../../../src/model/options.ts';
import { simulatedFamilies } from '../../../src/sim/families.ts';
import { SimulatedNode } from '../../../src/sim/node.ts';
import { simulationOptions } from '../../../src/sim/options.ts';
import { noOpenssl } from '../../support/certificates.ts';
import { repetitions } from '../../support/repetitions.ts';
import { type ServedAgent, seriesValue, serve } from '../../support/serve.ts';
import { unless } from '../../support/skipped.ts';
import { run } from '../command-line.ts';
import { ApiServer, TOKEN } from './api-server.ts';
import { PublishProcess } from './publish-process.ts';

const WAIT = { interval: 50 };
const NODE = 'node-1';
const KILLS = repetitions(3, 8);
const WELL = { DevicesUnhealthy: 'False (NoFatalCondition)', DevicesUnknown: 'False (AllRead)', DevicesMissing: 'False (AllPresent)' };
const SICK = { ...WELL, DevicesUnhealthy: 'True (FatalCondition)' };
const AWAY = { DevicesUnhealthy: 'Unknown (AgentAway)', DevicesUnknown: 'True (AgentAway)', DevicesMissing: 'Unknown (AgentAway)' };
const STOPPED = {
  DevicesUnhealthy: 'Unknown (PublisherStopped)',
  DevicesUnknown: 'Unknown (PublisherStopped)',
  DevicesMissing: 'Unknown (PublisherStopped)',
};

let api: ApiServer;
let url: string;
let node: SimulatedNode;
let agent: ServedAgent | undefined;
let publisher: PublishProcess | undefined;
let tokenFile: string;

const startAgent = async (): Promise<void> => {
  agent = await serve([...node.flags(), '--refresh.interval=300ms']);
};
const flags = (): string[] => [
  ...node.flags(),
  `--publish.api-server=${url}`,
  `--publish.token-file=${tokenFile}`,
  `--publish.ca-file=${api.certificates.path('ca.crt')}`,
  '--publish.resync=5s',
  '--publish.device-taint-rules=NoSchedule',
  '--publish.node-taint=PreferNoSchedule',
];
const startPublisher = (): void => {
  publisher = new PublishProcess(flags(), { NODE_NAME: NODE });
};
interface ToldDevice {
  readonly id: string;
  readonly health: { readonly state: string };
  readonly holders?: readonly { readonly namespace: string; readonly pod: string }[];
}
const devices = async (): Promise<readonly ToldDevice[]> =>
  ((await (await fetch(`${agent?.url}/api/v1/devices`)).json()) as { devices: readonly ToldDevice[] }).devices;
const sick = async (): Promise<readonly string[]> =>
  (await devices()).filter(({ health }) => health.state === 'unhealthy').map(({ id }) => id);
const holdersOf = async (id: string) => {
  const holders = (await devices()).find((device) => device.id === id)?.holders ?? [];
  return holders.toSorted((a, b) => a.pod.localeCompare(b.pod));
};
const eventsOn = (device: string) => [...api.events.values()].filter(({ message }) => message.includes(`${device} `));
const podsTold = (device: string): string[] =>
  eventsOn(device)
    .filter(({ involvedObject }) => involvedObject.kind === 'Pod')
    .map(({ involvedObject }) => involvedObject.name)
    .toSorted();
const said = () => api.said(NODE);
const taints = () => api.nodes.get(NODE)?.taints;
const withoutChange = () => api.patches.filter(({ changes }) => !changes);
/** Milliseconds between patches, from a number of patches on. */
const spacings = (from: number): number[] => api.patches.slice(from + 1).map(({ atMs }, n) => atMs - (api.patches[from + n]?.atMs ?? 0));

beforeAll(async () => {
  api = new ApiServer();
  url = await api.start();
  api.addNode(NODE);
  const size = {
    ...defaultValues(simulationOptions),
    ...{ devices: ['all=0', 'infiniband=2'], pods: 8, 'pod-change': millis(0), story: 'off' },
  };
  node = new SimulatedNode(simulatedFamilies, size);
  await node.start();
  tokenFile = join(node.root, 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`);
  // A port that flaps so often would stay unhealthy for an hour.
  const conditions = 'infiniband.PortDown: { for: 0s, recovery: 0s }, infiniband.LinkFlapping: { severity: info }';
  appendFileSync(join(node.root, 'device-agent.yaml'), `health: { conditions: { ${conditions} }, flapping: { count: 100 } }\n`);
  await startAgent();
});
afterEach(() => {
  api.fault = undefined;
  node.clear();
});
afterAll(async () => {
  await publisher?.stop('SIGKILL');
  await agent?.stop('SIGKILL');
  await node?.stop();
  await api?.stop();
});

describe.skipIf(noOpenssl !== undefined)(`device-agent publish${unless(noOpenssl === undefined, noOpenssl ?? '')}`, () => {
  it('writes the verdicts as conditions of the node, and leaves those of others alone', async () => {
    startPublisher();
    await expect.poll(said, WAIT).toEqual(WELL);
    expect(api.nodes.get(NODE)?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    expect(api.patches).toHaveLength(1);
    expect(api.events.size).toBe(0);
  });

  it('tells the node of a fault, its end, and each pod that holds the device, but none that let go of it before', async () => {
    const [first] = await holdersOf('mlx5_0');
    const others = (await holdersOf('mlx5_1')).map(({ pod }) => pod);
    expect(others.length).toBeGreaterThan(0);
    node.kubelet.removePod(first?.namespace ?? '', first?.pod ?? '');
    await expect.poll(() => holdersOf('mlx5_0'), WAIT).toEqual([]);
    // A pod that lets go after the last read without the fault began is told, too: so one that begins later has to end.
    const runs = (page: string): number => seriesValue(page, 'device_agent_probe_runs_total', { family: 'infiniband' }) ?? 0;
    const before = runs((await agent?.metrics()) ?? '');
    await agent?.until('a later read', (page) => runs(page) > before + 1);
    node.begin('port-down', 'mlx5_0');
    await expect.poll(said, WAIT).toEqual(SICK);
    const [found] = api.conditions(NODE);
    expect(found?.message).toMatch(/^\d+ of \d+ devices (?:is|are) unhealthy: .*infiniband\/mlx5_0 PortDown\/1 \(check-cable\)/);
    node.begin('port-down', 'mlx5_1');
    await expect.poll(() => podsTold('infiniband/mlx5_1'), WAIT).toEqual(others);
    await expect.poll(() => eventsOn('infiniband/mlx5_0').map(({ message }) => message), WAIT).toEqual([expect.any(String)]);
    expect(podsTold('infiniband/mlx5_0')).toEqual([]);
    const onNode = [...api.events.values()].filter(({ involvedObject }) => involvedObject.kind === 'Node');
    expect(onNode.map(({ metadata, involvedObject, reason }) => [metadata.namespace, involvedObject.name, reason])).toContainEqual([
      'default',
      NODE,
      'DeviceUnhealthy',
    ]);
    for (const event of eventsOn('infiniband/mlx5_1').filter(({ involvedObject }) => involvedObject.kind === 'Pod')) {
      expect(event.metadata.namespace).toBe(event.involvedObject.namespace);
      expect(event.involvedObject.uid).toBeDefined();
      expect(event.message).toBe(
        'A device of this pod is unhealthy: infiniband/mlx5_1 has the condition PortDown/1 (LinkPolling). Check cable, transceiver and the remote port.',
      );
    }
    node.clear();
    await expect.poll(said, WAIT).toEqual(WELL);
    expect(withoutChange()).toEqual([]);
  });

  it('taints a sick device and its node, and ends both taints with the fault', async () => {
    node.begin('port-down', 'mlx5_1');
    await expect
      .poll(() => [...api.rules.values()].map(({ spec }) => spec), WAIT)
      .toEqual([
        {
          deviceSelector: { driver: 'dra.net', pool: NODE, device: expect.stringMatching(/^pci-/) },
          taint: { key: 'device-agent/unhealthy', value: 'PortDown', effect: 'NoSchedule' },
        },
      ]);
    await expect.poll(taints, WAIT).toEqual([{ key: 'device-agent/unhealthy', effect: 'PreferNoSchedule' }]);
    node.clear();
    await expect.poll(() => api.rules.size, WAIT).toBe(0);
    await expect.poll(taints, WAIT).toEqual([]);
    await expect.poll(said, WAIT).toEqual(WELL);
  });

  it('writes nothing again after it was killed', async () => {
    const [events, patches] = [api.events.size, api.patches.length];
    await publisher?.stop('SIGKILL');
    startPublisher();
    await expect.poll(() => api.repeated, WAIT).toBeGreaterThanOrEqual(events);
    expect([api.events.size, api.patches.length]).toEqual([events, patches]);
  });

  it('clears a condition whose fault ended while it did not run', async () => {
    node.begin('port-down', 'mlx5_0');
    await expect.poll(said, WAIT).toEqual(SICK);
    await publisher?.stop('SIGKILL');
    node.clear();
    await expect.poll(sick, WAIT).toEqual([]);
    startPublisher();
    await expect.poll(said, WAIT).toEqual(WELL);
  });

  it('knows nothing of the devices 30 seconds after the agent ended, and all of them when it is back', async () => {
    await agent?.stop();
    await expect.poll(said, WAIT).toEqual(AWAY);
    await startAgent();
    await expect.poll(said, WAIT).toEqual(WELL);
  });

  it('writes only the newest state after an API server that did not answer', async () => {
    const before = api.patches.length;
    api.fault = 'hang';
    const seen = api.requests;
    node.begin('port-down', 'mlx5_0');
    await expect.poll(() => api.requests, WAIT).toBeGreaterThan(seen + 1);
    node.clear();
    await expect.poll(sick, WAIT).toEqual([]);
    node.begin('port-down', 'mlx5_1');
    await expect.poll(sick, WAIT).toEqual(['mlx5_1']);
    api.fault = undefined;
    await expect.poll(said, WAIT).toEqual(SICK);
    expect(api.patches.length).toBe(before + 1);
    expect(api.conditions(NODE)[0]?.message).not.toContain('mlx5_0 ');
    node.clear();
    await expect.poll(said, WAIT).toEqual(WELL);
  });

  it('makes its conditions unknown when it ends, and removes them on demand', async () => {
    expect(await publisher?.stop()).toBe(0);
    expect(said()).toEqual(STOPPED);
    startPublisher();
    await expect.poll(said, WAIT).toEqual(WELL);
    node.begin('port-down', 'mlx5_0');
    await expect.poll(() => api.rules.size, WAIT).toBe(1);
    await expect.poll(said, WAIT).toEqual(SICK);
    await expect.poll(() => taints()?.length, WAIT).toBe(1);
    // A publisher that ends after that brings nothing back.
    publisher?.child.kill('SIGSTOP');
    const { stdout, status } = await run(['publish', '--withdraw', ...flags()], { NODE_NAME: NODE });
    expect([status, stdout]).toEqual([0, `removed from the node ${NODE}: 3 conditions, 1 taint rules of devices, 1 taints\n`]);
    publisher?.child.kill('SIGTERM');
    publisher?.child.kill('SIGCONT');
    expect(await publisher?.stop()).toBe(0);
    expect(said()).toEqual({});
    expect(api.rules.size).toBe(0);
    expect(taints()).toEqual([]);
    node.clear();
  });

  it.each([
    ['says that it looked for no rules where they were wanted and the API server serves none', 'NoSchedule', true],
    ['says nothing of rules that nobody wanted', 'off', false],
  ])('%s', async (_, effect, isTold) => {
    const { versions } = api;
    api.versions = { v1: false };
    const { stdout, status } = await run(['publish', '--withdraw', ...flags(), `--publish.device-taint-rules=${effect}`], {
      NODE_NAME: NODE,
    });
    api.versions = versions;
    const told =
      'taint rules of devices were not looked for: the API server serves DeviceTaintRules in none of the versions v1, v1beta2, v1alpha3\n';
    expect([status, stdout]).toEqual([
      0,
      `removed from the node ${NODE}: 0 conditions, 0 taint rules of devices, 0 taints\n${isTold ? told : ''}`,
    ]);
  });
});

describe.skipIf(noOpenssl !== undefined)(
  `agent and publisher killed at random moments${unless(noOpenssl === undefined, noOpenssl ?? '')}`,
  () => {
    it(`end in the right state after each of ${KILLS} kills, without a patch that changes nothing`, async () => {
      let isDown = false;
      await publisher?.stop('SIGKILL');
      const first = api.patches.length;
      startPublisher();
      // A port that was never seen up has no fault when it is down.
      await expect.poll(said, WAIT).toEqual(WELL);
      for (let kill = 0; kill < KILLS; kill += 1) {
        isDown = Math.random() < 0.5;
        node.clear();
        if (isDown) node.begin('port-down', 'mlx5_0');
        await sleep(Math.random() * repetitions(3_000, 6_000));
        if (Math.random() < 0.5) {
          await publisher?.stop('SIGKILL');
          startPublisher();
        } else {
          await agent?.stop('SIGKILL');
          await startAgent();
        }
        if (kill % 5 === 4) await expect.poll(said, { ...WAIT, message: `after kill ${kill + 1}` }).toEqual(isDown ? SICK : WELL);
      }
      await expect.poll(said, WAIT).toEqual(isDown ? SICK : WELL);
      // The same words can be those of before the last kill. Two readings of the node and longer: then none finds a difference.
      const patchesMeanwhile = async (): Promise<number> => {
        const [patches, read] = [api.patches.length, api.requests];
        await expect.poll(() => api.requests, WAIT).toBeGreaterThan(read + 3);
        return api.patches.length - patches;
      };
      await expect.poll(patchesMeanwhile, WAIT).toBe(0);
      expect(said()).toEqual(isDown ? SICK : WELL);
      expect(withoutChange()).toEqual([]);
      process.stdout.write(
        `${KILLS} kills, ${api.patches.length - first} patches, at least ${Math.round(Math.min(...spacings(first)))} ms apart\n`,
      );
      // The server takes the time when a request arrived.
      expect(Math.min(...spacings(first))).toBeGreaterThan(4_900);
    });
  },
);
