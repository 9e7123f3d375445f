import { describe, expect, it } from 'vitest';
import type { CommandResult } from '../../../src/host/process/command.ts';
import { problems } from '../../../src/probes/nvidia/declaration.ts';
import { readSmi } from '../../../src/probes/nvidia/smi/source.ts';
import { documentText, gpuText } from './harness.ts';

const result = (part: Partial<CommandResult>): CommandResult => ({ stdout: '', stderr: '', ...part });
const COMMUNICATE =
  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.";

describe('a command that gave no document', () => {
  it.each<[string, Partial<CommandResult>, string]>([
    ['no program', { failure: 'not-found' }, 'smi-not-found'],
    ['a program that may not run', { failure: 'permission' }, 'smi-not-executable'],
    ['a program that is being replaced', { failure: 'failed-to-start' }, 'smi-failed'],
    ['no end in time', { failure: 'timeout', signal: 'SIGKILL' }, 'smi-timeout'],
    ['no end at all', { failure: 'timeout', stillRunning: Promise.resolve() }, 'smi-unreaped'],
    ['output without end', { failure: 'too-large', signal: 'SIGTERM' }, 'smi-too-large'],
    ['no kernel driver', { stdout: `${COMMUNICATE}\n\n`, exitCode: 9 }, 'driver-not-loaded'],
    ['no kernel driver, said on the other stream', { stderr: COMMUNICATE, exitCode: 255 }, 'driver-not-loaded'],
    ['status 9 without a word', { exitCode: 9 }, 'driver-not-loaded'],
    [
      'a library of another version',
      { stdout: 'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.54\n', exitCode: 18 },
      'driver-library-mismatch',
    ],
    [
      'the same with the status of another driver',
      { stdout: 'failed to initialize nvml: driver/library version mismatch', exitCode: 1 },
      'driver-library-mismatch',
    ],
    ['a device cgroup that was rewritten', { stdout: 'Failed to initialize NVML: Unknown Error\n', exitCode: 255 }, 'driver-unreachable'],
    ['no rights', { stdout: 'Failed to initialize NVML: Insufficient Permissions\n', exitCode: 4 }, 'no-permission'],
    [
      'a driver that is not loaded by its NVML name',
      { stdout: 'Failed to initialize NVML: Driver Not Loaded', exitCode: 9 },
      'driver-not-loaded',
    ],
    ['no library', { stdout: "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", exitCode: 12 }, 'library-not-found'],
    ['no GPU', { stdout: 'No devices were found\n', exitCode: 6 }, 'no-devices'],
    ['power cables', { exitCode: 8 }, 'insufficient-power'],
    [
      'a GPU that stops the whole call',
      {
        stdout: 'Unable to determine the device handle for GPU 0000:CB:00.0: GPU is lost.  Reboot the system to recover this GPU\n',
        exitCode: 15,
      },
      'gpu-unreadable',
    ],
    ['status 15 without a word', { exitCode: 15 }, 'gpu-unreadable'],
    ['status 255 without a word', { exitCode: 255 }, 'smi-failed'],
    ['a crash', { signal: 'SIGSEGV' }, 'smi-failed'],
    ['a usage error', { stdout: 'Invalid combination of input arguments. Please run nvidia-smi -h for help.', exitCode: 2 }, 'smi-failed'],
    ['nothing and success', { exitCode: 0 }, 'smi-garbage'],
    ['a table', { stdout: '| NVIDIA-SMI 525 |', exitCode: 0 }, 'smi-garbage'],
    ['half a document', { stdout: documentText(gpuText()).slice(0, 200), exitCode: 0 }, 'smi-truncated'],
    ['half a document of a command that was killed', { stdout: documentText(gpuText()).slice(0, 200), signal: 'SIGKILL' }, 'smi-truncated'],
    ['broken XML', { stdout: documentText('<gpu id="1">'), exitCode: 0 }, 'smi-garbage'],
  ])('%s', (_, part, code) => {
    const { problem, log } = readSmi(result(part));
    expect(log).toBeUndefined();
    expect(problem?.code).toBe(code);
    expect(problem?.message).not.toBe('');
    expect(problems.map((spec) => spec.code)).toContain(problem?.code);
  });

  it('ignores a complete document of a command that was killed', () => {
    expect(readSmi(result({ stdout: documentText(gpuText()), failure: 'timeout', signal: 'SIGKILL' })).problem?.code).toBe('smi-timeout');
  });

  it('keeps a long first line short', () => {
    expect(readSmi(result({ stdout: 'x'.repeat(10_000), exitCode: 1 })).problem?.message.length).toBeLessThan(300);
  });
});

describe('a command that gave a document', () => {
  it.each([0, 8, 14, 15, 255])('is valid with status %d', (exitCode) => {
    const smi = readSmi(result({ stdout: documentText(gpuText()), stderr: 'aside\n', exitCode }));
    expect(smi.problem).toBeUndefined();
    expect(smi.surplus).toBe('aside');
  });
});
