import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TroubledNode } from '../e2e/troubled-node.ts';
import { type BuiltDetector, buildDetector, Detector } from './support/node-problem-detector.ts';

const WAIT = { interval: 200 };
/** So that a read on a busy machine does not count as hung. */
const PATIENT = [4_000, 6_000] as const;
/** Choices of `TroubledNode.act`. */
const TO = { up: 0, down: 0.3, gone: 0.6, hung: 0.9 } as const;
/** Type of each condition and reason while it holds. */
const CONDITIONS = { DevicesUnhealthy: 'DeviceIsUnhealthy', DevicesUnknown: 'DeviceIsUnknown', DevicesMissing: 'DeviceIsMissing' } as const;
const NONE = { DevicesUnhealthy: 0, DevicesUnknown: 0, DevicesMissing: 0 };

let built: BuiltDetector;
let troubled: TroubledNode | undefined;
let detector: Detector | undefined;
beforeAll(async () => {
  built = await buildDetector();
});
afterEach(async () => {
  await detector?.stop();
  await troubled?.node.stop();
  detector = undefined;
  troubled = undefined;
});

/** The shipped configurations with another path of the program, and asked more often. */
function configurations(root: string): readonly string[] {
  const program = join(root, 'bin/device-agent');
  const words = `"${process.execPath}" "${resolve('dist/cli/main.js')}" "$@" --web.listen-address=127.0.0.1:0 --state.file=${root}/state/health.json`;
  writeFileSync(program, `#!/bin/sh\nexec ${words}\n`);
  chmodSync(program, 0o755);
  return readdirSync('deploy/node-problem-detector').map((name) => {
    const shipped = readFileSync(join('deploy/node-problem-detector', name), 'utf8');
    writeFileSync(join(root, name), shipped.replaceAll('/usr/local/bin/device-agent', program).replace('"60s"', '"1s"'));
    return join(root, name);
  });
}

/** Whether each condition of the node holds. */
async function conditions(): Promise<Readonly<Record<string, number | undefined>>> {
  const asked = Object.entries(CONDITIONS).map(async ([type, reason]) => [type, await detector?.value('problem_gauge', { type, reason })]);
  return Object.fromEntries(await Promise.all(asked));
}

/** A node whose devices are well, and a detector that has found them so. */
async function started(program: string): Promise<[TroubledNode, Detector]> {
  troubled = new TroubledNode(...PATIENT);
  const agent = await troubled.node.start();
  await agent.until('read', (page) => /^device_healthy\{.*device="mlx5_2".*\} 1$/m.test(page));
  detector = await Detector.start(program, configurations(troubled.node.root));
  await expect.poll(conditions, WAIT).toEqual(NONE);
  return [troubled, detector];
}

describe('node-problem-detector with the shipped configurations', () => {
  it('sets and clears one condition for each kind of trouble', async ({ skip }) => {
    if ('missing' in built) return skip(`node-problem-detector cannot be built: ${built.missing}`);
    [troubled, detector] = await started(built.path);
    troubled.act('mlx5_1', TO.down);
    await expect.poll(conditions, WAIT).toEqual({ ...NONE, DevicesUnhealthy: 1 });
    expect(detector.log()).toContain('infiniband/mlx5_1 unhealthy, PortDown/1 (LinkPolling): port 1 is down');
    await expect.poll(() => detector?.value('problem_counter', { reason: 'DeviceNotHealthy' }), WAIT).toBeGreaterThan(0);
    troubled.act('mlx5_1', TO.up);
    await expect.poll(conditions, WAIT).toEqual(NONE);
    troubled.act('mlx5_0', TO.hung);
    await expect.poll(conditions, WAIT).toEqual({ ...NONE, DevicesUnknown: 1 });
    troubled.act('mlx5_0', TO.up);
    await expect.poll(conditions, WAIT).toEqual(NONE);
    troubled.act('mlx5_2', TO.gone);
    await expect.poll(conditions, WAIT).toEqual({ DevicesUnhealthy: 1, DevicesUnknown: 0, DevicesMissing: 1 });
    troubled.act('mlx5_2', TO.up);
    await expect.poll(conditions, WAIT).toEqual(NONE);
  });

  it('knows nothing while no agent answers, and makes no event of that', async ({ skip }) => {
    if ('missing' in built) return skip(`node-problem-detector cannot be built: ${built.missing}`);
    [troubled, detector] = await started(built.path);
    const before = await detector.value('problem_counter', { reason: 'DeviceNotHealthy' });
    await troubled.node.agent?.stop();
    for (const type of Object.keys(CONDITIONS))
      await expect
        .poll(() => detector?.log(), WAIT)
        .toMatch(new RegExp(`condition ${type} is now: Unknown, reason: DeviceAgentCheck, .*no agent answers`));
    expect(await detector.value('problem_counter', { reason: 'DeviceNotHealthy' })).toBe(before);
    await troubled.node.startAgent();
    for (const type of Object.keys(CONDITIONS))
      await expect.poll(() => detector?.log().split(`condition ${type} is now: Unknown`).at(-1), WAIT).toContain(`${type} is now: False`);
    expect(await conditions()).toEqual(NONE);
  });
});
