import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hours, minutes } from '../../../src/model/duration.ts';
import { removeAsKernel } from '../../support/kernel-files.ts';
import { EINVAL, machineKeeper, PORT, type Probed, probeMachine, reportOf, smallMachine, valueIn, WatchingGuard } from './harness.ts';

const keep = machineKeeper();

/** Replaces a file with another file. */
function put({ root }: Probed, path: string, file: { readonly text: string } | { readonly link: string }): void {
  const full = join(root, PORT, path);
  removeAsKernel(full);
  if ('text' in file) writeFileSync(full, file.text);
  else symlinkSync(file.link, full);
}

const value = (machine: Probed, metric: string) => valueIn(reportOf(machine.collect(), 'mlx5_0'), metric);
const bytes = (machine: Probed) => value(machine, 'device_received_bytes_total');
const unreadable = (machine: Probed) => value(machine, 'device_infiniband_unreadable_files');

describe('a counter that had a value and then fails with a lasting error', () => {
  it('is read again after a minute, and then at growing intervals', () => {
    const guard = new WatchingGuard();
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/counters/link_downed`]: '2\n' }), {}, guard));
    const told = () => value(machine, 'device_errors_total');
    expect(told()).toBe(2);
    put(machine, 'counters/link_downed', { link: EINVAL });
    expect(told()).toBeUndefined();
    put(machine, 'counters/link_downed', { text: '3\n' });
    machine.clock.nowMs = minutes(1) - 1;
    expect(told()).toBeUndefined();
    machine.clock.nowMs = minutes(1);
    expect(told()).toBe(3);

    put(machine, 'counters/link_downed', { link: EINVAL });
    const tried: number[] = [];
    for (let minute = 1; minute <= 250; minute += 1) {
      machine.clock.nowMs += minutes(1);
      guard.before = (path) => void (path.endsWith('link_downed') && tried.push(minute));
      expect(told()).toBeUndefined();
    }
    expect(tried).toEqual([1, 2, 4, 8, 16, 32, 64, 124, 184, 244]);
  });
});

describe('a series that several files can feed', () => {
  const old = () =>
    smallMachine({ [`${PORT}/counters_ext/port_rcv_data_64`]: '900000000000\n', [`${PORT}/counters/port_rcv_data`]: '77\n' });

  it.each([
    ['for good', { text: 'N/A (no PMA)\n' }],
    ['in passing', { text: '\n' }],
  ])('is absent while the file that fed it fails %s, and not fed by another one', (_, failure) => {
    const machine = keep(probeMachine(old()));
    expect(bytes(machine)).toBe(3_600_000_000_000);
    put(machine, 'counters_ext/port_rcv_data_64', failure);
    expect(bytes(machine)).toBeUndefined();
    expect(unreadable(machine)).toBe(1);
    put(machine, 'counters_ext/port_rcv_data_64', { text: '900000000001\n' });
    machine.clock.nowMs = minutes(1);
    expect(bytes(machine)).toBe(3_600_000_000_004);
    expect(unreadable(machine)).toBe(0);
  });

  it('keeps its first file, even when a preferred file gets a value later', () => {
    const machine = keep(probeMachine(old()));
    put(machine, 'counters_ext/port_rcv_data_64', { text: 'N/A (no PMA)\n' });
    expect([bytes(machine), unreadable(machine)]).toEqual([308, 1]);
    put(machine, 'counters_ext/port_rcv_data_64', { text: '900000000000\n' });
    put(machine, 'counters/port_rcv_data', { text: '78\n' });
    machine.clock.nowMs = hours(2);
    expect(bytes(machine)).toBe(312);
  });

  it('uses another file after its first file is removed', () => {
    const machine = keep(probeMachine(old()));
    expect(bytes(machine)).toBe(3_600_000_000_000);
    removeAsKernel(join(machine.root, PORT, 'counters_ext'));
    machine.clock.nowMs = minutes(2);
    expect([bytes(machine), unreadable(machine)]).toEqual([308, 0]);
  });
});
