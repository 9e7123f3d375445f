// Project: programs. It waits until calls that hang are given up.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type ServedAgent, serve } from '../../support/serve.ts';
import { type LiveNode, liveNode } from './scripted-machine.ts';
import { hopper, type ScriptedGpu } from './scripted-script.ts';

let node: LiveNode | undefined;
let agent: ServedAgent | undefined;
afterEach(async () => {
  await agent?.stop('SIGKILL');
  node?.remove();
});

const ids = [0, 1].map((index) => String(hopper(index).values.uuid));
const temperature = (page: string, index: number): string | undefined =>
  new RegExp(`^device_temperature_celsius\\{[^}]*device="${ids[index]}"[^}]*sensor="gpu"[^}]*\\} (\\S+)$`, 'm').exec(page)?.[1];
const hung = (page: string): boolean => /probe_hung\{family="nvidia"\} 1|hung\{[^}]*nvidia[^}]*\} 1/.test(page);

async function start(gpus: readonly ScriptedGpu[]): Promise<{ readonly node: LiveNode; readonly agent: ServedAgent }> {
  node = liveNode({ gpus });
  const { root, library } = node;
  for (const name of ['kmsg', 'nvidiactl']) writeFileSync(join(root, 'dev', name), '');
  agent = await serve([
    '--state.file=',
    '--refresh.interval=1s',
    '--refresh.timeout=1s',
    '--refresh.stale-after=4s',
    `--path.sysfs=${root}/sys`,
    `--path.procfs=${root}/proc`,
    `--path.dev=${root}/dev`,
    `--podresources.socket=${root}/none.sock`,
    '--podresources.checkpoint=',
    '--probe.nvidia.source=nvml',
    `--probe.nvidia.nvml-library=${library}`,
  ]);
  return { node, agent };
}

describe('a GPU whose library call hangs', () => {
  it('is skipped while the others are read, and is read again after the call returns', async () => {
    const { node, agent } = await start([hopper(0), hopper(1)]);
    await agent.until('both GPUs', (page) => temperature(page, 0) === '41' && temperature(page, 1) === '42');
    const sick: ScriptedGpu = { ...hopper(1), lines: ['hang.nvmlDeviceGetUtilizationRates = 1'] };
    node.write({ gpus: [hopper(0, { temperature: 50 }), sick] });
    // A new thread reads the healthy GPU. The other GPU becomes stale, but is not missing.
    const during = await agent.until('the sound GPU alone', (page) => temperature(page, 0) === '50' && temperature(page, 1) === undefined);
    expect(hung(during)).toBe(true);
    node.write({ gpus: [hopper(0, { temperature: 51 }), hopper(1)] });
    await agent.until('the sound GPU, read on', (page) => temperature(page, 0) === '51');
    writeFileSync(`${node.library}.script.released`, '');
    const after = await agent.until('both GPUs again', (page) => temperature(page, 1) === '42' && !hung(page));
    expect(temperature(after, 0)).toBe('51');
  });
});

describe('a GPU that hangs the call that finds it', () => {
  it.each(['nvmlDeviceGetHandleByIndex_v2', 'nvmlDeviceGetPciInfo_v3', 'nvmlDeviceGetUUID', 'nvmlDeviceRegisterEvents'])(
    'in %s is left out from the start on',
    async (symbol) => {
      const { node, agent } = await start([hopper(0), { ...hopper(1), lines: [`hang.${symbol} = 1`] }]);
      const during = await agent.until('the sound GPU', (page) => temperature(page, 0) === '41');
      expect(temperature(during, 1)).toBeUndefined();
      expect(hung(during)).toBe(true);
      node.write({ gpus: [hopper(0), hopper(1)] });
      writeFileSync(`${node.library}.script.released`, '');
      await agent.until('both', (page) => temperature(page, 0) === '41' && temperature(page, 1) === '42' && !hung(page));
    },
  );
});

describe('a call for events that never returns', () => {
  it('is not repeated, and the GPUs are still read', async () => {
    const { node, agent } = await start([hopper(0), hopper(1)]);
    await agent.until('both GPUs', (page) => temperature(page, 0) === '41' && temperature(page, 1) === '42');
    node.write({ lines: ['hang.nvmlEventSetWait_v2 = 1'], gpus: [hopper(0, { temperature: 50 }), hopper(1, { temperature: 51 })] });
    await agent.until('the call that hangs', hung);
    await agent.until('both, read on', (page) => temperature(page, 0) === '50' && temperature(page, 1) === '51');
    writeFileSync(`${node.library}.script.released`, '');
    await agent.until('nothing hangs', (page) => !hung(page));
  });
});
