import { appendFileSync, chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { run } from '../cli/command-line.ts';
import { ApiServer, TOKEN } from '../cli/publish/api-server.ts';
import { PublishProcess } from '../cli/publish/publish-process.ts';
import { noOpenssl } from '../support/certificates.ts';
import { type ServedAgent, serve } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';

const NODE = 'node-1';
const WAIT = { interval: 200 };
/** How long a slow driver takes to start: longer than the deadlines of a read and of the command. */
const SLOW_MS = 12_000;
const WATCHED_MS = 60_000;
const WELL = { conditions: { DevicesUnhealthy: 'False', DevicesUnknown: 'False', DevicesMissing: 'False' }, taints: 0, rules: 0 };
const SICK = { ...WELL, conditions: { ...WELL.conditions, DevicesUnhealthy: 'True' }, taints: 1, rules: 1 };
const QUESTIONS = ['DevicesUnhealthy', 'DevicesUnknown', 'DevicesMissing'];

/** What everybody says at one moment after the boot. */
interface Sight {
  readonly atMs: number;
  readonly cluster: typeof WELL;
  /** Exit status of `health`, and of `health --npd` for each condition; absent when no command was run. */
  readonly exits?: readonly (number | null)[];
  /** Status of `/-/ready/devices`; absent while no agent answers. */
  readonly ready?: number;
  /** After all of that: the agent lists the GPU as healthy. */
  readonly isListed: boolean;
}

describe.skipIf(noOpenssl !== undefined)(
  `a reboot of a node whose GPU is sick, with agent, publisher and commands in processes of their own${unless(noOpenssl === undefined, noOpenssl ?? '')}`,
  () => {
    const api = new ApiServer();
    const size = { ...defaultValues(simulationOptions), devices: ['all=0', 'nvidia=1'], pods: 0, 'pod-change': millis(0), story: 'off' };
    const node = new SimulatedNode(simulatedFamilies, size);
    const driver = join(node.root, 'driver');
    let address: string;
    let agent: ServedAgent | undefined;
    let publisher: PublishProcess | undefined;
    let boots = 0;

    /** `readyAtS`: seconds since 1970; undefined for a driver that never answers. A sick GPU has no spare row of memory left. */
    const setDriver = (readyAtS: number | undefined, isSick = false): void => {
      const waits = readyAtS === undefined ? '' : `while [ "$(date +%s)" -lt ${readyAtS} ]; do sleep 0.2; done`;
      const fails = `echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9`;
      writeFileSync(driver, `#!/bin/sh\n${readyAtS === undefined ? fails : waits}\n`);
      const sick = isSick ? " | sed 's,<remapped_row_failure>No<,<remapped_row_failure>Yes<,'" : '';
      appendFileSync(driver, `${node.root}/bin/nvidia-smi "$@"${sick}\n`);
      chmodSync(driver, 0o755);
    };
    const flags = (): string[] => [...node.flags(), `--probe.nvidia.smi-path=${driver}`, '--probe.nvidia.source=smi'];
    const stateFile = `--state.file=${node.root}/state/health.json`;
    const publishFlags = (): string[] => [
      stateFile,
      `--publish.api-server=${address}`,
      `--publish.token-file=${join(node.root, 'token')}`,
      `--publish.ca-file=${api.certificates.path('ca.crt')}`,
      '--publish.resync=5s',
      '--publish.device-taint-rules=NoSchedule',
      '--publish.node-taint=NoSchedule',
    ];
    const cluster = (): typeof WELL => ({
      conditions: Object.fromEntries(api.conditions(NODE).map(({ type, status }) => [type, status])) as typeof WELL.conditions,
      taints: api.nodes.get(NODE)?.taints.length ?? -1,
      rules: api.rules.size,
    });
    const health = (...words: string[]) => run(['health', stateFile, ...words], { NODE_NAME: NODE });
    const asked = async (path: string): Promise<Response | undefined> =>
      agent === undefined ? undefined : await fetch(`${agent.url}${path}`).catch(() => undefined);
    const look = async (bootedMs: number, hasCommands: boolean): Promise<Sight> => {
      const seen = cluster();
      const ready = (await asked('/-/ready/devices'))?.status;
      const npd = hasCommands ? await Promise.all(QUESTIONS.map((question) => health('--npd', question))) : [];
      // Without an agent it reads the hardware itself.
      const own = hasCommands ? [await health(...flags())] : [];
      const list = (await (await asked('/api/v1/devices'))?.json()) as { devices?: readonly { health: { state: string } }[] } | undefined;
      const isListed = list?.devices?.some((one) => one.health.state === 'healthy') === true;
      const exits = [...own, ...npd].map(({ status }) => status);
      return {
        atMs: Date.now() - bootedMs,
        cluster: seen,
        ...(hasCommands ? { exits } : {}),
        ...(ready === undefined ? {} : { ready }),
        isListed,
      };
    };
    const start = async (): Promise<void> => {
      publisher = new PublishProcess(publishFlags(), { NODE_NAME: NODE });
      agent = await serve(flags());
    };
    /** Power goes and comes: nothing has time to say goodbye. */
    const boot = async (readyAtMs: number | undefined): Promise<Sight[]> => {
      await Promise.all([agent?.stop('SIGKILL'), publisher?.stop('SIGKILL')]);
      agent = undefined;
      boots += 1;
      writeFileSync(join(node.root, 'proc/sys/kernel/random/boot_id'), `boot-${boots}\n`);
      const bootedMs = Date.now();
      setDriver(readyAtMs === undefined ? undefined : Math.ceil((bootedMs + readyAtMs) / 1_000));
      const started = start();
      const sights: Sight[] = [];
      // Commands take longer than a second on a busy machine.
      const watch = async (hasCommands: boolean): Promise<void> => {
        for (let second = 0; second * 1_000 < WATCHED_MS; second = Math.ceil((Date.now() - bootedMs) / 1_000)) {
          await sleep(Math.max(0, bootedMs + second * 1_000 - Date.now()));
          sights.push(await look(bootedMs, hasCommands));
        }
      };
      await Promise.all([watch(false), watch(true)]);
      await started;
      return sights;
    };
    /** One line for each time in which nothing changed. */
    const story = (sights: readonly Sight[]): string =>
      sights
        .map(({ atMs, cluster: { conditions, taints, rules }, exits, ready, isListed }) => ({
          atMs,
          words: `${Object.values(conditions).join('/')} taints ${taints} rules ${rules} ${exits === undefined ? '' : `health ${exits[0]} npd ${exits.slice(1).join('/')} `}ready ${ready} ${isListed ? 'listed as healthy' : ''}`,
        }))
        .filter(({ words }, n, all) => words !== all[n - 1]?.words)
        .map(({ atMs, words }) => `  ${(atMs / 1_000).toFixed(1)} s: ${words}\n`)
        .join('');

    beforeAll(async () => {
      address = await api.start();
      api.addNode(NODE);
      mkdirSync(join(node.root, 'proc/sys/kernel/random'), { recursive: true });
      writeFileSync(join(node.root, 'proc/sys/kernel/random/boot_id'), 'boot-0\n');
      await node.start();
      writeFileSync(join(node.root, 'token'), `${TOKEN}\n`);
      setDriver(0);
      await start();
    });
    afterAll(async () => {
      await publisher?.stop('SIGKILL');
      await agent?.stop('SIGKILL');
      await api.stop();
      await node.stop();
      rmSync(node.root, { recursive: true, force: true });
    });

    it.each([
      ['dead', undefined],
      ['slow', SLOW_MS],
      ['well', 0],
    ] as const)('removes nothing that says ill before the GPU is listed as healthy: the driver is %s', async (state, readyAtMs) => {
      await expect.poll(cluster, WAIT).toEqual(WELL);
      setDriver(0, true);
      await expect.poll(cluster, WAIT).toEqual(SICK);
      const sights = await boot(readyAtMs);
      process.stderr.write(
        `${state}, ${sights.length} looks in ${WATCHED_MS / 1_000} s\n${story(sights.filter(({ exits }) => exits === undefined))}${story(sights.filter(({ exits }) => exits !== undefined))}`,
      );
      for (const { atMs, cluster: said, exits, ready, isListed } of sights) {
        const at = `${atMs} ms`;
        // The status of `health` and that of each condition.
        if (readyAtMs === undefined || atMs < readyAtMs) expect(exits?.slice(0, 2) ?? [], at).not.toContain(0);
        if (isListed) continue;
        expect(said, at).toMatchObject({ taints: 1, rules: 1 });
        expect(said.conditions.DevicesUnhealthy, at).not.toBe('False');
        expect(exits?.[1], at).not.toBe(0);
        expect(ready, at).not.toBe(200);
      }
      expect(sights.some(({ isListed }) => isListed)).toBe(readyAtMs !== undefined);
      if (readyAtMs === undefined) setDriver(0);
      await expect.poll(cluster, WAIT).toEqual(WELL);
      const after = await look(Date.now(), true);
      expect(after).toMatchObject({ exits: [0, 0, 0, 0], ready: 200, isListed: true });
    });
  },
);
