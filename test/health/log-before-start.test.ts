import { describe, expect, it } from 'vitest';
import { hours, minutes, seconds } from '../../src/model/duration.ts';
import { family as nvme } from '../../src/probes/nvme/index.ts';
import { watch } from '../false-alarms/watched-node.ts';
import { hardwareOf } from '../support/hardware.ts';

const RESET = 'controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10';

/** A drive whose controller was reset at these times after the boot, and an agent that starts `startMs` after the boot. */
async function startedAfter(startMs: number, resetsMs: readonly number[]) {
  const { files, links } = hardwareOf(nvme, { nvme: 1 }, 30_000);
  const lines = resetsMs.map((ms, seq) => `4,${seq + 1},${ms * 1_000},-;nvme nvme0: ${RESET}\n SUBSYSTEM=nvme\n DEVICE=c242:0\n`);
  const kmsg = `6,0,0,-;Linux version 6.6.0\n${lines.join('')}`;
  const node = await watch(
    { family: nvme, files: { ...files, 'dev/kmsg': kmsg, 'proc/stat': `btime ${Date.parse('2030-01-01T00:00:00Z') / 1_000}\n` }, links },
    () => {},
    startMs,
  );
  const verdict = (): string | undefined => Object.values(node.verdicts).find((text) => text !== 'healthy') ?? 'healthy';
  return { node, verdict };
}

const DEGRADED = 'degraded ControllerResets degraded';
const EACH_HOUR = [1, 2, 3, 4, 5, 6, 7, 8].map((hour) => hours(hour));

describe('lines that the kernel logged before the agent started', () => {
  it('count by their own time while they are within the time of the condition', async () => {
    const { node, verdict } = await startedAfter(hours(8) + minutes(30), EACH_HOUR);
    expect(verdict()).toBe(DEGRADED);
    await node.pass(minutes(45));
    expect(verdict()).toBe('healthy');
  });

  it('count no more when they are older', async () => {
    const { node, verdict } = await startedAfter(hours(8) + minutes(70), EACH_HOUR);
    expect(verdict()).toBe('healthy');
    await node.pass(minutes(5));
    expect(verdict()).toBe('healthy');
  });

  it('count in each hour that has one', async () => {
    const resets = [seconds(30), minutes(50), minutes(55)];
    const verdictAt = async (startMs: number) => {
      const before = resets.filter((ms) => ms < startMs);
      return (await startedAfter(startMs, before)).verdict();
    };
    for (const startMs of [minutes(10), minutes(58), minutes(112)]) expect(await verdictAt(startMs)).toBe(DEGRADED);
    expect(await verdictAt(minutes(126))).toBe('healthy');
  });

  it('are not counted twice by an agent that starts again', async () => {
    const { node, verdict } = await startedAfter(minutes(30), [minutes(20)]);
    expect(verdict()).toBe(DEGRADED);
    await node.restart();
    await node.pass(minutes(49));
    await node.restart();
    await node.pass(minutes(15));
    expect(verdict()).toBe('healthy');
  });
});
