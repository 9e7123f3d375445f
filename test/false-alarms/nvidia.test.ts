// Project: programs. Histories in number.
import { describe, expect, it } from 'vitest';
import { readyDevices } from '../../src/health/journal/ready-devices.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import { hours, minutes, seconds } from '../../src/model/duration.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { addressOf, BOUND, changed, closedWith, gpus, links, watchGpus, withoutAction } from './scripted-gpus.ts';
import type { WatchedNode } from './watched-node.ts';

/** Verdicts of the GPUs in their order. */
const verdictsOf = (node: WatchedNode): readonly string[] =>
  Object.entries(node.verdicts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, verdict]) => verdict);
const offeredBy = (node: WatchedNode): readonly string[] => Object.values(node.offered ?? {}).sort();
const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);
const xid = (index: number, text: string): string => `NVRM: Xid (PCI:${addressOf(index).slice(0, -2)}): ${text}`;

describe('NVSentinel 1471', () => {
  it('no IMEX daemon on eight GPUs that need none', async () => {
    const machine = gpus(8, () => links(18, 18));
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    node.log(...times(20, 'NVRM: _fabricNotifyEvent: Unable to notify ImexSessionApi'));
    await node.pass(minutes(10));
    expect(verdictsOf(node)).toEqual(times(8, 'healthy'));
    // The driver itself asks for help with the domain, and the GPU can still work alone.
    write(changed(machine, 3, {}, { '230 0': 5 }));
    await node.pass(minutes(2));
    expect(verdictsOf(node)[3]).toBe('degraded RecoveryAction degraded');
    expect(offeredBy(node)).toEqual(times(8, 'Healthy'));
  });
});

describe('azhpc-images 506', () => {
  it('a fabric that has completed its registration without success', async () => {
    const machine = gpus(2, () => links(18, 18));
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    write(changed(machine, 1, { fabric_state: 3, fabric_status: 23 }));
    await node.pass(minutes(6));
    expect(verdictsOf(node)).toEqual(['healthy', 'unhealthy FabricNotReady fatal']);
  });
});

describe('NVSentinel 1701', () => {
  it('links that train after a boot', async () => {
    const { node, write } = await watchGpus(gpus(4, () => links(18, 18)));
    await node.pass(minutes(2));
    await node.reboot(() => write(gpus(4, () => links(18, 16))));
    const seen = new Set<string>();
    for (let look = 0; look < 4; look += 1) {
      await node.pass(seconds(30));
      for (const verdict of verdictsOf(node)) seen.add(verdict);
    }
    write(gpus(4, () => links(18, 18)));
    await node.pass(minutes(5));
    expect([...seen, ...verdictsOf(node)].filter((verdict) => verdict !== 'healthy')).toEqual([]);
  });
});

describe('NVSentinel 1481', () => {
  it('PCIe boards without a bridge, whose links are all down', async () => {
    const { node } = await watchGpus(gpus(2, () => ({ name: 'NVIDIA A100 80GB PCIe', ...links(12, 0) })));
    await node.pass(minutes(20));
    expect(verdictsOf(node)).toEqual(times(2, 'healthy'));
  });
});

describe('GPUd 1085', () => {
  it('one GPU without a link among others that have all', async () => {
    const { node } = await watchGpus(gpus(8, (index) => ({ name: 'NVIDIA B200', ...links(18, index === 2 ? 0 : 18) })));
    await node.pass(minutes(10));
    expect(verdictsOf(node)).toEqual(times(8, 'healthy').with(2, 'unhealthy NvLinkDown/all fatal'));
    expect(offeredBy(node)).toEqual([...times(7, 'Healthy'), 'Unhealthy']);
  });
});

describe('NVSentinel 1710', () => {
  it('programs that end, again and again', async () => {
    const { node } = await watchGpus(withoutAction(gpus(2)));
    await node.pass(minutes(1));
    const seen = new Set<string>();
    for (let end = 0; end < 60; end += 1) {
      node.log(xid(0, `45, pid=${5_000 + end}, name=python, Ch 0000000${end % 8}`));
      await node.pass(seconds(30));
      seen.add(verdictsOf(node)[0]?.split(' ')[0] ?? '');
    }
    expect([...seen]).toEqual(['healthy']);
    expect(verdictsOf(node)).toEqual(['healthy XidPassing/45 info', 'healthy']);
    expect(offeredBy(node)).toEqual(times(2, 'Healthy'));
    // Channels that another error removed: only the error counts.
    await node.pass(minutes(15));
    node.log(xid(1, '94, pid=6000, name=python, Contained'), ...times(8, xid(1, '45, pid=6000, name=python, Ch 00000001')));
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(['healthy', 'degraded Xid/94 degraded']);
  });
});

describe('NVSentinel 1357', () => {
  it('an error of a link that the line itself calls nonfatal', async () => {
    const { node } = await watchGpus(withoutAction(gpus(2)));
    await node.pass(minutes(1));
    node.log(xid(0, '145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 (0x04084507 0x00000004 0x00000000 0x00000000 0x00000000 0x00000000)'));
    node.log(xid(1, '145, RLW_SRC_TRACK Fatal XC1 i0 Link 17 (0x04084507 0x00000004 0x00000000 0x00000000 0x00000000 0x00000000)'));
    await node.pass(minutes(1));
    expect(verdictsOf(node)).toEqual(['degraded XidPassing/145 degraded', 'unhealthy Xid/145 fatal']);
    await node.pass(minutes(15));
    expect(verdictsOf(node)).toEqual(['healthy', 'unhealthy Xid/145 fatal']);
  });
});

describe('DCGM 263', () => {
  it('a GPU that answers, and for which the driver asks for a reset', async () => {
    const machine = gpus(8);
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    write(changed(machine, 1, {}, { '230 0': 1 }));
    await node.pass(minutes(1));
    expect(verdictsOf(node)).toEqual(times(8, 'healthy').with(1, 'unhealthy RecoveryAction fatal'));
    write(machine);
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(8, 'healthy'));
  });
});

describe('k8s-device-plugin 1640', () => {
  it('a library that can no longer be initialised', async () => {
    const machine = gpus(2);
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    expect(offeredBy(node)).toEqual(times(2, 'Healthy'));
    write(closedWith(machine, 999));
    await node.pass(minutes(2));
    expect(offeredBy(node)).toEqual(times(2, 'Unhealthy'));
    await node.restart();
    await node.pass(minutes(2));
    expect(verdictsOf(node).map((verdict) => verdict.split(' ')[0])).toEqual(times(2, 'unknown'));
    expect(offeredBy(node)).toEqual(times(2, 'Unhealthy'));
    write(machine);
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(2, 'healthy'));
    expect(offeredBy(node)).toEqual(times(2, 'Healthy'));
  });
});

describe('HAMi 2393', () => {
  it('boards that report no events', async () => {
    const machine = gpus(2, () => ({ name: 'Quadro K2000', event_types: '0x0' }));
    const { node } = await watchGpus({ gpus: machine.gpus.map((gpu) => ({ ...gpu, lines: ['fail.nvmlDeviceRegisterEvents = 3'] })) });
    await node.pass(minutes(5));
    expect(verdictsOf(node)).toEqual(times(2, 'healthy'));
    expect(offeredBy(node)).toEqual(times(2, 'Healthy'));
  });
});

describe('eks-node-monitoring-agent 266', () => {
  it('a driver that is loaded two minutes after the agent starts', async () => {
    const machine = gpus(2);
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    write(closedWith(machine, 9));
    await node.restart();
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(2, 'unhealthy DriverUnusable fatal DeviceNotRead degraded'));
    write(machine);
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(2, 'healthy'));
    expect(offeredBy(node)).toEqual(times(2, 'Healthy'));
  });
});

const readyAnswer = (node: WatchedNode): boolean =>
  readyDevices(node.snapshot, { family: 'nvidia' }, { isUsable: ({ state }) => state === 'healthy', devicesOf: () => undefined }).isReady;

describe('eks-node-monitoring-agent 241', () => {
  it('a driver that shows no GPU on a machine that has some', async () => {
    const { node, write } = await watchGpus({ gpus: [] }, 4);
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(4, 'unhealthy NotInitialized fatal'));
    expect(readyAnswer(node)).toBe(false);
    write(gpus(4));
    await node.restart();
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(4, 'healthy'));
    expect(readyAnswer(node)).toBe(true);
    write({ gpus: [] });
    node.tree.hide('unbound', BOUND, { kind: 'absent' });
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(times(4, 'unhealthy DriverUnbound fatal'));
    expect(readyAnswer(node)).toBe(false);
  });
});

describe('eks-node-monitoring-agent 245', () => {
  it('a memory row that could not be remapped', async () => {
    const machine = changed(changed(gpus(3), 1, { remap_pending: 1 }), 2, { remap_failure: 1 });
    const { node } = await watchGpus(machine);
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(['healthy', 'degraded RowRemapPending degraded', 'unhealthy RowRemapFailure fatal']);
    expect(offeredBy(node)).toEqual(['Healthy', 'Healthy', 'Unhealthy']);
  });
});

describe('eks-node-monitoring-agent 272', () => {
  it('an error that one cluster wants to be fatal', async () => {
    const { node } = await watchGpus(gpus(2));
    await node.pass(minutes(1));
    const stopped = xid(0, '43, pid=7000, name=python, Ch 00000008');
    node.log(stopped);
    await node.pass(minutes(1));
    expect(verdictsOf(node)).toEqual(['healthy XidPassing/43 info', 'healthy']);
    await node.restart({ 'nvidia.XidPassing/43': { severity: 'fatal' } });
    node.log(stopped);
    await node.pass(minutes(1));
    expect(verdictsOf(node)).toEqual(['unhealthy XidPassing/43 fatal', 'healthy']);
    await node.pass(minutes(15));
    expect(verdictsOf(node)).toEqual(times(2, 'healthy'));
  });
});

describe('NVSentinel 695', () => {
  it('a reboot that repairs nothing, on a machine without work', async () => {
    const machine = withoutAction(gpus(2));
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    write(changed(machine, 1, { remap_failure: 1 }));
    node.log(xid(1, '64, pid=8000, name=python, Row Remapper: error'), xid(0, '79, GPU has fallen off the bus.'));
    await node.pass(minutes(2));
    expect(verdictsOf(node)).toEqual(['unhealthy Xid/79 fatal', 'unhealthy RowRemapFailure fatal Xid/64 fatal']);
    await node.reboot();
    await node.pass(minutes(30));
    // What the board itself still tells stays. What only the log of the last boot told is over.
    expect(verdictsOf(node)).toEqual(['healthy', 'unhealthy RowRemapFailure fatal']);
  });
});

describe('k8s-device-plugin 189 and 234', () => {
  it('an error of a program', async () => {
    const { node } = await watchGpus(gpus(2));
    await node.pass(minutes(1));
    node.log(xid(0, '69, pid=9000, name=python, Class Error: ChId 0008'));
    await node.pass(minutes(1));
    expect(verdictsOf(node)).toEqual(['healthy XidPassing/69 info', 'healthy']);
    expect(offeredBy(node)).toEqual(times(2, 'Healthy'));
    await node.pass(minutes(15));
    expect(verdictsOf(node)).toEqual(times(2, 'healthy'));
  });
});

describe('dcgm-exporter 500 and gpu-monitoring-tools 188', () => {
  it('values from before the source was lost', async () => {
    const machine = gpus(1);
    const { node, write } = await watchGpus(machine);
    const page = async (): Promise<string> =>
      createExposition({
        families: [family],
        snapshot: () => node.snapshot,
        agent: () => ({ node: 'node-1', version: '0', podResourcesRequests: [], podResourcesDurations: [] }),
      }).devices();
    await node.pass(minutes(1));
    expect(await page()).toContain('device_temperature_celsius{');
    node.log(xid(0, '31, pid=10000, name=python, MMU Fault'));
    write(closedWith(machine, 999));
    await node.pass(minutes(2));
    expect(await page()).not.toContain('device_temperature_celsius{');
    expect(verdictsOf(node)[0]).toMatch(/^unknown /);
    write(machine);
    await node.pass(minutes(15));
    expect(await page()).toContain('device_temperature_celsius{');
    expect(verdictsOf(node)).toEqual(['healthy']);
  });
});

describe('eks-node-monitoring-agent 39', () => {
  it('two faults at once, in turn', async () => {
    const machine = gpus(1);
    const { node, write } = await watchGpus(machine);
    const since = (): readonly (readonly [string, number | undefined])[] =>
      node.snapshot.devices.flatMap(({ verdict }) => verdict.conditions.map(({ type, sinceMs }) => [type, sinceMs] as const));
    await node.pass(minutes(1));
    write(changed(machine, 0, { remap_failure: 1, sram_exceeded: 1 }));
    await node.pass(minutes(1));
    const first = since();
    expect(first.map(([type]) => type).sort()).toEqual(['RowRemapFailure', 'SramThresholdExceeded']);
    for (let turn = 0; turn < 20; turn += 1) {
      write(changed(machine, 0, { remap_failure: 1, sram_exceeded: 1, temperature: 40 + (turn % 3), remap_unc: turn }));
      await node.pass(seconds(30));
    }
    expect(since()).toEqual(first);
  });
});

describe('NVSentinel 1748', () => {
  it('memory that corrects thousands of errors a second under load', async () => {
    const machine = gpus(1);
    const { node, write } = await watchGpus(machine);
    await node.pass(minutes(1));
    for (let look = 1; look <= 6; look += 1) {
      write(changed(machine, 0, { 'ecc.0.0.2': 2 + look * 30 * 4_647 }));
      await node.pass(seconds(30));
    }
    expect(verdictsOf(node)).toEqual(['healthy CorrectableEccRate info']);
    await node.skip(hours(1));
    await node.pass(minutes(15));
    expect(verdictsOf(node)).toEqual(['healthy']);
  });
});

describe('open-gpu-kernel-modules 1064', () => {
  it('a heartbeat of the system processor that the driver misses, on a GPU that works', async () => {
    const { node } = await watchGpus(withoutAction(gpus(2)));
    await node.pass(minutes(1));
    for (let minute = 0; minute < 30; minute += 1) {
      const times = `currentTimeMs ${60_000 * minute} heartbeat 0 heartbeatWithOffsetMs 0 diff ${60_000 * minute} timeout 5200`;
      node.log(
        `NVRM: GPU0 _kgspIsHeartbeatTimedOut: Heartbeat timed out, ${times}`,
        'NVRM: GPU0 _kgspRpcRecvPoll: GSP RM heartbeat timed out',
      );
      await node.pass(minutes(1));
    }
    expect(verdictsOf(node)).toEqual(['healthy', 'healthy']);
    // One that stopped does not answer the next request.
    node.log(xid(0, '119, pid=4711, name=nvidia-smi, Timeout after 45s of waiting for RPC response from GPU0 GSP! Expected function 76.'));
    await node.pass(minutes(1));
    expect(verdictsOf(node)).toEqual(['unhealthy Xid/119 fatal', 'healthy']);
  });
});
