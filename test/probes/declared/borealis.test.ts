import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '../../../src/model/health.ts';
import { simulationOf } from '../../../src/sim/declared-simulation.ts';
import type { FamilySimulation } from '../../../src/sim/family-simulation.ts';
import { ServedNode } from '../../e2e/served-node.ts';
import { buildMachine } from '../../support/machine.ts';
import { declarationOf, declaredFamily, HandClock, probeOn } from './support.ts';

/** An invented accelerator with two values, a heartbeat, a limit and a driver that fails, as one file says it. */
const TEXT = readFileSync('test/probes/declared/borealis.yaml', 'utf8');
const CARD = 'sys/class/borealis/bx0';

it('is one file of 40 lines at most', () => expect(TEXT.trimEnd().split('\n').length).toBeLessThanOrEqual(40));

describe('its reader', () => {
  async function start(more: Readonly<Record<string, string>> = {}) {
    const files = { serial: 'S1', temp_millicelsius: '51000', temp_limit_millicelsius: '90000', tokens: '900', alive: '1', ...more };
    const { root, remove } = buildMachine({
      about: '',
      files: {
        ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`${CARD}/${name}`, `${text}\n`])),
        'dev/kmsg': '6,1,0,-;Linux version 6.8\n',
      },
    });
    const clock = new HandClock();
    const probe = probeOn(await declaredFamily(TEXT), root, clock);
    onTestFinished(() => {
      void probe.close?.();
      remove();
    });
    return {
      clock,
      log: (text: string) => appendFileSync(join(root, 'dev/kmsg'), text),
      put(name: string, text: string): void {
        mkdirSync(join(root, CARD, name, '..'), { recursive: true });
        writeFileSync(join(root, CARD, name), `${text}\n`);
      },
      async look(): Promise<Readonly<Record<string, Pick<Finding, 'status' | 'message'>>>> {
        const [report] = (await probe.collect()).reports;
        const all = [...(report?.read?.findings ?? []), ...(report?.outOfBand?.findings ?? [])];
        return Object.fromEntries(all.map(({ type, status, message }) => [type, { status, message }]));
      },
    };
  }

  it('finds a sound card, and does not judge a heartbeat before it saw it move', async () => {
    const { clock, look, put } = await start();
    expect((await look()).FirmwareStopped?.status).toBe('unknown');
    clock.nowMs += 5_000;
    put('alive', '2');
    expect(await look()).toEqual({
      FirmwareStopped: { status: false, message: 'the heartbeat of the card is 2' },
      TooHot: { status: false, message: 'the card has 51 °C, its limit is 90 °C' },
      NotStarted: { status: false, message: 'the kernel log has no such line since the machine booted' },
    });
  });

  it('tells a heartbeat that stands still for the declared time, and its return', async () => {
    const { clock, look, put } = await start();
    await look();
    put('alive', '2');
    const told: unknown[] = [];
    for (const [afterMs, beat] of [
      [29_000, '2'],
      [900, '2'],
      [30_000, '2'],
      [1_000, '3'],
    ] as const) {
      clock.nowMs += afterMs;
      put('alive', beat);
      told.push((await look()).FirmwareStopped?.status);
    }
    expect(told).toEqual([false, false, true, false]);
  });

  it('does not judge the heartbeat of a card that sleeps, and begins anew when it wakes', async () => {
    const { clock, look, put } = await start();
    await look();
    put('power/runtime_status', 'suspended');
    clock.nowMs += 120_000;
    expect((await look()).FirmwareStopped).toEqual({ status: 'unknown', message: 'the device sleeps' });
    put('power/runtime_status', 'active');
    expect((await look()).FirmwareStopped?.status).toBe('unknown');
    clock.nowMs += 30_000;
    expect((await look()).FirmwareStopped?.status).toBe(true);
  });

  it('compares the value with the limit in the other file', async () => {
    const { look, put } = await start();
    put('temp_millicelsius', '90001');
    expect((await look()).TooHot).toEqual({ status: true, message: 'the card has 90.001 °C, its limit is 90 °C' });
    put('temp_limit_millicelsius', '95000');
    expect((await look()).TooHot?.status).toBe(false);
    put('temp_limit_millicelsius', 'none');
    expect((await look()).TooHot).toEqual({ status: 'unknown', message: 'the limit of bx0/temp_millicelsius holds no number' });
  });

  it('takes what its driver says about the card by its name in sysfs, which no row repeats', async () => {
    const { look, log } = await start();
    await look();
    log('3,2,1,-;borealis bx0: start failed, error 5\n SUBSYSTEM=borealis\n DEVICE=+borealis:bx0\n');
    expect((await look()).NotStarted).toEqual({ status: true, message: 'the card did not start' });
    log('6,3,2,-;borealis bx0: ready, firmware 4\n SUBSYSTEM=borealis\n DEVICE=+borealis:bx0\n');
    expect((await look()).NotStarted?.status).toBe(false);
  });
});

describe('the built agent with this file alone', () => {
  let directory: string;
  let node: ServedNode;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'device-agent-borealis-'));
    // The test need not wait for half a minute.
    const text = TEXT.replace('still: 30s', 'still: 2s');
    writeFileSync(join(directory, 'borealis.yaml'), text);
    const simulation = simulationOf(await declarationOf(text));
    if (simulation === undefined) throw new Error('no row has an example');
    const simulate: FamilySimulation['simulate'] = (scenario) => {
      const hardware = simulation.simulate(scenario);
      return { ...hardware, files: { ...hardware.files, 'dev/kmsg': '6,0,0,-;Linux version 6.8\n' } };
    };
    node = new ServedNode({
      family: { name: 'borealis', simulation: { ...simulation, simulate } },
      counts: { borealis: 2 },
      resource: 'device-agent.dev/card',
      config: { plugin: { resources: [{ resource: 'device-agent.dev/card', select: { family: 'borealis' } }] } },
      flags: [`--family.dir=${directory}`],
    });
    await node.start();
  });
  afterAll(async () => {
    await node?.stop();
    rmSync(directory, { recursive: true });
  });

  it('serves metrics, conditions, page and plugin for each fault', async () => {
    const agent = node.agent;
    if (agent === undefined) throw new Error('no agent');
    let beat = 17;
    let isAlive = true;
    const heart = setInterval(() => {
      beat += 1;
      if (isAlive) node.change({ 'bx0/alive': `${beat}` });
      node.change({ 'bx1/alive': `${beat}` });
    }, 200);
    try {
      const has = (series: string) => (page: string) => page.split('\n').some((line) => line.startsWith(series) && line.endsWith(' 1'));
      const state = (card: number, name: string): string => `device_health{device="BX4-${card}",state="${name}"}`;
      const holds = (card: number, type: string): string => `device_health_condition{device="BX4-${card}",condition="${type}"`;
      await agent.until('sound cards', (page) => has(state(0, 'healthy'))(page) && !page.includes('device_health_unchecked{'));
      await expect.poll(() => node.list()).toEqual({ 'BX4-0': 'Healthy', 'BX4-1': 'Healthy' });
      const sound = await agent.metrics();
      expect(sound).toContain('# HELP device_borealis_tokens_total Tokens that the card has made.');
      expect(sound).toContain('device_borealis_tokens_total{device="BX4-0"} 900');

      isAlive = false;
      await agent.until('the heartbeat that stands', has(holds(0, 'FirmwareStopped')));
      await expect.poll(() => node.list()).toEqual({ 'BX4-0': 'Unhealthy', 'BX4-1': 'Healthy' });
      const page = await (await fetch(`${agent.url}/devices/borealis/BX4-0`)).text();
      for (const text of ['Tokens', 'FirmwareStopped', `the heartbeat of the card is ${readBeat(node)}`]) expect(page).toContain(text);
      isAlive = true;
      await agent.until('its return', has(state(0, 'healthy')));

      node.change({ 'bx0/temp_millicelsius': '91000' });
      await agent.until('the heat', has(holds(0, 'TooHot')));
      node.change({ 'bx0/temp_millicelsius': '51000' });
      await agent.until('its end', has(state(0, 'healthy')));

      const before = readFileSync(join(node.root, 'dev/kmsg'), 'utf8');
      node.change({ 'dev/kmsg': `${before}3,9,900000,-;borealis bx1: start failed, error 5\n SUBSYSTEM=borealis\n DEVICE=+borealis:bx1` });
      await agent.until('the driver that failed', has(holds(1, 'NotStarted')));
      await expect.poll(() => node.list()).toEqual({ 'BX4-0': 'Healthy', 'BX4-1': 'Unhealthy' });
    } finally {
      clearInterval(heart);
    }
  });
});

const readBeat = ({ root }: ServedNode): string => readFileSync(join(root, CARD, 'alive'), 'utf8').trim();
