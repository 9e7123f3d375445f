import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../src/model/duration.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { family as intelgpu } from '../../src/probes/intelgpu/index.ts';
import { family as netdev } from '../../src/probes/netdev/index.ts';
import { addressOf, gpus, links, watchGpus, withoutAction } from '../false-alarms/scripted-gpus.ts';
import { watch } from '../false-alarms/watched-node.ts';
import { hardwareOf } from '../support/hardware.ts';
import { readMachine } from '../support/machine.ts';

const qat = await (familyLoaders.qat as () => Promise<DeviceFamily>)();

/** A line that begins with its driver and its function, at this time after the boot. */
const line = (ms: number, text: string): string =>
  `3,${seq++},${ms * 1_000},-;${text}\n SUBSYSTEM=pci\n DEVICE=+pci:${text.split(' ')[1]?.replace(/:$/, '')}\n`;
let seq = 1;

/** The verdicts of a machine with these lines, of an agent that starts after them. */
async function watched(
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
    const node = await watched(netdev, machine as never, turns(40, 1_070), minutes(2));
    const { [one]: verdict, ...others } = node.verdicts;
    expect(verdict).toBe('degraded FunctionRefused degraded');
    expect(new Set(Object.values(others))).toEqual(new Set(['healthy']));
    await node.pass(minutes(25));
    expect(node.verdicts[one]).toBe('healthy');
  });

  it('is well with a pod each minute, and with a program that captures packets without trust', async () => {
    const node = await watched(
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
    expect((await watched(netdev, machine as never, [gone], minutes(2))).verdicts[one]).toBe('unhealthy FirmwareDead fatal');
    const back = line(seconds(70), `iavf ${one}: MAC address: 22:61:bd:00:00:00`);
    expect((await watched(netdev, machine as never, [gone, back], minutes(2))).verdicts[one]).toBe('healthy');
  });
});

describe('firmware that answers nothing', () => {
  it('makes a QAT and its functions unhealthy, until the engines start', async () => {
    const machine = readMachine('test/probes/qat/4xxx-with-functions/machine.yaml');
    const start = await watched(qat, machine, [], minutes(1));
    const [pf = '', ...vfs] = Object.keys(start.verdicts);
    expect(vfs.length).toBeGreaterThan(0);
    const dead = line(seconds(30), `4xxx ${pf}: Heartbeat ERROR: QAT is not responding.`);
    const node = await watched(qat, machine, [dead], minutes(1));
    for (const id of [pf, ...vfs]) expect(node.verdicts[id], id).toContain('unhealthy HeartbeatLost fatal');
    const back = line(seconds(40), `4xxx ${pf}: qat_dev0 started 8 acceleration engines`);
    expect((await watched(qat, machine, [dead, back], minutes(1))).verdicts).toEqual(start.verdicts);
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
    expect((await watched(intelgpu, machine, silent(60), minutes(4))).verdicts).toEqual({
      '0000:00:02.0': 'degraded FirmwareSilent degraded',
    });
    expect((await watched(intelgpu, machine, silent(1), minutes(4))).verdicts).toEqual({ '0000:00:02.0': 'healthy' });
  });
});

// kernel_gsp.c prints these after each request to the firmware, also one that was answered, and without the GPU. A request that was not answered
// has Xid 119, or 120 and others, which name it.
describe('lines about the heartbeat of the GSP', () => {
  it('are no fault, and the Xid of a request without an answer is one', async () => {
    const { node } = await watchGpus(withoutAction(gpus(2, () => links(18, 18))));
    await node.pass(minutes(1));
    node.log(
      'NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 81200 heartbeat 60011 heartbeatWithOffsetMs 60011 diff 21189 timeout 5200',
      'NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out',
      'NVRM: _kgspRpcRecvPoll: LibOS heartbeat timed out',
    );
    await node.pass(minutes(2));
    expect(new Set(Object.values(node.verdicts))).toEqual(new Set(['healthy']));
    node.log(
      `NVRM: Xid (PCI:${addressOf(1).slice(0, -2)}): 119, pid=4711, name=python, Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 76 (GSP_RM_CONTROL) (0x2080a7d7 0x0).`,
    );
    await node.pass(minutes(2));
    expect(Object.values(node.verdicts).filter((verdict) => verdict !== 'healthy')).toHaveLength(1);
  });
});
