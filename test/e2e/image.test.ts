import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { daemonSet, imageStart } from '../support/image.ts';
import { type ServedAgent, seriesValue, startAgent } from '../support/serve.ts';

const DOCKERFILE = readFileSync('deploy/Dockerfile', 'utf8');
const start = imageStart('deploy/Dockerfile');
/** Where the image has the program. */
const place = dirname(start.entrypoint.at(-1) as string);
let root: string;

/** The image's command line on the bundle that was made here instead of in the image. */
const commandLine = (): string[] => [
  process.execPath,
  ...start.entrypoint.slice(1).map((word) => word.replace(place, join(root, 'program'))),
];

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-image-'));
  // As the first stage does, but for the directory.
  expect(DOCKERFILE).toContain(`RUN npm run bundle -- ${place}\n`);
  execFileSync('npm', ['run', '--silent', 'bundle', '--', join(root, 'program')], { stdio: 'pipe' });
  new TreeWriter(root).apply(hardwareOf(infiniband, { infiniband: 2 }));
});

let agent: ServedAgent | undefined;
afterEach(() => agent?.stop('SIGKILL'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('the image', () => {
  it('copies what is there and what the build may see', () => {
    const copied = [...DOCKERFILE.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names]) => (names as string).split(' '));
    expect(copied).toContain('package-lock.json');
    expect(copied.filter((path) => !existsSync(path))).toEqual([]);
    const seen = readFileSync('.dockerignore', 'utf8');
    expect(copied.filter((path) => !seen.includes(`!${path.replace('./', '')}\n`))).toEqual([]);
  });

  it('has the command in the path', () => {
    expect(DOCKERFILE).toContain('COPY deploy/device-agent /usr/local/bin/device-agent\n');
    expect(statSync('deploy/device-agent').mode & 0o111).toBe(0o111);
    const command = readFileSync('deploy/device-agent', 'utf8');
    expect(command).toMatch(`#!${start.entrypoint[0]} --lite-mode\n`);
    expect(command).toContain(`'${start.entrypoint.at(-1)}'`);
    writeFileSync(join(root, 'device-agent'), command.replace(place, join(root, 'program')));
    expect(execFileSync(process.execPath, [join(root, 'device-agent'), 'version'], { encoding: 'utf8' })).toMatch(
      /^device-agent \d+\.\d+\.\d+ /,
    );
  });

  it('tells its version when asked', () => {
    const [program, ...words] = commandLine() as [string, ...string[]];
    const text = execFileSync(program, [...words, 'version'], { env: { ...process.env, ...start.env }, encoding: 'utf8' });
    expect(text).toMatch(/^device-agent \d+\.\d+\.\d+ /);
  });

  it('serves what the DaemonSet asks for, with the host mounted elsewhere', async () => {
    const container = daemonSet<DaemonSet>().spec.template.spec.containers[0];
    expect(container?.command).toBeUndefined();
    expect(container?.image).toBe(`device-agent:${(JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version}`);
    const given = (container?.args ?? []).map((word) => word.replace('/host/', `${root}/`));
    expect(given[0]).toBe(start.arguments[0]);
    const set = (container?.env ?? []).flatMap(({ name, value }) =>
      value === undefined ? [] : [[name, value.replace('/host/', `${root}/`)]],
    );
    const env = { ...process.env, ...start.env, ...(Object.fromEntries(set) as Record<string, string>) };
    const own = [`--podresources.socket=${root}/absent.sock`, '--state.file=', '--config.file='];
    // Who asks in the running container is to see the same machine.
    const listed = execFileSync(join(root, 'program/main.js'), ['list', ...own], {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    expect(listed).toContain('mlx5_1');
    agent = await startAgent([...commandLine(), ...given, ...own], { env });
    await agent.until('the HCAs', (page) => seriesValue(page, 'device_received_bytes_total', { device: 'mlx5_1' }) !== undefined);
    expect(await agent.stop()).toBe(0);
  });
});

interface Container {
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

interface DaemonSet {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly Container[] } };
  };
}
