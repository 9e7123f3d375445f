import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server as NetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CheckResult } from '../../../src/cli/doctor/check.ts';
import { ListPodResourcesResponse, PodResourcesListerService } from '../../../src/generated/podresources/v1/api.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import { serve } from '../../support/serve.ts';
import { run } from '../command-line.ts';

const probesOff = Object.keys(familyLoaders).map((family) => `--no-probe.${family}`);
let folder: string;
const closing: (() => void)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-doctor-'));
  for (const path of ['sys/class', 'sys/bus', 'proc', 'dev', 'kubelet']) mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, 'proc/stat'), '');
  writeFileSync(join(folder, 'dev/null'), '');
  writeFileSync(join(folder, 'checkpoint'), '{"Data":{"PodDeviceEntries":[],"RegisteredDevices":{}},"Checksum":0}');
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  rmSync(folder, { recursive: true, force: true });
});

interface Report {
  readonly ok: boolean;
  readonly findings: number;
  readonly checks: readonly CheckResult[];
}

async function doctor(
  ...flags: string[]
): Promise<{ status: number | null; report: Report; result(name: string): CheckResult | undefined }> {
  const { status, stdout, stderr } = await run([
    'doctor',
    '--output=json',
    `--path.sysfs=${folder}/sys`,
    `--path.procfs=${folder}/proc`,
    `--path.dev=${folder}/dev`,
    `--podresources.socket=${folder}/kubelet/kubelet.sock`,
    `--podresources.checkpoint=${folder}/checkpoint`,
    '--podresources.timeout=10s',
    `--web.listen-address=${folder}/web.sock`,
    // The default belongs to root.
    `--state.file=${folder}/state.json`,
    ...probesOff,
    ...flags,
  ]);
  expect(stderr).toBe('');
  const report = JSON.parse(stdout) as Report;
  return { status, report, result: (name) => report.checks.find((check) => check.name === name) };
}

async function startKubelet(): Promise<void> {
  const server = new Server();
  const answer = ListPodResourcesResponse.fromPartial({
    podResources: [{ name: 'p', namespace: 'n', containers: [{ name: 'c', devices: [{ resourceName: 'a/kvm', deviceIds: ['1', '2'] }] }] }],
  });
  const unused = (): never => {
    throw new Error('not asked');
  };
  server.addService(PodResourcesListerService, {
    list: (_call: unknown, reply: (error: null, value: unknown) => void) => reply(null, answer),
    get: unused,
    getAllocatableResources: unused,
  });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${folder}/kubelet/kubelet.sock`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  closing.push(() => server.forceShutdown());
}

function startMute(path: string): Promise<NetServer> {
  return new Promise((resolve) => {
    const server = createServer((socket) => closing.push(() => socket.destroy()));
    closing.push(() => server.close());
    server.listen(path, () => resolve(server));
  });
}

describe('doctor', () => {
  it('finds nothing wrong where nothing is', async () => {
    await startKubelet();
    const { status, report, result } = await doctor();
    expect(report.checks.filter((check) => check.status === 'finding')).toEqual([]);
    expect([status, report.ok]).toEqual([0, true]);
    expect(result('podresources-socket')?.detail).toMatch(/: v1, 2 allocations in \d+ ms$/);
    expect(result('checkpoint')?.detail).toContain('0 entries');
    expect(report.checks.filter(({ name, status: state }) => name.startsWith('probe.') && state === 'skipped')).toHaveLength(
      probesOff.length,
    );
    expect(result('listen-address')?.detail).toContain('is free');
  });

  it('misses no checkpoint where the kubelet has not written one yet', async () => {
    await startKubelet();
    const { result } = await doctor(`--podresources.checkpoint=${folder}/kubelet/kubelet_internal_checkpoint`);
    expect(result('checkpoint')).toMatchObject({ status: 'skipped', detail: expect.stringContaining('no device plugin has registered') });
  });

  it('names what is missing, each with cause and remedy', async () => {
    const { status, report, result } = await doctor(
      `--podresources.socket=${folder}/none/kubelet.sock`,
      `--path.sysfs=${folder}/kubelet`,
      `--podresources.checkpoint=${folder}/none`,
    );
    expect(status).toBe(1);
    expect(result('podresources-directory')?.detail).toContain('ENOENT');
    expect(result('podresources-socket')?.status).toBe('skipped');
    expect(result('sysfs')).toMatchObject({ status: 'finding', detail: `${folder}/kubelet is empty` });
    expect(result('checkpoint')?.status).toBe('finding');
    for (const check of report.checks.filter(({ status: state }) => state === 'finding')) {
      expect([check.name, typeof check.cause, typeof check.remedy]).toEqual([check.name, 'string', 'string']);
    }
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['is not there', async () => {}, '[socket-missing]'],
    ['is a directory', async () => mkdirSync(join(folder, 'kubelet/kubelet.sock')), '[not-a-socket]'],
    ['never answers', async () => await startMute(join(folder, 'kubelet/kubelet.sock')), '[timeout]'],
  ])('tells a socket that %s', async (_name, prepare, reason) => {
    await prepare();
    const { status, result } = await doctor('--podresources.timeout=300ms');
    expect(result('podresources-socket')).toMatchObject({ status: 'finding', detail: expect.stringContaining(reason) });
    expect(status).toBe(1);
  });

  it.each<[string, readonly string[], () => Promise<unknown>, Partial<CheckResult>]>([
    [
      'can be used',
      [],
      async () => await startMute(join(folder, 'kubelet/kubelet.sock')),
      { status: 'ok', detail: 'kubelet, for 1 resource' },
    ],
    ['has no kubelet', [], async () => {}, { status: 'finding', detail: 'kubelet/kubelet.sock does not exist' }],
    ['is a file', ['--plugin.dir=checkpoint'], async () => {}, { status: 'finding', detail: 'is not a directory' }],
    ['is absent', ['--plugin.registration=watcher', '--plugin.registry-dir=none'], async () => {}, { status: 'finding', detail: 'ENOENT' }],
  ])('tells a directory for plugins that %s', async (_name, flags, prepare, expected) => {
    await prepare();
    const config = join(folder, 'config.json');
    writeFileSync(config, JSON.stringify({ plugin: { resources: [{ resource: 'example.com/hca', select: { family: 'infiniband' } }] } }));
    const absolute = flags.map((flag) => flag.replace(/dir=/, `dir=${folder}/`));
    const { result } = await doctor(`--config.file=${config}`, `--plugin.dir=${folder}/kubelet`, ...absolute);
    const { status, detail } = result('plugin-directory') as CheckResult;
    expect({ status, detail }).toEqual({ status: expected.status, detail: expect.stringContaining(String(expected.detail)) });
  });

  it.each<[string, string, string, string]>([
    ['can be written', 'state/deep/health.json', 'ok', 'state/deep/health.json'],
    ['is below a file', 'checkpoint/health.json', 'finding', 'checkpoint is not a directory'],
    ['is a directory', 'kubelet', 'finding', 'kubelet is not a regular file'],
  ])('tells a state file that %s', async (_name, path, status, detail) => {
    await startKubelet();
    const { result } = await doctor(`--state.file=${folder}/${path}`);
    expect(result('state-file')).toMatchObject({ status, detail: `${folder}/${detail}` });
  });

  it('takes an address for good that a running agent listens on', async () => {
    const agent = await serve([`--path.sysfs=${folder}/sys`, '--state.file=', ...probesOff]);
    try {
      const { result } = await doctor(`--web.listen-address=${new URL(agent.url).host}`);
      expect(result('listen-address')).toMatchObject({ status: 'ok', detail: expect.stringMatching(/is in use by a running agent$/) });
    } finally {
      await agent.stop();
    }
  });

  it('finds an address that something else listens on', async () => {
    await startKubelet();
    await startMute(join(folder, 'web.sock'));
    const { result } = await doctor();
    expect(result('listen-address')).toMatchObject({ status: 'finding', remedy: expect.stringContaining('--web.listen-address') });
  });

  it('writes a report for people as well', async () => {
    const { stdout, status } = await run(['doctor', `--path.sysfs=${folder}/none`, ...probesOff]);
    expect(stdout).toMatch(
      new RegExp(`^FINDING {2}sysfs +${folder}/none cannot be read \\(ENOENT\\)\\n +cause: {2}.*\\n +remedy: .*--path.sysfs`, 'm'),
    );
    expect(status).toBe(1);
  });
});
