import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { imageStart } from '../support/image.ts';
import { type ServedAgent, seriesValue, startAgent } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { ImageBuild, whyNoBuild } from './support/image-build.ts';

const DOCKERFILE = 'deploy/Dockerfile';
/** Stands for both images that the Dockerfile takes from registries. */
const BASE = 'localhost/base';
const IMAGE = 'localhost/device-agent:0.1.0';
const why = whyNoBuild();

describe.skipIf(why !== undefined)(`the image that a container engine builds${unless(why === undefined, why ?? '')}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-build-'));
  const images = new ImageBuild(join(directory, 'images'));
  const start = imageStart(DOCKERFILE);
  let whyNot: string | undefined;
  let agent: ServedAgent | undefined;

  beforeAll(() => {
    images.makeBase(BASE);
    whyNot = images.build(DOCKERFILE, IMAGE, { BASE, BUILD: BASE });
  });
  afterAll(async () => {
    await agent?.stop('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  it('says how it is started', ({ skip }) => {
    skip(whyNot !== undefined, whyNot);
    const { Env, Entrypoint, Cmd, ExposedPorts } = images.config(IMAGE);
    expect([Entrypoint, Cmd]).toEqual([start.entrypoint, start.arguments]);
    expect(Env).toEqual(expect.arrayContaining(Object.entries(start.env).map(([name, value]) => `${name}=${value}`)));
    expect(Object.keys(ExposedPorts)).toEqual(['9835/tcp']);
  });

  it('has the program and nothing of its making', ({ skip }) => {
    skip(whyNot !== undefined, whyNot);
    const list = `const { readdirSync } = require('node:fs'); console.log(JSON.stringify([readdirSync('/'), readdirSync('/opt/device-agent')]))`;
    const [program = '', ...words] = images.inContainer(IMAGE, [start.entrypoint[0] as string, '-e', list]);
    const [top, own] = JSON.parse(execFileSync(program, words, { encoding: 'utf8' })) as [string[], string[]];
    expect(top).not.toContain('src');
    expect(own).toEqual(expect.arrayContaining(['main.js', 'reader.js', 'node_modules', 'package.json']));
  });

  it('has the program in its path, for whoever looks into a running container', ({ skip }) => {
    skip(whyNot !== undefined, whyNot);
    const [program = '', ...words] = images.inContainer(IMAGE, ['device-agent', 'version']);
    expect(execFileSync(program, words, { encoding: 'utf8' })).toMatch(/^device-agent \d+\.\d+\.\d+ /);
  });

  it('reads the host by what is mounted, is scraped, and ends on SIGTERM', async ({ skip }) => {
    skip(whyNot !== undefined, whyNot);
    for (const path of ['sys', 'proc']) mkdirSync(join(directory, path));
    new TreeWriter(directory).apply(hardwareOf(infiniband, { infiniband: 2 }));
    const volumes = { [join(directory, 'sys')]: '/host/sys', [join(directory, 'proc')]: '/host/proc' };
    const command = [...start.entrypoint, ...start.arguments, '--path.sysfs=/host/sys', '--path.procfs=/host/proc', '--state.file='];
    agent = await startAgent(images.inContainer(IMAGE, command, volumes));
    const page = await agent.until(
      'an HCA',
      (text) => seriesValue(text, 'device_received_bytes_total', { device: 'mlx5_1' }) !== undefined,
    );
    expect(seriesValue(page, 'device_agent_probe_success', { family: 'infiniband' })).toBe(1);
    // The engine passes no signals on.
    const exited = new Promise((resolve) => agent?.child.once('exit', resolve));
    process.kill(Number(/"pid":(\d+)/.exec(agent.log())?.[1]), 'SIGTERM');
    expect(await exited).toBe(0);
  });
});
