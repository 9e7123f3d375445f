import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import type { FamilyRunner } from '../../src/supervisor/family-runner.ts';
import type { ReaderPool } from '../../src/supervisor/reader-pool.ts';
import { liveNode } from '../probes/nvidia/scripted-machine.ts';
import { hopper } from '../probes/nvidia/scripted-script.ts';
import { probeOptions } from '../support/probe-options.ts';

const DIST = join(process.cwd(), 'dist');
const { FamilyRunner: Runner } = (await import(`${DIST}/supervisor/family-runner.js`)) as { FamilyRunner: typeof FamilyRunner };
const { ReaderPool: Pool } = (await import(`${DIST}/supervisor/reader-pool.js`)) as { ReaderPool: typeof ReaderPool };

/** Two GPUs of the library in the place of NVIDIA's, with lines of the second one and of all. */
function started(lines: readonly string[], ofAll = '') {
  const node = liveNode({ gpus: [hopper(0), { ...hopper(1), lines }] });
  if (ofAll !== '') writeFileSync(`${node.library}.script`, ofAll);
  const readers = new Pool(systemClock);
  onTestFinished(async () => {
    await readers.close(1_000);
    node.remove();
  });
  const crashes: string[] = [];
  const runner: FamilyRunner = new Runner(
    {
      family: 'nvidia',
      options: probeOptions(family, { source: 'nvml', 'nvml-library': node.library }),
      roots: { sysfs: join(node.root, 'sys'), procfs: join(node.root, 'proc'), dev: join(node.root, 'dev') },
      timeoutMs: 60_000,
      canBeSlow: family.canBeSlow,
    },
    { clock: systemClock, readers, events: { changed() {}, wake() {}, crashed: (_, message) => crashes.push(message) } },
  );
  const read = (): string[] =>
    (runner.latest()?.collection.reports ?? []).flatMap(({ device, read: own }) =>
      own === undefined ? [] : [device.pciAddress ?? device.id],
    );
  return { node, runner, crashes, read };
}

it.each([
  ['aborts', 1, 'SIGABRT'],
  ['ends with a segmentation fault', 2, 'SIGSEGV'],
  ['exits', 3, 'exit status 3'],
])('a library that %s in a call costs the GPU of the call, and the call is named', async (_, way, how) => {
  const { node, runner, crashes, read } = started([`end.nvmlDeviceGetMemoryInfo_v2 = ${way}`]);
  await runner.refresh();
  expect(read()).toEqual(['0000:3b:00.0']);
  const message = `the reader ended in ${node.root}/sys/bus/pci/devices/0000:3c:00.0/nvml/nvmlDeviceGetMemoryInfo_v2: ${how}`;
  expect(runner.state()).toMatchObject({ succeeded: true, problems: expect.arrayContaining([{ code: 'reader-ended', message }]) });
  expect(crashes).toEqual([message]);
  await runner.refresh();
  expect(read(), 'it is left out from then on').toEqual(['0000:3b:00.0']);
  expect(crashes).toHaveLength(1);
});

it('a library that crashes when it starts is left alone, and nothing else ends', async () => {
  const { node, runner, crashes, read } = started([], 'end.nvmlInit_v2 = 1\n');
  await runner.refresh();
  await runner.refresh();
  expect(read()).toEqual([]);
  expect(crashes).toEqual(['the reader ended in nvml/nvmlInit_v2: SIGABRT']);
  expect(runner.state().problems.map(({ code }) => code)).toContain('reader-ended');
  expect(node.root).not.toBe('');
});
