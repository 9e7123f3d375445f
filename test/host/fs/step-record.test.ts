import { describe, expect, it } from 'vitest';
import { deviceDirectory, StepRecord } from '../../../src/host/fs/step-record.ts';

describe('the recorded step', () => {
  it('is visible through the shared memory from its begin to its end', () => {
    const guard = new StepRecord();
    const owner = new StepRecord([], guard.shared);
    expect(owner.current()).toBeUndefined();
    expect(guard.enter('/sys/class/net/lo/mtu')).toBe(true);
    expect(owner.current()).toMatchObject({ kind: 'file', path: '/sys/class/net/lo/mtu' });
    guard.leave();
    expect(owner.current()).toBeUndefined();
    guard.enter('/sys/bus/pci/devices/0000:3b:00.0/nvml/nvmlDeviceGetName', 'call');
    expect(owner.current()).toMatchObject({ kind: 'call', path: '/sys/bus/pci/devices/0000:3b:00.0/nvml/nvmlDeviceGetName' });
  });

  it('distinguishes a long step from a repeated one', () => {
    const guard = new StepRecord();
    const numbers = ['/a', '/a', '/b'].map((path) => {
      guard.enter(path);
      const numbered = [guard.current()?.number, guard.current()?.number];
      guard.leave();
      return numbered;
    });
    expect(numbers).toEqual([1, 2, 3].map((number) => [number, number]));
  });

  it('truncates a path that is too long', () => {
    const guard = new StepRecord();
    const path = `/${'ü'.repeat(5_000)}`;
    guard.enter(path);
    const told = guard.current()?.path ?? '';
    expect(told.length).toBeGreaterThan(2_000);
    expect(path.startsWith(told)).toBe(true);
  });

  it('of a path that comes again is written once, and never over another one', () => {
    const guard = new StepRecord();
    const owner = new StepRecord([], guard.shared);
    const places = Array.from({ length: 50 }, (_, n) => ({ path: `/sys/class/net/ü${'x'.repeat(n)}/mtu`, place: {} }));
    for (let round = 0; round < 3; round += 1) {
      for (const { path, place } of places) {
        guard.enter('nvml/nvmlInit_v2', 'call');
        expect(owner.current()).toMatchObject({ kind: 'call', path: 'nvml/nvmlInit_v2' });
        guard.enter(path, 'file', place);
        expect(owner.current()).toMatchObject({ kind: 'file', path });
      }
    }
    const long = { path: `/${'y'.repeat(3_000)}` };
    for (let n = 0; n < 2_000; n += 1) {
      guard.enter(`${long.path}${n}`, 'file', {});
      expect(owner.current()?.path, 'the memory is full').toBe(`${long.path}${n}`);
    }
    guard.enter(places[7]?.path as string, 'file', places[7]?.place);
    expect(owner.current()?.path).toBe(places[7]?.path);
  });

  it('is refused in quarantined places, but not next to them', () => {
    const guard = new StepRecord(['/sys/bus/pci/devices/0000:3b:00.0', 'nvml/nvmlInit_v2']);
    for (const path of ['/sys/bus/pci/devices/0000:3b:00.0', '/sys/bus/pci/devices/0000:3b:00.0/nvml/x', 'nvml/nvmlInit_v2']) {
      expect([guard.isClosed(path), guard.enter(path, 'call'), guard.current()], path).toEqual([true, false, undefined]);
    }
    for (const path of ['/sys/bus/pci/devices/0000:3b:00.01', '/sys/bus/pci/devices', 'nvml/nvmlInit_v2x']) {
      expect([guard.isClosed(path), guard.enter(path, 'call')], path).toEqual([false, true]);
    }
  });
});

describe('the directory of a device', () => {
  it.each([
    ['/sys/class/infiniband/mlx5_0/ports/1/state', '/sys/class/infiniband/mlx5_0'],
    ['/host/sys/bus/pci/devices/0000:3b:00.0/config', '/host/sys/bus/pci/devices/0000:3b:00.0'],
    ['/sys/bus/pci/devices/0000:3b:00.0', '/sys/bus/pci/devices/0000:3b:00.0'],
    ['/sys/class/hwmon/hwmon4/temp1_input', '/sys/class/hwmon/hwmon4'],
    ['nvml/nvmlInit_v2', 'nvml/nvmlInit_v2'],
    ['/proc/driver/nvidia/version', '/proc/driver/nvidia/version'],
  ])('of %s is %s', (path, directory) => {
    expect(deviceDirectory(path)).toBe(directory);
  });
});
