import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { Tree } from '../../../src/host/fs/tree.ts';
import { type ProcessFacts, ProcessFactsReader } from '../../../src/probes/kit/process-facts.ts';
import { ReadingWriter } from '../../../src/probes/kit/reading-writer.ts';
import { gpuReadings, processesIn, processesOf } from '../../../src/probes/nvidia/reports.ts';
import type { ProcessSample } from '../../../src/probes/nvidia/sample.ts';
import { gpuSampleOf } from '../../../src/probes/nvidia/smi/sample.ts';
import { emptyMachine, gpuElement, type Machine } from './harness.ts';

const MIB = 1_048_576;
const POD = '5b3c8f0e-1d2a-4c6b-9e7f-0123456789ab';
const CONTAINER = '4f'.repeat(32);
const machines: Machine[] = [];
afterEach(() => {
  for (const machine of machines.splice(0)) machine.remove();
});

interface Part {
  readonly pid: string;
  readonly memory?: string;
  readonly instance?: readonly [string, string];
}

function gpuWith(...parts: readonly Part[]): readonly ProcessSample[] {
  const infos = parts.map(
    ({ pid, memory = '1 MiB', instance = ['N/A', 'N/A'] }) =>
      `<process_info><gpu_instance_id>${instance[0]}</gpu_instance_id><compute_instance_id>${instance[1]}</compute_instance_id>` +
      `<pid>${pid}</pid><type>C</type><used_memory>${memory}</used_memory></process_info>`,
  );
  return gpuSampleOf(gpuElement(`<processes>${infos.join('')}</processes>`)).processes?.list ?? [];
}

function machine(): Machine {
  const made = emptyMachine();
  machines.push(made);
  return made;
}

const factsIn = ({ host }: Machine): ((pid: number) => ProcessFacts) => {
  const reader = new ProcessFactsReader(host.proc);
  return (pid) => reader.of(pid);
};

/** Text of `/proc/<pid>/stat`. The start time is field 22. */
const stat = (pid: number, name: string, state: string, startTicks = 500): string =>
  `${pid} (${name}) ${state} ${Array.from({ length: 18 }, (_, field) => field).join(' ')} ${startTicks} 1 2 3\n`;

describe('the processes of a GPU', () => {
  it('belong to the pods and containers that their cgroups name', () => {
    const made = machine();
    made.write('proc/7/cgroup', `0::/kubepods/burstable/pod${POD}/${CONTAINER}\n`);
    expect(processesOf(gpuWith({ pid: '7', memory: '1005 MiB' }), factsIn(made))).toEqual([
      { pid: 7, memoryUsedBytes: 1005 * MIB, podUid: POD, containerId: CONTAINER },
    ]);
  });

  it('have no owner when they have ended or belong to no pod', () => {
    const made = machine();
    made.write('proc/8/cgroup', '0::/user.slice/user-1000.slice\n');
    expect(processesOf(gpuWith({ pid: '7' }, { pid: '8' }), factsIn(made))).toEqual([
      { pid: 7, memoryUsedBytes: MIB },
      { pid: 8, memoryUsedBytes: MIB },
    ]);
  });

  it('count once when they are listed for compute and for graphics', () => {
    const gpu = gpuWith(
      { pid: '7', memory: '12 MiB' },
      { pid: '8', memory: 'N/A' },
      { pid: '7', memory: '12 MiB' },
      { pid: '8', memory: '3 MiB' },
    );
    expect(processesOf(gpu, factsIn(machine()))).toEqual([
      { pid: 7, memoryUsedBytes: 12 * MIB },
      { pid: 8, memoryUsedBytes: 3 * MIB },
    ]);
  });

  it.each(['N/A', 'Insufficient Permissions', '', 'Unknown Error', '12 W', '-5 MiB', '12'])('have no memory where it says %j', (memory) => {
    expect(processesOf(gpuWith({ pid: '7', memory }), factsIn(machine()))).toEqual([{ pid: 7 }]);
  });

  it.each(['N/A', '', '0', '-1', '1.5', '7 MiB', '../../etc', '99999999999999999999'])('are left out with the pid %j', (pid) => {
    expect(processesOf(gpuWith({ pid }), factsIn(machine()))).toEqual([]);
  });

  it('are limited to one instance on request', () => {
    const gpu = gpuWith(
      { pid: '1', instance: ['2', '0'] },
      { pid: '2', instance: ['2', '1'] },
      { pid: '3', instance: ['9', '0'] },
      { pid: '4' },
    );
    const factsOf = factsIn(machine());
    const pids = (gpuInstance: string, computeInstance: string): readonly number[] =>
      processesOf(processesIn(gpu, { gpuInstance, computeInstance }), factsOf).map(({ pid }) => pid);
    expect(processesOf(gpu, factsOf).map(({ pid }) => pid)).toEqual([1, 2, 3, 4]);
    expect(pids('2', '0')).toEqual([1]);
    expect(pids('2', '1')).toEqual([2]);
    expect(pids('9', '1')).toEqual([]);
  });
});

describe('the name of a process', () => {
  it.each([
    ['python', 'python'],
    ['a) S (b', 'a) S (b'],
    ['x) D 1 2 3 4 5', 'x) D 1 2 3 4 5'],
    ['red \u001b[31m\u0007', 'red  [31m '],
    ['two\\nlines', 'two lines'],
    ['back\\\\slash', 'back\\slash'],
    ['sixteen characters', 'sixteen charact'],
    ['', undefined],
  ])('%j of the kernel is %j', (comm, name) => {
    const made = machine();
    made.write('proc/7/stat', stat(7, comm, 'S'));
    expect(processesOf(gpuWith({ pid: '7' }), factsIn(made))).toEqual([{ pid: 7, memoryUsedBytes: MIB, ...(name && { name }) }]);
  });

  it('follows a process that renames itself', () => {
    const made = machine();
    const reader = new ProcessFactsReader(made.host.proc);
    const names = ['python', 'ray::Train'].map((name) => {
      made.write('proc/7/stat', stat(7, name, 'R'));
      reader.renew();
      return processesOf(gpuWith({ pid: '7' }), (pid) => reader.of(pid))[0]?.name;
    });
    expect(names).toEqual(['python', 'ray::Train']);
  });

  it.each(['', '7', '7 (python', '7 python S 1', '7 (python) S 1 2', '7 (python) 7 1 2 3'])('is unknown with the text %j', (text) => {
    const made = machine();
    made.write('proc/7/stat', text);
    expect(processesOf(gpuWith({ pid: '7' }), factsIn(made))).toEqual([{ pid: 7, memoryUsedBytes: MIB }]);
  });

  it('is that of the running kernel', () => {
    const own = readFileSync('/proc/self/comm', 'utf8').trim();
    const reader = new ProcessFactsReader(new Tree('/proc'));
    expect(reader.of(process.pid).own?.name).toBe(own);
  });
});

describe('a process in state D', () => {
  it.each([
    ['D', true],
    ['S', undefined],
    ['R', undefined],
    ['Z', undefined],
  ])('%s: stuck is %s, whatever its name contains', (state, isStuck) => {
    const made = machine();
    made.write('proc/7/stat', stat(7, `a) ${state === 'D' ? 'S' : 'D'} 1`, state));
    expect(processesOf(gpuWith({ pid: '7' }), factsIn(made))[0]?.isStuck).toBe(isStuck);
  });
});

describe('the number of processes', () => {
  const count = (content: string): number | bigint | undefined => {
    const writer = new ReadingWriter();
    gpuReadings(writer, gpuSampleOf(gpuElement(content)), { index: 0 });
    return [...writer.end()].find(({ metric }) => metric === 'device_nvidia_processes')?.value;
  };

  it.each<[string, number | undefined]>([
    ['<processes></processes>', 0],
    ['<processes/>', 0],
    ['<processes>\n\t\t</processes>', 0],
    ['<processes>N/A</processes>', undefined],
    ['<processes>Insufficient Permissions</processes>', undefined],
    ['', undefined],
    ['<processes><process_info><pid>7</pid></process_info><process_info><pid>7</pid></process_info></processes>', 1],
    ['<processes><process_info><pid>N/A</pid></process_info><process_info><pid>N/A</pid></process_info></processes>', 2],
  ])('%s: %s', (content, expected) => {
    expect(count(content)).toBe(expected);
  });
});
