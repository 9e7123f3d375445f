import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { SimulatedKubelet } from '../../src/sim/kubelet/kubelet.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { imageStart } from '../support/image.ts';
import { type ServedAgent, seriesValue, startAgent } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { confine, imageConfig, makeImage, runc, unpackImage, whyNoImage } from './support/oci-image.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const node = (JSON.parse(readFileSync('scripts/image/node.json', 'utf8')) as { version: string }).version;
/** The field `e_machine` of ELF files. */
const MACHINES: Readonly<Record<string, number>> = { amd64: 62, arm64: 183 };
const EMULATOR = 'qemu-aarch64-static';
const why = whyNoImage();

describe.skipIf(why !== undefined)(`the image that is made without an engine${unless(why === undefined, why ?? '')}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-oci-'));
  const layout = join(directory, 'layout');
  const start = imageStart('deploy/Dockerfile');
  const folders: Record<string, string> = {};
  let whyNot: string | undefined;

  beforeAll(() => {
    whyNot = makeImage(layout);
    if (whyNot !== undefined) return;
    for (const each of Object.keys(MACHINES)) folders[each] = unpackImage(layout, `${version}-${each}`, join(directory, each));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.for(Object.keys(MACHINES))('says how it is started on %s, as the Dockerfile does', (architecture, { skip }) => {
    skip(whyNot !== undefined, whyNot);
    const told = imageConfig(layout, `${version}-${architecture}`);
    expect(told.architecture).toBe(architecture);
    expect([told.config.Entrypoint, told.config.Cmd]).toEqual([start.entrypoint, start.arguments]);
    expect(told.config.Env).toEqual(expect.arrayContaining(Object.entries(start.env).map(([name, value]) => `${name}=${value}`)));
    expect([Object.keys(told.config.ExposedPorts), told.config.User]).toEqual([['9835/tcp'], '0:0']);
    expect(told.config.Labels).toMatchObject({ 'org.opencontainers.image.version': version });
  });

  it.for(Object.keys(MACHINES))('has programs and libraries for %s only, and no shell', (architecture, { skip }) => {
    skip(whyNot !== undefined, whyNot);
    const root = folders[architecture] as string;
    const machines = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => machineOf(join(entry.parentPath, entry.name)))
      .filter((machine) => machine !== undefined);
    expect(new Set(machines)).toEqual(new Set([MACHINES[architecture]]));
    expect(['bin/sh', 'usr/bin/env', 'usr/bin/dpkg'].filter((path) => existsSync(join(root, path)))).toEqual([]);
    expect(readFileSync(join(root, 'var/lib/dpkg/status.d/libc6'), 'utf8')).toContain(`Architecture: ${architecture}\n`);
  });

  it('has the same layers when it is made again, with whichever umask', ({ skip }) => {
    skip(whyNot !== undefined, whyNot);
    const again = join(directory, 'again');
    const before = process.umask(0o077);
    whyNot = makeImage(again, '--architectures=amd64');
    process.umask(before);
    skip(whyNot !== undefined, whyNot);
    const layers = (where: string): unknown => imageConfig(where, `${version}-amd64`).rootfs.diff_ids;
    expect(layers(again)).toEqual(layers(layout));
  });

  it('is what its digests say', ({ skip }) => {
    skip(whyNot !== undefined, whyNot);
    const blobs = join(layout, 'blobs/sha256');
    for (const name of readdirSync(blobs)) {
      expect(
        createHash('sha256')
          .update(readFileSync(join(blobs, name)))
          .digest('hex'),
      ).toBe(name);
    }
  });

  it('runs on arm64', ({ skip }) => {
    const isEmulated = spawnSync(EMULATOR, ['--version']).error === undefined;
    skip(whyNot !== undefined || !isEmulated, whyNot ?? `there is no ${EMULATOR}`);
    const root = folders.arm64 as string;
    const run = (...words: string[]): string => execFileSync(EMULATOR, ['-L', root, join(root, 'nodejs/bin/node'), ...words]).toString();
    expect(run('--version')).toBe(`v${node}\n`);
    expect(run(join(root, 'opt/device-agent/main.js'), 'version')).toBe(`device-agent ${version} (node ${node}, linux/arm64)\n`);
    // The native part of koffi loads.
    expect(run('-p', `require('${root}/opt/device-agent/node_modules/koffi').version`)).toMatch(/^\d+\.\d+/);
  });

  describe.skipIf(process.arch !== 'x64')('as a container on amd64', () => {
    const program = runc();
    const id = `device-agent-${process.pid}`;
    const kubelet = new SimulatedKubelet({ directory: join(directory, 'kubelet') });
    let agent: ServedAgent | undefined;
    const runtime = [program ?? 'runc', '--root', join(directory, 'runc')];

    afterAll(async () => {
      if (agent !== undefined) spawnSync(runtime[0] as string, [...runtime.slice(1), 'delete', '--force', id]);
      await kubelet.close();
    });

    it('is scraped with a root that is read-only and no capability, and ends on SIGTERM', async ({ skip }) => {
      skip(whyNot !== undefined || program === undefined, whyNot ?? 'there is no runc');
      for (const path of ['sys', 'proc', 'kubelet']) mkdirSync(join(directory, path), { recursive: true });
      const hardware = hardwareOf(infiniband, { infiniband: 2 });
      new TreeWriter(directory).apply(hardware);
      await kubelet.start();
      const containers = [{ name: 'main', devices: [{ resource: 'rdma/hca', id: 'mlx5_1', numaNodes: [0] }] }];
      kubelet.admitPod({ namespace: 'training', name: 'job-0', uid: '00000000-0000-4000-8000-000000000000', containers });
      const flags = ['--path.sysfs=/host/sys', '--path.procfs=/host/proc', '--state.file=', '--log.format=json'];
      confine(join(directory, 'amd64'), [...flags, '--web.listen-address=127.0.0.1:0', '--podresources.checkpoint='], {
        [join(directory, 'sys')]: '/host/sys',
        [join(directory, 'proc')]: '/host/proc',
        [dirname(kubelet.podResourcesSocket)]: '/var/lib/kubelet/pod-resources',
      });
      // The shell takes the flags that `startAgent` adds, which runc would refuse.
      agent = await startAgent(['sh', '-c', `exec ${runtime.join(' ')} run --bundle ${join(directory, 'amd64')} ${id}`]);
      const holder = { pod: 'job-0', container: 'main', device: 'mlx5_1' };
      const page = await agent.until('the allocation', (text) => seriesValue(text, 'container_device_allocation', holder) === 1);
      expect(seriesValue(page, 'device_agent_probe_success', { family: 'infiniband' })).toBe(1);
      const pid = /"pid":(\d+)/.exec(agent.log())?.[1];
      expect(pid).toBe('1');
      const exited = new Promise((resolve) => agent?.child.once('exit', resolve));
      execFileSync(runtime[0] as string, [...runtime.slice(1), 'kill', id, 'TERM']);
      expect(await exited).toBe(0);
    });
  });
});

/** Undefined for what is no ELF file. */
function machineOf(path: string): number | undefined {
  const head = Buffer.alloc(20);
  const file = openSync(path, 'r');
  const read = readSync(file, head, 0, head.length, 0);
  closeSync(file);
  return read === head.length && head.subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1')) ? head.readUInt16LE(18) : undefined;
}
