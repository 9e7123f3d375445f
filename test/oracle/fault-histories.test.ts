import { describe, expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.ts';
import { seededRandom } from '../support/seeded.ts';
import { FaultHistory } from './fault-histories.ts';

const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(12, 40));
const SEED = Number(process.env.ORACLE_SEED ?? 1);
const STEPS = 24;
/** By somebody who sets the clock, or a program that finds it wrong. */
const CLOCK_STEPS_MS = [-20_000, -30_000, -3_600_000, 20_000, 3_600_000];
const XIDS = [13, 31, 43, 43, 45, 79];

/** Programs fault, pods come and go, the clock is set, the agent is killed and starts again, with the log or without it. The log of some histories loses lines. */
async function play(seed: number): Promise<FaultHistory> {
  const random = seededRandom(seed);
  const chance = (share: number): boolean => random() < share;
  const below = (limit: number): number => Math.floor(random() * limit);
  const history = new FaultHistory(chance(0.6));
  const lossy = chance(0.3) ? 0.3 : 0;
  const isClockSet = chance(0.5);
  const setClock = (): void => {
    if (isClockSet && chance(0.3)) history.setClock(CLOCK_STEPS_MS[below(CLOCK_STEPS_MS.length)] as number);
  };
  let pods = 0;
  const change = async (): Promise<void> => {
    const gpu = below(2);
    const isShared = chance(0.3);
    await history.refresh(true);
    history.saveAccounts();
    setClock();
    history.hold(
      gpu,
      Array.from({ length: isShared ? 2 : 1 }, () => String(++pods)),
    );
    await history.pass(1_000);
    await history.refresh(true);
    history.saveAccounts();
  };
  const fault = async (): Promise<void> => {
    const gpu = below(2);
    const holders = history.podsOf(gpu);
    const pod = holders[below(holders.length)];
    if (pod === undefined) return;
    const isListed = chance(0.5);
    const pid = history.process(gpu, pod, isListed);
    if (isListed) await history.refresh(chance(0.9));
    await history.pass(1_500 + below(5_000));
    const count = chance(0.1) ? 1 + below(400) : chance(0.2) ? 2 : 1;
    const isLost = chance(lossy);
    // Removals of channels and graphics exceptions at one moment are the lines of one fault.
    const xid = XIDS[below(XIDS.length)] as number;
    const hasGroups = xid === 45 || xid === 13;
    history.fault(gpu, pod, pid, xid, { count: hasGroups ? 1 : count, isVisible: chance(0.5), isLost });
    // Of a flood, the log has the last lines.
    if (isLost && !hasGroups && chance(0.5)) history.fault(gpu, pod, pid, xid, { count: 1, isVisible: false });
    setClock();
    await history.pass(chance(0.5) ? 2_500 : 300);
    await history.refresh(chance(0.8));
  };
  const restart = async (): Promise<void> => {
    await history.kill();
    await history.pass(1_000 + below(20_000));
    setClock();
    // The pods stay, and go on to fault, while no agent runs.
    while (chance(0.5)) await fault();
    await history.pass(1_500);
    history.start(chance(0.7));
    await history.refresh(true);
    await history.pass(1_500);
    await history.refresh(true);
  };
  await change();
  await change();
  for (let step = 0; step < STEPS; step += 1) {
    const what = random();
    if (what < 0.6) {
      await fault();
      // Lines that may belong together are not counted yet.
      if (chance(0.2)) await restart();
    } else if (what < 0.75) await change();
    else if (what < 0.9) await restart();
    else history.saveAccounts();
    await history.pass(2_500 + below(8_000));
  }
  await history.pass(2_000);
  await history.refresh(true);
  return history;
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);

describe('faults of programs', () => {
  it(`are counted once each, for the device and for the pod whose process it was, in ${HISTORIES} histories`, async () => {
    let lost = 0;
    for (let seed = SEED; seed < SEED + HISTORIES; seed += 1) {
      const history = await play(seed);
      const [counted, truth] = [history.counted(), history.truth()];
      const codes = Object.keys({ ...truth.most, ...counted.devices });
      const extra = codes.map((code) => (counted.devices[code] ?? 0) - (truth.devices[code] ?? 0));
      const possible = codes.map((code) => (truth.most[code] ?? 0) - (truth.devices[code] ?? 0));
      // Exact, as long as the log lost nothing.
      expect(
        codes.filter((_, at) => (extra[at] ?? 0) < 0 || (extra[at] ?? 0) > (possible[at] ?? 0)),
        `seed ${seed}`,
      ).toEqual([]);
      lost += sumOf(extra);
      // Each fault whose pod is certain, and never one of another pod.
      for (const [container, count] of Object.entries(truth.containers))
        expect(counted.containers[container], `seed ${seed}: ${container}`).toBeGreaterThanOrEqual(count);
      for (const [container, count] of Object.entries(counted.containers))
        expect(count, `seed ${seed}: ${container}`).toBeLessThanOrEqual(truth.possible[container] ?? 0);
      const listed = sumOf(history.listed.map(({ count }) => count));
      expect(listed, `seed ${seed}: faults in the list`).toBe(sumOf(Object.values(counted.devices)));
      const told = new Set(history.events.map(({ device, instance }) => `${device} ${instance}`));
      expect([...new Set(history.listed.map(({ device, code }) => `${device} ${code}`))].filter((one) => !told.has(one))).toEqual([]);
      await history.end();
    }
    if (HISTORIES >= 40) expect(lost).toBeGreaterThan(0);
  });
});
