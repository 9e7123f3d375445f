import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DeviceProcess } from '../../../src/model/collection.ts';
import { directoryOf, type ProbedMachine, reportOf, seriesOf, simulatedMachine } from './harness.ts';

const FIRST = '0030:10:00.0';
const SECOND = '0030:11:00.0';
const RENDER = 'renderD328';

let machine: ProbedMachine;
beforeEach(() => {
  machine = simulatedMachine(2);
});
afterEach(() => machine.end());

const processesOf = (address: string): readonly DeviceProcess[] | undefined => reportOf(machine.collect(), address).processes;
const sharesOf = (address: string): Readonly<Record<string, number | bigint>> =>
  Object.fromEntries(
    Object.entries(seriesOf(reportOf(machine.collect(), address))).filter(([name]) => name.startsWith('device_utilization')),
  );

interface Client {
  readonly id?: string;
  readonly pdev?: string;
  readonly vram?: string;
  /** Cycles of the client and of the class. */
  readonly cycles?: Readonly<Record<string, readonly [busy: number | bigint, total: number | bigint]>>;
  readonly capacity?: number;
}

/** A process with an open node. */
function open(pid: number, fd: number, node: string, { id, pdev = FIRST, vram, cycles = {}, capacity }: Client): void {
  machine.write(
    `proc/${pid}/fdinfo/${fd}`,
    [
      'pos:\t0',
      'drm-driver:\txe',
      `drm-pdev:\t${pdev}`,
      ...(id === undefined ? [] : [`drm-client-id:\t${id}`]),
      ...(vram === undefined ? [] : [`drm-resident-vram0:\t${vram}`, `drm-resident-vram1:\t0`]),
      ...Object.entries(cycles).flatMap(([engine, [busy, total]]) => [
        `drm-cycles-${engine}:\t${busy}`,
        `drm-total-cycles-${engine}:\t${total}`,
        ...(capacity === undefined ? [] : [`drm-engine-capacity-${engine}:\t${capacity}`]),
      ]),
      '',
    ].join('\n'),
  );
  machine.remove(`proc/${pid}/fd/${fd}`);
  machine.link(`proc/${pid}/fd/${fd}`, `/dev/dri/${node}`);
}

describe('a client of a card', () => {
  it('has memory at once, and shares of time from the second read on', () => {
    open(900, 4, RENDER, { id: '1', vram: '2068 KiB', cycles: { rcs: [1_000, 50_000] } });
    expect(processesOf(FIRST)).toEqual([{ pid: 900, memoryUsedBytes: 2_117_632 }]);
    machine.forward(10_000);
    open(900, 4, RENDER, { id: '1', vram: '1 MiB', cycles: { rcs: [31_000, 150_000], ccs: [7, 150_000] } });
    // The class of compute engines was not there before, so its share is unknown.
    expect(processesOf(FIRST)).toEqual([{ pid: 900, memoryUsedBytes: 1_048_576, utilization: { render: 0.3 } }]);
    expect(processesOf(SECOND)).toEqual([]);
  });

  it('has a share of all engines of a class', () => {
    open(900, 4, RENDER, { id: '1', cycles: { vcs: [0, 0] }, capacity: 2 });
    processesOf(FIRST);
    machine.forward(1_000);
    open(900, 4, RENDER, { id: '1', cycles: { vcs: [1_000, 1_000] }, capacity: 2 });
    expect(processesOf(FIRST)?.[0]?.utilization).toEqual({ video: 0.5 });
  });

  it('counts once when a descriptor is copied or a child inherits it, and on the node of the card, too', () => {
    open(900, 4, RENDER, { id: '1', vram: '100' });
    open(900, 5, RENDER, { id: '1', vram: '100' });
    open(901, 4, RENDER, { id: '1', vram: '100' });
    open(901, 6, 'card200', { id: '2', vram: '7' });
    expect(processesOf(FIRST)).toEqual([
      { pid: 900, memoryUsedBytes: 100 },
      { pid: 901, memoryUsedBytes: 7 },
    ]);
  });

  it('has no share when its cycles step back, and goes on from the larger value', () => {
    const collectWith = (busy: number, total: number) => {
      machine.forward(1_000);
      open(900, 4, RENDER, { id: '1', cycles: { rcs: [busy, total] } });
      return processesOf(FIRST)?.[0]?.utilization;
    };
    collectWith(500, 1_000);
    expect(collectWith(400, 2_000)).toBeUndefined();
    expect(collectWith(600, 3_000)).toEqual({ render: 0.1 });
    expect(collectWith(9_000, 4_000)).toEqual({ render: 1 });
    expect(collectWith(9_500, 4_000)).toBeUndefined();
  });

  it('of another card behind the same node is not of this card', () => {
    open(900, 4, RENDER, { id: '1', pdev: '0000:99:00.0' });
    expect(processesOf(FIRST)).toEqual([]);
  });

  it('is exact beyond 2^53 cycles', () => {
    const far = 2n ** 60n;
    open(900, 4, RENDER, { id: '1', cycles: { ccs: [far, far] } });
    processesOf(FIRST);
    machine.forward(1_000);
    open(900, 4, RENDER, { id: '1', cycles: { ccs: [far + 3n, far + 4n] } });
    expect(processesOf(FIRST)?.[0]?.utilization).toEqual({ compute: 0.75 });
  });
});

describe('the use of the engines', () => {
  const IDLE = { compute: 0, copy: 0, render: 0, video: 0, video_enhance: 0 };
  const series = (shares: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(shares).map(([engine, share]) => [`device_utilization_ratio{engine=${engine}}`, share]));

  it('is the sum over all processes, from the second read on', () => {
    open(900, 4, RENDER, { id: '1', cycles: { ccs: [0, 0] } });
    open(901, 4, RENDER, { id: '2', cycles: { ccs: [0, 0] } });
    expect(sharesOf(FIRST)).toEqual({});
    machine.forward(1_000);
    open(900, 4, RENDER, { id: '1', cycles: { ccs: [300, 1_000] } });
    open(901, 4, RENDER, { id: '2', cycles: { ccs: [200, 1_000] } });
    expect(sharesOf(FIRST)).toEqual(series({ ...IDLE, compute: 0.5 }));
  });

  it('of a class is unknown while the share of one process is unknown', () => {
    open(900, 4, RENDER, { id: '1', cycles: { ccs: [0, 0], rcs: [0, 0] } });
    sharesOf(FIRST);
    machine.forward(1_000);
    open(900, 4, RENDER, { id: '1', cycles: { ccs: [0, 1_000], rcs: [0, 1_000] } });
    open(901, 4, RENDER, { id: '2', cycles: { ccs: [900, 1_000], rcs: [0, 1_000] } });
    const { compute: _unknown, ...others } = IDLE;
    expect(sharesOf(FIRST)).toEqual(series(others));
  });

  it('is unknown until every process was searched', () => {
    for (let pid = 1_000; pid < 1_100; pid += 1) machine.link(`proc/${pid}/fd/0`, '/dev/null');
    const told = Array.from({ length: 6 }, () => {
      machine.forward(1_000);
      return Object.keys(sharesOf(FIRST)).length > 0;
    });
    // 32 of 102 processes are listed in one refresh.
    expect(told).toEqual([false, false, false, true, true, true]);
  });

  it('is 0 when every GT was in C6, whatever the processes tell', () => {
    const residency = `${directoryOf(machine, FIRST)}/tile0/gt0/gtidle/idle_residency_ms`;
    for (let pid = 1_000; pid < 1_100; pid += 1) machine.link(`proc/${pid}/fd/0`, '/dev/null');
    machine.collect();
    machine.forward(10_000);
    machine.write(residency, '9950\n');
    expect(sharesOf(FIRST)).toEqual(series(IDLE));
    machine.forward(10_000);
    machine.write(residency, '19000\n');
    expect(sharesOf(FIRST)).toEqual({});
  });

  it('is 0 when the card slept since the last read, and unknown when it was awake in between', () => {
    const power = `${directoryOf(machine, FIRST)}/power`;
    machine.collect();
    machine.write(`${power}/runtime_status`, 'suspended\n');
    machine.write(`${power}/runtime_active_time`, '500\n');
    machine.forward(10_000);
    expect(sharesOf(FIRST)).toEqual({});
    machine.forward(10_000);
    expect(sharesOf(FIRST)).toEqual(series(IDLE));
    machine.write(`${power}/runtime_active_time`, '900\n');
    machine.forward(10_000);
    expect(sharesOf(FIRST)).toEqual({});
  });

  it('and the processes are unknown in another PID namespace', () => {
    machine.remove('proc/2');
    machine.collect();
    machine.forward(1_000);
    const { problems } = machine.collect();
    expect(problems.map(({ code }) => code)).toEqual(['processes-hidden']);
    expect(processesOf(FIRST)).toBeUndefined();
    expect(sharesOf(FIRST)).toEqual({});
  });

  it('is not searched when the option turns it off', () => {
    machine.end();
    machine = simulatedMachine(1, { 'processes-per-refresh': '0' });
    open(900, 4, RENDER, { id: '1' });
    expect(processesOf(FIRST)).toBeUndefined();
    expect(machine.collect().problems).toEqual([]);
  });
});

describe('reading the clients', () => {
  function recorded(answer: (path: string) => string | undefined): string[] {
    const paths: string[] = [];
    machine.end();
    machine = simulatedMachine(2, {}, (path) => {
      paths.push(path);
      return answer(path);
    });
    return paths;
  }

  it('of a sleeping card does not happen, because it would wake the card', () => {
    const paths = recorded(() => undefined);
    open(900, 4, RENDER, { id: '1' });
    machine.write(`${directoryOf(machine, FIRST)}/power/runtime_status`, 'suspended\n');
    machine.collect();
    expect(paths.filter((path) => path.includes('/fdinfo/'))).toEqual([]);
    // The kernel has the ids of a function in memory, so they wake nothing.
    const known = ['vendor', 'class', 'device'];
    const read = paths.filter((path) => path.includes(FIRST)).map((path) => path.split('/').at(-1) ?? '');
    expect(read.filter((name) => !known.includes(name))).toEqual(['runtime_status', 'runtime_active_time']);
  });

  it('that never returns ends the reads of this card, and the card itself is still read', () => {
    const paths = recorded((path) => (path.endsWith('900/fdinfo/4') ? 'EHUNG' : undefined));
    open(900, 4, RENDER, { id: '1' });
    open(901, 4, RENDER, { id: '2' });
    open(902, 4, 'renderD329', { id: '3', pdev: SECOND });
    const { reports, problems } = machine.collect();
    expect(problems.map(({ code, device }) => [code, device])).toEqual([['clients-hang', FIRST]]);
    expect(reports.map(({ read }) => [read?.findings.length !== 0, read?.processes?.map(({ pid }) => pid)])).toEqual([
      [true, undefined],
      [true, [902]],
    ]);
    expect(paths.filter((path) => path.endsWith('901/fdinfo/4'))).toEqual([]);
  });
});
