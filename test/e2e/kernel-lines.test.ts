import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IncidentRecord, IncidentSummary } from '../../src/incidents/record.ts';
import { millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';

const WAIT = { interval: 50 };
const AMD = '0020:10:00.0';
const MLX5 = '0000:10:00.0';
const GPUS = [1, 2, 3, 4].map((at) => ({ id: `GPU-5e1f0000-0000-4000-8000-00000000000${at}`, slot: `0008:0${at}:00` }));

let node: SimulatedNode;
let agent: ServedAgent;
let seq = 0;
const json = async <T>(path: string): Promise<T> => (await (await fetch(agent.url + path)).json()) as T;
const idsOf = async (device: string): Promise<readonly string[]> =>
  (await json<{ incidents: IncidentSummary[] }>('/api/incidents')).incidents.filter((one) => one.device === device).map(({ id }) => id);
const recordOf = async (device: string): Promise<IncidentRecord> => json(`/api/incidents/${(await idsOf(device))[0]}`);

/** The driver of a function prints. `priority` 11: a program writes the same text, to which the kernel adds no device. */
function print(driver: string, address: string, text: string, priority = 3): void {
  seq += 1;
  const properties = priority === 3 ? ` SUBSYSTEM=pci\n DEVICE=+pci:${address}\n` : '';
  appendFileSync(join(node.root, 'kernel.log'), `${priority},${seq},${seq}000000,-;${driver} ${address}: ${text}\n${properties}`);
}

beforeAll(async () => {
  const size = {
    ...defaultValues(simulationOptions),
    devices: ['all=0', 'amdgpu=2', 'infiniband=2', 'nvidia=4'],
    pods: 24,
    'pod-change': millis(0),
    story: 'off',
  };
  node = new SimulatedNode(simulatedFamilies, size, new ManualClock());
  await node.start();
  writeFileSync(join(node.root, 'proc/stat'), 'btime 1700000000\n');
  writeFileSync(join(node.root, 'kernel.log'), '6,0,0,-;Linux version 7.0\n');
  agent = await serve([...node.flags(), '--refresh.interval=500ms', `--path.kmsg=${node.root}/kernel.log`]);
  await agent.until('all are held', (page) =>
    [AMD, 'mlx5_0'].every((device) => new RegExp(`^container_device_allocation\\{.*device="${device}`, 'm').test(page)),
  );
});
afterAll(async () => {
  await agent?.stop('SIGKILL');
  await node?.stop();
});

/** Names of the pods that hold a device, from the page. */
async function holdersOf(device: string): Promise<readonly string[]> {
  const lines = (await agent.metrics()).split('\n').filter((line) => line.startsWith('container_device_allocation{'));
  return lines.filter((line) => line.includes(`device="${device}"`)).flatMap((line) => /pod="([^"]+)"/.exec(line)?.[1] ?? []);
}

describe.each([
  {
    family: 'amdgpu',
    device: AMD,
    driver: 'amdgpu',
    address: AMD,
    begins: 'amdgpu: GPU reset end with ret = -62',
    ends: 'amdgpu: GPU reset(1) succeeded!',
    condition: { type: 'ResetFailed', severity: 'fatal', remedy: 'reboot' },
  },
  {
    family: 'infiniband',
    device: 'mlx5_0',
    driver: 'mlx5_core',
    address: MLX5,
    begins: "poll_health:801:(pid 0): device's health compromised - reached miss count",
    ends: 'mlx5_health_try_recover:374:(pid 77): health recovery succeeded',
    condition: { type: 'FirmwareDead', severity: 'fatal', remedy: 'reset' },
  },
])('a line of the driver of $family', ({ family, device, driver, address, begins, ends, condition }) => {
  const stateIs = (state: string) => (page: string) => seriesValue(page, 'device_health', { device, state }) === 1;

  it('that a program writes makes no incident', async () => {
    print(driver, address, begins, 11);
    print(driver, '0000:fe:1f.7', begins);

    const runs = (page: string): number => seriesValue(page, 'device_agent_probe_runs_total', { family }) ?? 0;
    const before = runs(await agent.metrics());
    await agent.until('what was read after them', (page) => runs(page) >= before + 2);
    expect(await idsOf(`${family}/${device}`)).toEqual([]);
    expect(stateIs('healthy')(await agent.metrics())).toBe(true);
  });

  it('is an incident that names the pod, the line, the remedy and the time', async () => {
    const pods = await holdersOf(device);
    expect(pods.length).toBeGreaterThan(0);
    const beganMs = Date.now();
    print(driver, address, begins);
    await expect.poll(() => idsOf(`${family}/${device}`), WAIT).toHaveLength(1);
    const record = await recordOf(`${family}/${device}`);
    expect(record).toMatchObject({ before: { state: 'healthy' }, after: { state: 'unhealthy', conditions: [condition] } });
    expect(record.holders.map(({ pod }) => pod)).toEqual(expect.arrayContaining([...pods]));
    expect(Date.parse(record.time)).toBeGreaterThanOrEqual(beganMs);
    await expect.poll(async () => (await recordOf(`${family}/${device}`)).kernel?.lines?.at(-1)?.text, WAIT).toContain(begins);
  });

  it('and another one ends it', async () => {
    print(driver, address, ends);
    await agent.until('it is well again', stateIs('healthy'));
  });
});

/** The lines of public reports. */
describe('reported faults of NVLink', () => {
  interface Event {
    readonly device: string;
    readonly condition: string;
    readonly instance?: string;
    readonly transition: string;
    readonly severity: string;
    readonly remedy: string;
    readonly time: string;
    readonly holders: readonly { readonly pod: string }[];
  }
  const raised = async (id: string): Promise<readonly Event[]> =>
    (await json<{ events: Event[] }>('/api/v1/events')).events.filter(
      (event) => event.device === `nvidia/${id}` && event.transition === 'raised',
    );
  const xid = (slot: string, text: string): void => {
    seq += 1;
    appendFileSync(join(node.root, 'kernel.log'), `3,${seq},${seq}000000,-;NVRM: Xid (PCI:${slot}): ${text}\n`);
  };

  it('name the GPU whose link died as the source, its pod, and the pods of the victims, although only the removals of channels are left', async () => {
    const beganMs = Date.now();
    const held = await Promise.all(GPUS.map(async (gpu) => ({ gpu, isHeld: (await holdersOf(gpu.id)).length > 0 })));
    // A pod holds the source, and at least one victim.
    GPUS.splice(0, GPUS.length, ...held.sort((a, b) => Number(b.isHeld) - Number(a.isHeld)).map(({ gpu }) => gpu));
    expect(held.filter(({ isHeld }) => isHeld).length).toBeGreaterThan(1);
    for (const [at, { slot }] of GPUS.entries())
      xid(slot, `45, pid=${1_818_987 + at}, name=python3, Ch 0000000${at} caused by previous Xid ${at === 0 ? 149 : 145}`);
    const [source, ...victims] = GPUS.map(({ id }) => id) as [string, ...string[]];
    await expect.poll(() => idsOf(`nvidia/${source}`), WAIT).toHaveLength(1);
    const record = await recordOf(`nvidia/${source}`);
    expect(record.after).toMatchObject({
      state: 'unhealthy',
      conditions: [{ type: 'Xid', instance: '149', severity: 'fatal', remedy: 'reset' }],
    });
    expect(record.holders.map(({ pod }) => pod)).toEqual(expect.arrayContaining([...(await holdersOf(source))]));
    expect(Date.parse(record.time)).toBeGreaterThanOrEqual(beganMs);
    for (const victim of victims) {
      const found = () => raised(victim).then((events) => events.find(({ instance }) => instance === '145'));
      await expect.poll(found, WAIT).toMatchObject({ condition: 'XidPassing', severity: 'info', remedy: 'restart-workload' });
      expect((await found())?.holders.map(({ pod }) => pod).sort()).toEqual([...(await holdersOf(victim))].sort());
    }
    const page = await agent.metrics();
    expect(GPUS.map(({ id }) => seriesValue(page, 'device_healthy', { device: id }))).toEqual([0, 1, 1, 1]);
  });

  it('name the pods of two GPUs that failed together without a fatal line, and tell those of the others for information', async () => {
    seq += 1;
    const loading = 'NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build';
    appendFileSync(join(node.root, 'kernel.log'), `6,${seq},${seq}000000,-;${loading}\n`);
    await agent.until('the new driver ends what was', (page) =>
      GPUS.every(({ id }) => seriesValue(page, 'device_healthy', { device: id }) === 1),
    );
    const beganMs = Date.now();
    for (const { slot } of GPUS.slice(0, 2)) xid(slot, '145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x00000001 0x00000000)');
    for (const [at, { id }] of GPUS.entries()) {
      const found = () => raised(id).then((events) => events.find(({ condition }) => condition === 'FabricFault'));
      await expect.poll(found, WAIT).toMatchObject({ severity: at < 2 ? 'degraded' : 'info', remedy: 'reboot' });
      const event = (await found()) as Event;
      expect(event.holders.map(({ pod }) => pod).sort()).toEqual([...(await holdersOf(id))].sort());
      expect(Date.parse(event.time)).toBeGreaterThanOrEqual(beganMs);
    }
  });

  it('name the pod of a GPU whose context switch timed out, at that time', async () => {
    const { id, slot } = GPUS[2] as (typeof GPUS)[number];
    const beganMs = Date.now();
    expect(await holdersOf(id)).not.toEqual([]);
    xid(slot, '109, pid=4711, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005');
    const found = () => recordOf(`nvidia/${id}`).then((record) => record.after.conditions?.find(({ instance }) => instance === '109'));
    await expect.poll(found, WAIT).toMatchObject({ type: 'Xid', severity: 'fatal', remedy: 'reset' });
    const record = await recordOf(`nvidia/${id}`);
    expect(record.after.state).toBe('unhealthy');
    expect(record.holders.map(({ pod }) => pod)).toEqual(expect.arrayContaining([...(await holdersOf(id))]));
    expect(Date.parse(record.time)).toBeGreaterThanOrEqual(beganMs);
  });
});
