import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { type Ran, run } from '../cli/command-line.ts';
import { PseudoTerminal } from '../support/pseudo-terminal.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const HCA = 'example.com/hca';
const CONFIG = { plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] } };
const AGE = /^data of the running agent, \d+\.\d s old$/m;

let node: ServedNode;
let flags: readonly string[];

beforeAll(async () => {
  const slow = ['--refresh.interval=1h', '--refresh.stale-after=2h'];
  node = new ServedNode({ family: infiniband, counts: { infiniband: 2 }, resource: HCA, config: CONFIG, flags: slow });
  for (const path of ['proc/stat', 'dev/null', 'dev/kmsg']) writeFileSync(join(node.root, path), '');
  const agent = await node.start();
  await agent.until('both are read', (page) => seriesValue(page, 'device_health{device="mlx5_1",state="healthy"}') === 1);
  // No agent answers at the address of the command, so only the socket leads to the agent.
  flags = [...node.flags(), '--web.listen-address=127.0.0.1:1'];
});
afterAll(async () => {
  await node.stop();
});

const command = (...words: readonly string[]): Promise<Ran> => run([...words, ...flags]);

/** Runs with the hardware of the node taken away: whoever reads it finds nothing. */
async function withoutHardware<T>(what: () => Promise<T>): Promise<T> {
  renameSync(join(node.root, 'sys'), join(node.root, 'sys-away'));
  mkdirSync(join(node.root, 'sys/class'), { recursive: true });
  try {
    return await what();
  } finally {
    rmSync(join(node.root, 'sys'), { recursive: true });
    renameSync(join(node.root, 'sys-away'), join(node.root, 'sys'));
  }
}

/** Runs a command on a terminal until it shows the devices, and ends it by its key. Returns the exit status. */
async function watched(line: readonly string[]): Promise<number> {
  const terminal = new PseudoTerminal({ columns: 120, rows: 30 }, [process.execPath, ...line], { TERM: 'xterm' });
  await terminal.until(/mlx5_1/);
  terminal.type('q');
  return (await terminal.ended).number;
}

describe('commands beside a running agent', () => {
  it('have a socket that only the user of the agent can open', () => {
    expect(statSync(join(node.root, 'state/control.sock')).mode & 0o777).toBe(0o600);
  });

  it('print what the agent read, and its age; with --read what they read', async () => {
    const before = await command('list', '--read');
    const json = await command('list', '--read', '-o', 'json');
    await withoutHardware(async () => {
      const asked = await command('list');
      expect(asked.stdout).toMatch(/mlx5_0 .*\n.*mlx5_1 /);
      expect(asked.stderr).toMatch(AGE);
      // One reading knows no rate, and the readings stand side by side.
      const rows = ({ stdout }: { readonly stdout: string }) => stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3));
      expect(rows(asked), 'the same devices').toEqual(rows(before));
      const told = JSON.parse((await command('list', '-o', 'json')).stdout) as object;
      expect(Object.keys(told)).toEqual(Object.keys(JSON.parse(json.stdout) as object));
      const page = await command('list', '-o', 'prom');
      expect(page.stdout).toContain('device_health{device="mlx5_0",state="healthy"} 1');
      expect(page.stdout).not.toMatch(/^(?:device_agent_|process_|nodejs_)/m);
      const own = await command('list', '--read');
      expect(own.stdout).not.toContain('mlx5_0');
      expect(own.stderr).not.toMatch(AGE);
    });
  });

  it('judge by the agent: health, doctor, usage, incidents', async () => {
    await withoutHardware(async () => {
      const health = await command('health', '-o', 'text');
      expect([health.status, health.stdout]).toEqual([0, expect.stringContaining('infiniband/mlx5_1 healthy')]);
      expect(health.stderr).toMatch(AGE);
      expect((await command('health', '-o', 'json', '--read')).stdout).toContain('"source": "one reading"');
      const doctor = await command('doctor');
      expect(doctor.stdout).toMatch(/^OK {7}probe\.infiniband +2 devices: 2 pf$/m);
      expect(doctor.stdout).toMatch(/^OK {7}running-agent +its configuration has no problem; what it read is \d+\.\d s old$/m);
      expect(doctor.stdout).toMatch(/^OK {7}podresources-socket .*the agent had an answer at /m);
      expect((await command('doctor', '--read')).stdout).toMatch(
        /^FINDING {2}probe\.\w+ .* cannot be listed[\s\S]*^SKIPPED {2}probe\.infiniband .*the same as/m,
      );
      expect(JSON.parse((await command('usage', '-o', 'json')).stdout)).toMatchObject({ source: 'agent' });
      for (const words of [['usage'], ['incidents']]) {
        expect((await command(...words)).stderr, words.join(' ')).toMatch(AGE);
        expect((await command(...words, '--read')).stderr, words.join(' ')).not.toMatch(AGE);
      }
      expect((await command('incidents')).stdout).toBe('There are no incidents.\n');
    });
  });

  it('are answered twenty at a time, and the agent goes on', async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, () => command('list')));
    expect(runs.map(({ status, stderr }) => [status, AGE.test(stderr)])).toEqual(runs.map(() => [0, true]));
    expect((await node.agent?.until('it serves', () => true))?.length).toBeGreaterThan(0);
    expect((await fetch(`${node.agent?.url}/healthz`)).status).toBe(200);
  });

  it('load no probe runner, no gRPC and no server to ask', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'device-agent-modules-'));
    const [seen, loader] = [join(folder, 'modules'), join(folder, 'loader.mjs')];
    const hook = `import { appendFileSync } from 'node:fs';
export async function load(url, context, next) { appendFileSync(${JSON.stringify(seen)}, url + '\\n'); return next(url, context); }`;
    writeFileSync(join(folder, 'hook.mjs'), hook);
    writeFileSync(loader, `import { register } from 'node:module'; register('./hook.mjs', import.meta.url);`);
    for (const words of [['list'], ['health'], ['doctor'], ['usage'], ['incidents'], ['top']]) {
      writeFileSync(seen, '');
      // The build has a module for each source.
      const line = ['--import', loader, 'dist/cli/main.js', ...words, ...flags];
      const status = (): number | null => spawnSync(process.execPath, line).status;
      if (words[0] === 'top') expect(await watched(line)).toBe(0);
      // A busy machine can make a device unknown for a while, and `health` and `doctor` say that by their status.
      else if (words[0] === 'health' || words[0] === 'doctor') expect(status()).not.toBeNull();
      else await expect.poll(status, { message: words[0] ?? '' }).toBe(0);
      const modules = readFileSync(seen, 'utf8').split('\n');
      expect(modules.length).toBeGreaterThan(50);
      expect(
        modules.filter((url) =>
          /@grpc|protobuf|\/express\/|prom-client|node_modules\/(?:koffi|systeminformation)\/|\/dist\/(?:agent\/agent|supervisor\/family-runner)/.test(
            url,
          ),
        ),
        words.join(' '),
      ).toEqual([]);
    }
  });
});

describe('commands without an agent', () => {
  it('read the hardware themselves', async () => {
    await node.agent?.stop();
    const { status, stdout, stderr } = await command('list');
    expect([status, stdout]).toEqual([0, expect.stringContaining('mlx5_0')]);
    expect(stderr).not.toMatch(AGE);
  });
});
