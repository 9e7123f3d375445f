import { afterEach, describe, expect, it } from 'vitest';
import { gpuSampleOf } from '../../../src/probes/nvidia/document-sample.ts';
import { processesOf } from '../../../src/probes/nvidia/processes.ts';
import { gpuReadings } from '../../../src/probes/nvidia/readings.ts';
import type { ProcessSample } from '../../../src/probes/nvidia/sample.ts';
import { emptyMachine, gpuElement, type Machine } from './machines.ts';

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

describe('the processes of a GPU', () => {
  it('belong to the pods and containers that their cgroups name', () => {
    const made = machine();
    made.write('proc/7/cgroup', `0::/kubepods/burstable/pod${POD}/${CONTAINER}\n`);
    expect(processesOf(gpuWith({ pid: '7', memory: '1005 MiB' }), made.host.proc)).toEqual([
      { pid: 7, memoryUsedBytes: 1005 * MIB, podUid: POD, containerId: CONTAINER },
    ]);
  });

  it('have no owner when they have ended or belong to no pod', () => {
    const made = machine();
    made.write('proc/8/cgroup', '0::/user.slice/user-1000.slice\n');
    expect(processesOf(gpuWith({ pid: '7' }, { pid: '8' }), made.host.proc)).toEqual([
      { pid: 7, memoryUsedBytes: MIB },
      { pid: 8, memoryUsedBytes: MIB },
    ]);
  });

  it('count once with the larger value when they are listed for compute and for graphics', () => {
    const gpu = gpuWith(
      { pid: '7', memory: '10 MiB' },
      { pid: '8', memory: 'N/A' },
      { pid: '7', memory: '12 MiB' },
      { pid: '8', memory: '3 MiB' },
    );
    expect(processesOf(gpu, machine().host.proc)).toEqual([
      { pid: 7, memoryUsedBytes: 12 * MIB },
      { pid: 8, memoryUsedBytes: 3 * MIB },
    ]);
  });

  it.each(['N/A', 'Insufficient Permissions', '', 'Unknown Error', '12 W', '-5 MiB', '12'])('have no memory where it says %j', (memory) => {
    expect(processesOf(gpuWith({ pid: '7', memory }), machine().host.proc)).toEqual([{ pid: 7 }]);
  });

  it.each(['N/A', '', '0', '-1', '1.5', '7 MiB', '../../etc', '99999999999999999999'])('are left out with the pid %j', (pid) => {
    expect(processesOf(gpuWith({ pid }), machine().host.proc)).toEqual([]);
  });

  it('are limited to one instance on request', () => {
    const gpu = gpuWith(
      { pid: '1', instance: ['2', '0'] },
      { pid: '2', instance: ['2', '1'] },
      { pid: '3', instance: ['9', '0'] },
      { pid: '4' },
    );
    const { proc } = machine().host;
    const pids = (gpuInstance: string, computeInstance: string): readonly number[] =>
      processesOf(gpu, proc, { gpuInstance, computeInstance }).map(({ pid }) => pid);
    expect(processesOf(gpu, proc).map(({ pid }) => pid)).toEqual([1, 2, 3, 4]);
    expect(pids('2', '0')).toEqual([1]);
    expect(pids('2', '1')).toEqual([2]);
    expect(pids('9', '1')).toEqual([]);
  });
});

describe('the number of processes', () => {
  const count = (content: string): number | bigint | undefined =>
    gpuReadings(gpuSampleOf(gpuElement(content)), { index: 0 }).find(({ metric }) => metric === 'device_nvidia_processes')?.value;

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
