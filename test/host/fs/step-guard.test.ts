import { afterEach, describe, expect, it, vi } from 'vitest';
import { deviceDirectory, type Step, StepGuard } from '../../../src/host/fs/step-guard.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function listened(closed?: readonly string[]) {
  const said: (Step | undefined)[] = [];
  return { guard: new StepGuard(closed, (step) => said.push(step)), said };
}

afterEach(() => {
  vi.useRealTimers();
});

describe('a step', () => {
  it('is said before it begins: once for the files of a device, and each call with its name', () => {
    const { guard, said } = listened();
    const gpu = '/sys/bus/pci/devices/0000:3b:00.0';
    for (const path of ['/sys/class/net/lo/mtu', '/sys/class/net/lo/statistics/rx_bytes']) {
      guard.enter(path);
      guard.leave();
    }
    for (const name of ['nvmlDeviceGetName', 'nvmlDeviceGetUUID']) {
      guard.enter(`${gpu}/nvml/${name}`, 'call');
      guard.leave();
    }
    expect(said).toEqual([
      { kind: 'file', path: '/sys/class/net/lo' },
      { kind: 'call', path: `${gpu}/nvml/nvmlDeviceGetName` },
      { kind: 'call', path: `${gpu}/nvml/nvmlDeviceGetUUID` },
    ]);
  });

  it('that has ended is said when no other one follows in the same turn', async () => {
    const { guard, said } = listened();
    guard.enter('/a');
    guard.leave();
    guard.enter('/a');
    guard.leave();
    expect(said).toHaveLength(1);
    await nextTurn();
    expect(said).toEqual([{ kind: 'file', path: '/a' }, undefined]);
    guard.enter('/a');
    expect(said).toHaveLength(3);
  });

  it('is said again in a device whose files take long together', () => {
    const { guard, said } = listened();
    vi.useFakeTimers({ toFake: ['Date'], now: 0 });
    guard.enter('/sys/class/net/lo/mtu');
    vi.setSystemTime(150);
    guard.enter('/sys/class/net/lo/speed');
    expect(said).toEqual([1, 2].map(() => ({ kind: 'file', path: '/sys/class/net/lo' })));
  });

  it('is refused in closed places, but not next to them', () => {
    const { guard, said } = listened(['/sys/bus/pci/devices/0000:3b:00.0', 'nvml/nvmlInit_v2']);
    for (const path of ['/sys/bus/pci/devices/0000:3b:00.0', '/sys/bus/pci/devices/0000:3b:00.0/nvml/x', 'nvml/nvmlInit_v2'])
      expect([guard.isLeftOut(path), guard.enter(path, 'call')], path).toEqual([true, 'EHUNG']);
    expect(said).toEqual([]);
    for (const path of ['/sys/bus/pci/devices/0000:3b:00.01', '/sys/bus/pci/devices', 'nvml/nvmlInit_v2x'])
      expect([guard.isLeftOut(path), guard.enter(path, 'call')], path).toEqual([false, undefined]);
    guard.leftOut = [];
    expect(guard.enter('nvml/nvmlInit_v2', 'call')).toBeUndefined();
  });
});

describe('the directory of a device', () => {
  it.each([
    ['/sys/class/infiniband/mlx5_0/ports/1/state', '/sys/class/infiniband/mlx5_0'],
    ['/host/sys/bus/pci/devices/0000:3b:00.0/config', '/host/sys/bus/pci/devices/0000:3b:00.0'],
    ['/sys/bus/pci/devices/0000:3b:00.0', '/sys/bus/pci/devices/0000:3b:00.0'],
    ['/sys/class/hwmon/hwmon4/temp1_input', '/sys/class/hwmon/hwmon4'],
    ['/host/proc/4711/fdinfo/23', '/host/proc/4711/fdinfo'],
    ['nvml/nvmlInit_v2', 'nvml/nvmlInit_v2'],
    ['/proc/driver/nvidia/version', '/proc/driver/nvidia/version'],
  ])('of %s is %s', (path, directory) => {
    expect(deviceDirectory(path)).toBe(directory);
  });
});
