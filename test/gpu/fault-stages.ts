import { execFile } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from '../support/program.ts';
import { readersOf } from '../support/readers-of.ts';
import type { Agent, ToldDevice } from './agent.ts';
import { type Ground, pause, startAgent } from './ground.ts';
import { held, type Line, notOffered } from './report.ts';

const WAIT_MS = 30_000;

const stateOf = (device: ToldDevice | undefined): string => device?.health.state ?? 'no such device';

/** The agent is killed and starts again; a program of the driver hangs and comes back. */
export async function hangStage(ground: Ground): Promise<readonly Line[]> {
  const section = 'kill, hang, restart';
  const [gpu = ''] = ground.uuids;
  const line = (what: string, expected: string, told: string, isHeld: boolean): Line => held(section, what, expected, told, isHeld, gpu);
  const kept = [`--state.file=${join(ground.folder, 'state/health.json')}`];
  const first = await startAgent(ground, kept);
  const before = stateOf(await first.device(gpu));
  await first.stop('SIGKILL');
  const second = await startAgent(ground, kept);
  const after = stateOf(await second.untilDevice(gpu, (device) => device.health.state === before, WAIT_MS));
  await second.stop();

  // The program hangs as it does beside a hanging driver; the library cannot be made to.
  const [program, hangs] = [join(ground.folder, 'nvidia-smi'), join(ground.folder, 'hangs')];
  writeFileSync(program, `#!/bin/sh\nif [ -e '${hangs}' ]; then kill -STOP $$; fi\nexec '${ground.program}' "$@"\n`);
  chmodSync(program, 0o755);
  const agent = await startAgent(ground, [
    '--probe.nvidia.source=smi',
    `--probe.nvidia.smi-path=${program}`,
    '--refresh.timeout=8s',
    '--refresh.stale-after=10s',
  ]);
  try {
    const well = stateOf(await agent.device(gpu));
    writeFileSync(hangs, '');
    const hung = stateOf(await agent.untilDevice(gpu, ({ health }) => health.state !== well, WAIT_MS));
    rmSync(hangs);
    const back = stateOf(await agent.untilDevice(gpu, ({ health }) => health.state === well, WAIT_MS));
    return [
      line('after a kill of the agent', before, after, after === before),
      line('while nvidia-smi hangs', 'unknown or unhealthy', hung, ['unknown', 'unhealthy'].includes(hung)),
      line('once nvidia-smi answers again', well, back, back === well),
    ];
  } finally {
    await agent.stop();
  }
}

/** A way to ask the agent to let go of the driver, and to end that. */
interface ReleaseWay {
  readonly name: string;
  readonly options: readonly string[];
  ask(agent: Agent): Promise<unknown> | unknown;
  end(agent: Agent): Promise<unknown> | unknown;
}

/** Every way is proven alike: a further one is a further entry. */
const releaseWays = ({ folder }: Ground): readonly ReleaseWay[] => {
  const [file, state] = [join(folder, 'release'), join(folder, 'release-state/health.json')];
  const command = (...words: readonly string[]): unknown =>
    promisify(execFile)(process.execPath, [PROGRAM, 'release', 'nvidia', ...words, `--state.file=${state}`]);
  return [
    {
      name: '--probe.nvidia.release-file',
      options: [`--probe.nvidia.release-file=${file}`],
      ask: () => writeFileSync(file, ''),
      end: () => rmSync(file),
    },
    {
      name: 'device-agent release',
      options: [`--state.file=${state}`],
      ask: () => command('--for', '10m', '--why', 'a test'),
      end: () => command('--end'),
    },
    {
      name: 'POST /-/release',
      options: ['--web.enable-lifecycle'],
      ask: (agent) => agent.post('/-/release?family=nvidia&for=10m'),
      end: (agent) => agent.post('/-/release?family=nvidia&for=0s'),
    },
  ];
};

/** The agent lets go of the driver: no file of it is open or mapped. `--gpu-reset` only where it was asked for. */
export async function releaseStage(ground: Ground): Promise<readonly Line[]> {
  const lines: Line[] = [];
  for (const way of releaseWays(ground)) lines.push(...(await released(ground, way)));
  return lines;
}

async function released(ground: Ground, way: ReleaseWay): Promise<readonly Line[]> {
  const [gpu = ''] = ground.uuids;
  const section = `release by ${way.name}`;
  const line = (what: string, expected: string, told: string, isHeld: boolean): Line => held(section, what, expected, told, isHeld, gpu);
  const agent = await startAgent(ground, way.options);
  try {
    const well = stateOf(await agent.device(gpu));
    const used = driverFilesOf(agent.pid);
    await way.ask(agent);
    const device = await agent.untilDevice(gpu, isReleased, WAIT_MS);
    await agent.until(() => driverFilesOf(agent.pid).length === 0, WAIT_MS).catch(() => undefined);
    const left = driverFilesOf(agent.pid);
    const reset = ground.mayReset
      ? resetLine(ground, section, gpu)
      : notOffered(section, 'nvidia-smi --gpu-reset', 'not asked for: --gpu-reset');
    await way.end(agent);
    const back = stateOf(await agent.untilDevice(gpu, ({ health }) => health.state === well, WAIT_MS));
    return [
      line('driver files in use before', 'some', used.join(', '), used.length > 0),
      line('driver files in use while released', 'none', left.join(', ') || 'none', left.length === 0),
      line('state while released', 'unknown, DriverReleased', releaseOf(device), device !== undefined && isReleased(device)),
      reset,
      line('state afterwards', well, back, back === well),
    ];
  } finally {
    await agent.stop();
  }
}

const isReleased = (device: ToldDevice): boolean => device.health.state === 'unknown' && releaseOf(device).endsWith('DriverReleased');
const releaseOf = (device: ToldDevice | undefined): string =>
  [stateOf(device), ...(device?.health.conditions ?? []).filter(({ type }) => type === 'DriverReleased').map(({ type }) => type)].join(
    ', ',
  );

function resetLine({ smi }: Ground, section: string, gpu: string): Line {
  const what = 'nvidia-smi --gpu-reset';
  try {
    smi.run('--gpu-reset', '-i', gpu);
    return held(section, what, 'done', 'done', true, gpu);
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const said = `${stdout}${stderr}`.trim().split('\n', 1)[0] ?? '';
    // The program says so where others use the GPU, or the user or the board may not: that is no fault of the agent.
    const isRefused = /permission|not supported|in use by|being used/i.test(said);
    return isRefused ? notOffered(section, what, said) : held(section, what, 'done', said, false, gpu);
  }
}

/** Files of the driver that an agent and its readers have open or mapped, its library among them. */
function driverFilesOf(agent: number): readonly string[] {
  return [...new Set([agent, ...readersOf(agent)].flatMap(filesOf))];
}

function filesOf(pid: number): readonly string[] {
  const isOfDriver = (path: string): boolean => /^\/dev\/nvidia|libnvidia-ml\.so/.test(path);
  const open = readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return [];
    }
  });
  const mapped = readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .map((line) => line.split(/\s+/)[5] ?? '');
  return [...open, ...mapped].filter((path) => isOfDriver(path) || isOfDriver(`/${path.split('/').at(-1)}`));
}

const REFRESHES_MS = 10_000;

/** What a refresh costs with the usual intervals. */
export async function costStage(ground: Ground): Promise<readonly Line[]> {
  const section = 'cost of a refresh';
  const agent = await startAgent(ground, [], false);
  try {
    const before = await agent.page();
    await pause(REFRESHES_MS);
    const after = await agent.page();
    const grown = (metric: string): number => after.sum(metric) - before.sum(metric);
    const refreshes = grown('device_agent_probe_run_duration_seconds_count');
    const line = (what: string, metric: string): Line => ({
      section,
      what,
      expected: '',
      agent: `${((grown(metric) / refreshes) * 1_000).toFixed(2)} ms`,
      verdict: 'measured',
      note: `mean of ${refreshes} refreshes of ${ground.uuids.length} GPUs`,
    });
    return [
      line('time of a read', 'device_agent_probe_run_duration_seconds_sum'),
      line('CPU of the whole agent', 'process_cpu_seconds_total'),
    ];
  } finally {
    await agent.stop();
  }
}
