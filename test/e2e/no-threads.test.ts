// Project: programs. It starts the agent on a machine that gives no process, and waits for each of its answers.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { PROGRAM } from '../support/program.ts';
import { type ServedAgent, seriesValue, serve, startAgent } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';

/** Nobody else's, since a limit of processes counts all that a user has. */
const USER = '54321';
const isRoot = process.getuid?.() === 0;
const noRoot = unless(isRoot, 'needs root');

let root: string;
let agent: ServedAgent | undefined;
afterEach(async () => {
  await agent?.stop('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

const AS_USER = ['setpriv', `--reuid=${USER}`, '--clear-groups'] as const;
const MANY = 5_000;

/** The soft limit, which a process may raise again. */
function limit(processes: number): void {
  const [program, ...words] = AS_USER;
  execFileSync(program, [...words, 'prlimit', `--pid=${agent?.child.pid}`, `--nproc=${processes}:`]);
}

const flags = (): string[] => [
  ...['serve', '--no-probe.fpga', '--no-probe.nvidia', '--state.file=', '--refresh.interval=100ms'],
  ...[`--path.sysfs=${root}/sys`, `--path.procfs=${root}/proc`, `--path.dev=${root}/dev`],
  ...[`--podresources.socket=${root}/absent.sock`, '--podresources.checkpoint='],
];

function makeRoot(): void {
  root = mkdtempSync(join(tmpdir(), 'device-agent-no-threads-'));
  chmodSync(root, 0o755);
  for (const path of ['sys/class/net', 'proc', 'dev']) mkdirSync(join(root, path), { recursive: true });
}

function plugIn(): void {
  new TreeWriter(root).apply(hardwareOf(infiniband, { infiniband: 1 }));
}

describe('a machine without room for another process', () => {
  it.skipIf(!isRoot)(`costs what a reader would have read, and no more, until there is room${noRoot}`, async () => {
    makeRoot();
    agent = await startAgent(['prlimit', `--nproc=${MANY}:${MANY}`, ...AS_USER, process.execPath, PROGRAM, ...flags()]);
    await agent.until(
      'it is known that there is nothing',
      (page) => seriesValue(page, 'device_agent_probe_success', { family: 'infiniband' }) === 1,
    );
    expect(seriesValue(await agent.metrics(), 'device_agent_probe_runs_total', { family: 'infiniband' })).toBeUndefined();
    limit(1);
    plugIn();
    const page = await agent.until(
      'the refusal is told',
      (text) => seriesValue(text, 'device_agent_problems', { code: 'reader-refused' }) === 1,
    );
    expect(seriesValue(page, 'device_agent_probe_success', { family: 'infiniband' })).toBe(0);
    limit(MANY);
    await agent.until('the device is read', (text) => seriesValue(text, 'device_present', { device: 'mlx5_0' }) === 1);
    expect((await agent.metrics()).includes('reader-refused')).toBe(false);
    expect(await agent.stop()).toBe(0);
  });

  it.skipIf(!isRoot)(`says that descriptors are missing where a reader cannot start without, and calls that no bug${noRoot}`, async () => {
    makeRoot();
    agent = await serve(flags().slice(1));
    await agent.until(
      'it is known that there is nothing',
      (page) => seriesValue(page, 'device_agent_probe_success', { family: 'infiniband' }) === 1,
    );
    expect(seriesValue(await agent.metrics(), 'device_agent_probe_runs_total', { family: 'infiniband' })).toBeUndefined();
    const pid = agent.child.pid;
    const setLimit = (files: number): Buffer => execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${files}:`]);
    // Enough to look whether something came, not for the pipes of a reader. Right after the start more are open than later.
    const counts: number[] = [];
    for (let count = 0; count < 20; count += 1) {
      counts.push(readdirSync(`/proc/${pid}/fd`).length);
      await sleep(50);
    }
    setLimit(Math.min(...counts) + 2);
    plugIn();
    await agent.until('it is told', (page) => seriesValue(page, 'device_agent_problems', { code: 'descriptors-exhausted' }) === 1);
    setLimit(1_000);
    await agent.until('the device is read', (page) => seriesValue(page, 'device_present', { device: 'mlx5_0' }) === 1);
    expect(agent.log()).not.toMatch(/probe-crashed|ended with an error/);
    expect(await agent.stop()).toBe(0);
  });
});
