import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { failing } from '../../../src/host/recorded/replayed-tree.ts';
import type { Collection, DeviceProcess } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';
import { parseDrmClient } from '../../../src/probes/amdgpu/processes.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type ProbedMachine, reportOf, simulatedMachine } from './harness.ts';

const FIRST = '0020:10:00.0';
const SECOND = '0020:11:00.0';
const POD = '1f0c2a4e-7b3d-4c59-9a86-0d5e7f1b2c3d';
const CONTAINER = 'ab'.repeat(32);

let machine: ProbedMachine;
beforeEach(() => {
  machine = simulatedMachine(2);
});
afterEach(() => machine.end());

const processesOf = (address: string): readonly DeviceProcess[] | undefined => reportOf(machine.collect(), address).processes;

interface Client {
  readonly id?: string;
  readonly vram?: string;
  readonly engines?: Readonly<Record<string, number | bigint>>;
}

/** A process with an open render node. */
function open(pid: number, fd: number, minor: number, { id, vram, engines = {} }: Client): void {
  machine.write(
    `proc/${pid}/fdinfo/${fd}`,
    [
      'pos:\t0',
      'drm-driver:\tamdgpu',
      'drm-pdev:\t0020:10:00.0',
      ...(id === undefined ? [] : [`drm-client-id:\t${id}`]),
      ...(vram === undefined ? [] : [`drm-memory-vram:\t${vram}`]),
      ...Object.entries(engines).map(([engine, ns]) => `drm-engine-${engine}:\t${ns} ns`),
      '',
    ].join('\n'),
  );
  machine.remove(`proc/${pid}/fd/${fd}`);
  machine.link(`proc/${pid}/fd/${fd}`, `/dev/dri/renderD${minor}`);
}

/** The files of the kernel about a process of a pod. */
function inPod(pid: number, name: string, state = 'S'): void {
  machine.write(
    `proc/${pid}/cgroup`,
    `0::/kubepods.slice/kubepods-pod${POD.replaceAll('-', '_')}.slice/cri-containerd-${CONTAINER}.scope\n`,
  );
  machine.write(`proc/${pid}/stat`, `${pid} (${name}) ${state} 1 ${pid} ${pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n`);
}

describe('a client of a render node', () => {
  it('has memory at once, and shares of time from the second read on', () => {
    open(900, 4, 128, { id: '1', vram: '2068 KiB', engines: { gfx: 1_000_000_000 } });
    inPod(900, 'blender');
    const owner = { podUid: POD, containerId: CONTAINER };
    expect(processesOf(FIRST)).toEqual([{ pid: 900, memoryUsedBytes: 2_117_632, name: 'blender', ...owner }]);
    machine.forward(10_000);
    open(900, 4, 128, { id: '1', vram: '1024 KiB', engines: { gfx: 3_500_000_000, compute: 500_000_000, enc_1: 1_000_000_000 } });
    expect(processesOf(FIRST)).toEqual([
      { pid: 900, memoryUsedBytes: 1_048_576, utilization: { gpu: 0.3, encoder: 0.1 }, name: 'blender', ...owner },
    ]);
    expect(processesOf(SECOND)).toEqual([]);
  });

  it('counts once when a descriptor is copied or a child inherits it', () => {
    open(900, 4, 128, { id: '1', vram: '100' });
    open(900, 5, 128, { id: '1', vram: '100' });
    open(901, 4, 128, { id: '1', vram: '100' });
    open(901, 6, 128, { id: '2', vram: '7' });
    expect(processesOf(FIRST)).toEqual([
      { pid: 900, memoryUsedBytes: 100 },
      { pid: 901, memoryUsedBytes: 7 },
    ]);
  });

  it('has no share when its time steps back, and never more than the whole', () => {
    open(900, 4, 128, { id: '1', engines: { gfx: 5_000, dma: 0 } });
    processesOf(FIRST);
    machine.forward(1_000);
    open(900, 4, 128, { id: '1', engines: { gfx: 4_000, dma: 9_000_000_000 } });
    expect(processesOf(FIRST)).toEqual([{ pid: 900, utilization: { dma: 1 } }]);
  });

  it('is stuck when it waits in the kernel in two reads', () => {
    open(900, 4, 128, { id: '1' });
    inPod(900, 'train', 'D');
    expect(processesOf(FIRST)?.[0]?.isStuck).toBeUndefined();
    expect(processesOf(FIRST)?.[0]?.isStuck).toBe(true);
    inPod(900, 'train', 'S');
    expect(processesOf(FIRST)?.[0]?.isStuck).toBeUndefined();
  });

  it('is forgotten when the process ends', () => {
    open(900, 4, 128, { id: '1' });
    expect(processesOf(FIRST)).toHaveLength(1);
    machine.remove('proc/900');
    expect(processesOf(FIRST)).toEqual([]);
    machine.forward(30_000);
    expect(processesOf(FIRST)).toEqual([]);
  });

  it('is found among many processes in turn, and a new process first', () => {
    for (let pid = 1_000; pid < 1_100; pid += 1) machine.link(`proc/${pid}/fd/0`, '/dev/null');
    const search = (times: number): void => {
      for (let n = 0; n < times; n += 1) {
        machine.collect();
        machine.forward(30_000);
      }
    };
    search(7);
    open(5_000, 3, 129, { id: '9' });
    expect(processesOf(SECOND)).toEqual([{ pid: 5_000 }]);
    open(1_050, 3, 129, { id: '10' });
    search(14);
    expect(processesOf(SECOND)?.map(({ pid }) => pid)).toEqual([1_050, 5_000]);
  });
});

describe('a compute process', () => {
  const KFD = 'sys/class/kfd/kfd/proc';

  it('has the memory of KFD on the GPUs that it uses', () => {
    machine.write(`${KFD}/4711/vram_10000`, '4096\n');
    machine.write(`${KFD}/4711/vram_10001`, '0\n');
    inPod(4_711, 'python3');
    expect(processesOf(FIRST)).toEqual([{ pid: 4_711, memoryUsedBytes: 4_096, name: 'python3', podUid: POD, containerId: CONTAINER }]);
    expect(processesOf(SECOND)).toEqual([]);
  });

  it('without memory is there when it has a queue', () => {
    machine.write(`${KFD}/4711/vram_10000`, '0\n');
    machine.write(`${KFD}/4711/vram_10001`, '0\n');
    machine.write(`${KFD}/4711/queues/0/gpuid`, '10001\n');
    expect(processesOf(FIRST)).toEqual([]);
    expect(processesOf(SECOND)).toEqual([{ pid: 4_711, memoryUsedBytes: 0 }]);
  });

  it('with a render node does not count its memory twice', () => {
    machine.write(`${KFD}/4711/vram_10000`, '4096\n');
    open(4_711, 3, 128, { id: '5', vram: '1 KiB' });
    expect(processesOf(FIRST)).toEqual([{ pid: 4_711, memoryUsedBytes: 4_096 }]);
  });
});

describe('fdinfo', () => {
  it('of another driver is no client', () => {
    expect(parseDrmClient('drm-driver:\tamdxdna_accel_driver\ndrm-client-id:\t76\ndrm-engine-npu-amdxdna:\t0 ns\n')).toBeUndefined();
  });

  it('has blanks before the tab after some keys, and numbers without a unit in bytes', () => {
    const client = parseDrmClient('drm-driver:\tamdgpu\ndrm-memory-gtt: \t8192 KiB\ndrm-memory-vram: \t2068 KiB\ndrm-resident-vram:\t77\n');
    expect(client?.memoryBytes).toBe(77);
  });
});

describe('a process whose open files are hidden', () => {
  /** What a look tells of the first card, with the kernel's refusal for each process. */
  function look(options: Readonly<Record<string, string>>) {
    const pids = readdirSync(`${machine.root}/proc`).filter((name) => existsSync(`${machine.root}/proc/${name}/fd`));
    for (const directory of pids.map((pid) => `${machine.root}/proc/${pid}/fd`)) {
      rmSync(directory, { recursive: true });
      writeFileSync(directory, failing('EACCES'));
    }
    const roots = {
      sysfs: `${machine.root}/sys`,
      procfs: `${machine.root}/proc`,
      dev: `${machine.root}/dev`,
      kmsg: '',
      isReplay: true,
    } as const;
    const probe = family.createProbe(createHost(roots, systemClock), probeOptions(family, options));
    const collection = probe.collect() as Collection;
    probe.close?.();
    return { processes: reportOf(collection, FIRST).processes, problems: collection.problems.map(({ code }) => code) };
  }

  it('is a problem while processes are searched, and leaves unknown who uses a card without compute', () => {
    open(900, 4, 128, { id: '1', vram: '2068 KiB' });
    machine.remove('sys/class/kfd');
    expect(look({})).toEqual({ processes: undefined, problems: ['processes-hidden'] });
    expect(look({ 'processes-per-search': '0' })).toEqual({ processes: undefined, problems: [] });
  });
});
