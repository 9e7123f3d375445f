import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeState } from '../../src/health/journal/state-file.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { PROGRAM } from '../support/program.ts';
import { ServedNode } from './served-node.ts';

const BOOT = '0d5e3b1c-5a0e-4bfa-9a53-52d5a1c5b0de';

const HCA = 'example.com/hca';
let node: ServedNode;
/** Directories of the two adapters as the kernel has them, by the first name. */
let homes: Record<string, string>;

beforeAll(async () => {
  node = new ServedNode({
    family: infiniband,
    counts: { infiniband: 2 },
    resource: HCA,
    config: { plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] } },
    flags: ['--refresh.interval=200ms'],
  });
  mkdirSync(join(node.root, 'proc/sys/kernel/random'), { recursive: true });
  writeFileSync(join(node.root, 'proc/sys/kernel/random/boot_id'), `${BOOT}\n`);
  homes = Object.fromEntries(['mlx5_0', 'mlx5_1'].map((name) => [name, join(node.root, dirname(node.file(`/${name}/node_guid`)))]));
  await node.start();
});
afterAll(async () => {
  await node.stop();
});

/** Swaps the names of the two adapters, as udev does when their drivers are loaded in another order. */
function swap(): void {
  const [a, b] = ['mlx5_0', 'mlx5_1'].map((name) => readlinkSync(join(node.root, 'sys/class/infiniband', name))) as [string, string];
  const inTree = (link: string): string => join(node.root, 'sys/class/infiniband', link);
  const [ofA, ofB] = [join(dirname(a), 'mlx5_1'), join(dirname(b), 'mlx5_0')];
  renameSync(inTree(a), inTree(ofA));
  renameSync(inTree(b), inTree(ofB));
  for (const [name, link] of Object.entries({ mlx5_0: ofB, mlx5_1: ofA })) {
    rmSync(join(node.root, 'sys/class/infiniband', name));
    symlinkSync(link, join(node.root, 'sys/class/infiniband', name));
  }
}

const isSick = (name: string) => (page: string) =>
  page.includes(`device_health{device="${name}",state="degraded"} 1`) ||
  page.includes(`device_health{device="${name}",state="unhealthy"} 1`);
const isSound = (name: string) => (page: string) => page.includes(`device_health{device="${name}",state="healthy"} 1`);

function accept(...args: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [PROGRAM, 'health', 'accept', ...args, `--state.file=${node.root}/state/health.json`],
    { encoding: 'utf8' },
  );
  return { status, text: stdout + stderr };
}

it('a fault follows the adapter to another name, and over a restart; a person ends it when nothing shows it any more', async () => {
  const { agent } = node;
  if (agent === undefined) throw new Error('no agent');
  await agent.until('both are sound', (page) => isSound('mlx5_0')(page) && isSound('mlx5_1')(page));
  const counter = join(homes.mlx5_0 as string, 'ports/1/counters/local_link_integrity_errors');
  writeFileSync(counter, '7\n');
  await agent.until('the first one is sick', isSick('mlx5_0'));
  expect(accept('mlx5_0', '--why', 'no reason')).toMatchObject({
    status: 2,
    text: expect.stringContaining('infiniband/mlx5_0 has no unverified condition'),
  });

  swap();
  const page = await agent.until('the second name is that of the sick one', (text) => isSick('mlx5_1')(text) && isSound('mlx5_0')(text));
  expect(page).toContain('device_health_condition{device="mlx5_1",condition="LocalLinkIntegrity"');
  const renamed = async (): Promise<readonly string[]> =>
    (await node.events()).flatMap(({ transition, was, device }) => (transition === 'renamed' ? [`${was} ${device}`] : [])).sort();
  await expect.poll(renamed).toEqual(['infiniband/mlx5_0 infiniband/mlx5_1', 'infiniband/mlx5_1 infiniband/mlx5_0']);

  // The file that shows the fault is gone, and the agent starts anew.
  rmSync(join(dirname(homes.mlx5_0 as string), 'mlx5_1/ports/1/counters/local_link_integrity_errors'));
  await agent.stop('SIGKILL');
  const again = await node.startAgent();
  await again.until('it is still sick', isSick('mlx5_1'));
  await again.until('it was read', (text) => text.includes('device_last_read_timestamp_seconds{device="mlx5_1"}'));
  await expect
    .poll(async () => accept('mlx5_1', 'LocalLinkIntegrity', '--why', 'tested by the maker'))
    .toEqual({ status: 0, text: 'infiniband/mlx5_1: LocalLinkIntegrity/1 accepted\n' });
  await again.until('it is sound', isSound('mlx5_1'));
  const findAccepted = async () => (await node.events()).find(({ transition }) => transition === 'accepted');
  await expect.poll(findAccepted).toBeDefined();
  const accepted = await findAccepted();
  expect(accepted).toMatchObject({ device: 'infiniband/mlx5_1', condition: 'LocalLinkIntegrity', instance: '1' });
  expect(accepted?.message).toContain('tested by the maker');
  const { state } = await decodeState(readFileSync(join(node.root, 'state/health.json'), 'utf8'), BOOT);
  expect(Object.keys(state?.devices ?? {}).join(' ')).toContain('infiniband#');
  expect(statSync(join(node.root, 'state/control.sock')).mode & 0o777).toBe(0o600);
});

it('the command names what is wrong when no agent runs', async () => {
  await node.agent?.stop('SIGKILL');
  node.agent = undefined;
  rmSync(join(node.root, 'state/control.sock'), { force: true });
  expect(accept('mlx5_1', '--why', 'x')).toMatchObject({ status: 2, text: expect.stringContaining('no agent runs that uses') });
});
