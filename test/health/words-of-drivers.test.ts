import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../src/model/duration.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { family as intelgpu } from '../../src/probes/intelgpu/index.ts';
import { family as netdev } from '../../src/probes/netdev/index.ts';
import { watch } from '../false-alarms/watched-node.ts';
import { hardwareOf } from '../support/hardware.ts';
import { readMachine } from '../support/machine.ts';

const qat = await (familyLoaders.qat as () => Promise<DeviceFamily>)();

/** A line that begins with its driver and its function, at this time after the boot. */
const line = (ms: number, text: string): string =>
  `3,${seq++},${ms * 1_000},-;${text}\n SUBSYSTEM=pci\n DEVICE=+pci:${text.split(' ')[1]?.replace(/:$/, '')}\n`;
let seq = 1;

/** The verdicts of a machine with these lines, of an agent that starts after them. */
async function watchedAfter(
  family: DeviceFamily,
  { files, links = {}, options = {} }: ReturnType<typeof readMachine>,
  lines: readonly string[],
  startMs: number,
) {
  const kmsg = `6,0,0,-;Linux version 6.12.0\n${lines.join('')}`;
  const stat = `btime ${Date.parse('2030-01-01T00:00:00Z') / 1_000}\n`;
  return watch({ family, files: { ...files, 'dev/kmsg': kmsg, 'proc/stat': stat }, links, options } as never, () => {}, startMs);
}

describe('a virtual function that its driver cannot keep', () => {
  const machine = hardwareOf(netdev, { netdev: 2, vfs: 3 }, 30_000);
  /** Functions with a driver of the host. */
  const functions = Object.entries(machine.links).flatMap(([path, target]) =>
    /\/iavf$/.test(target) ? (/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\/driver$/.exec(path)?.[1] ?? []) : [],
  );
  const [one = ''] = functions;
  const turn = (ms: number, request: number): readonly string[] => [
    line(ms, `iavf ${one}: PF returned error -5 (IAVF_ERR_PARAM) to our request ${request}`),
    line(ms + 64, `iavf ${one}: Removing device`),
    line(ms + 500, `iavf ${one}: MAC address: 22:61:bd:00:00:00`),
  ];
  const turns = (count: number, everyMs: number, request = 53) =>
    Array.from({ length: count }, (_, n) => turn(seconds(60) + n * everyMs, request)).flat();

  it('is degraded while it starts each second, and alone', async () => {
    expect(one).not.toBe('');
    const node = await watchedAfter(netdev, machine as never, turns(40, 1_070), minutes(2));
    const { [one]: verdict, ...others } = node.verdicts;
    expect(verdict).toBe('degraded FunctionRefused degraded');
    expect(new Set(Object.values(others))).toEqual(new Set(['healthy']));
    await node.pass(minutes(25));
    expect(node.verdicts[one]).toBe('healthy');
  });

  it('is well with a pod each minute, and with a program that captures packets without trust', async () => {
    const node = await watchedAfter(
      netdev,
      machine as never,
      [
        ...turns(8, minutes(1)),
        ...Array.from({ length: 40 }, (_, n) => line(n * 500, `iavf ${one}: PF returned error -5 (IAVF_ERR_PARAM) to our request 14`)),
      ],
      minutes(10),
    );
    expect(node.verdicts[one]).toBe('healthy');
  });

  it('is unhealthy when its reset never ends, until its driver starts', async () => {
    const gone = line(seconds(60), `iavf ${one}: Reset never finished (0)`);
    expect((await watchedAfter(netdev, machine as never, [gone], minutes(2))).verdicts[one]).toBe('unhealthy FirmwareDead fatal');
    const back = line(seconds(70), `iavf ${one}: MAC address: 22:61:bd:00:00:00`);
    expect((await watchedAfter(netdev, machine as never, [gone, back], minutes(2))).verdicts[one]).toBe('healthy');
  });
});

describe('firmware that answers nothing', () => {
  it('makes a QAT and its functions unhealthy, until the engines start', async () => {
    const machine = readMachine('test/probes/qat/4xxx-with-functions/machine.yaml');
    const start = await watchedAfter(qat, machine, [], minutes(1));
    const [pf = '', ...vfs] = Object.keys(start.verdicts);
    expect(vfs.length).toBeGreaterThan(0);
    const dead = line(seconds(30), `4xxx ${pf}: Heartbeat ERROR: QAT is not responding.`);
    const node = await watchedAfter(qat, machine, [dead], minutes(1));
    for (const id of [pf, ...vfs]) expect(node.verdicts[id], id).toContain('unhealthy HeartbeatLost fatal');
    const back = line(seconds(40), `4xxx ${pf}: qat_dev0 started 8 acceleration engines`);
    expect((await watchedAfter(qat, machine, [dead, back], minutes(1))).verdicts).toEqual(start.verdicts);
  });

  it('makes a GPU degraded when it comes again and again, and not once', async () => {
    const machine = readMachine('test/probes/intelgpu/i915-integrated/machine.yaml');
    const silent = (count: number) =>
      Array.from({ length: count }, (_, n) =>
        line(
          seconds(60) + n * 2_000,
          `i915 0000:00:02.0: [drm] *ERROR* GT0: GUC: TLB invalidation response timed out for seqno ${309 + n}`,
        ),
      );
    expect((await watchedAfter(intelgpu, machine, silent(60), minutes(4))).verdicts).toEqual({
      '0000:00:02.0': 'degraded FirmwareSilent degraded',
    });
    expect((await watchedAfter(intelgpu, machine, silent(1), minutes(4))).verdicts).toEqual({ '0000:00:02.0': 'healthy' });
  });
});
