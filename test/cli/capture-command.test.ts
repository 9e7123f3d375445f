import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { PROGRAM } from '../support/program.ts';

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built agent. */
async function command(words: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout, stderr };
}

describe('the commands capture and replay', () => {
  let directory: string;
  let machine: Machine;
  let file: string;
  let flags: readonly string[];
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'device-agent-capture-'));
    machine = new Machine({ infiniband: 1 });
    flags = [...machine.flags(), '--podresources.socket=/nonexistent/kubelet.sock', '--podresources.checkpoint=', '--refresh.interval=1s'];
    file = join(directory, 'node.json.gz');
    const { status, stdout } = await command(['capture', '-o', file, ...flags]);
    expect([status, stdout]).toEqual([0, `${file}: two reads, names replaced\n`]);
  });
  afterAll(() => {
    machine.remove();
    rmSync(directory, { recursive: true });
  });

  it('write an archive that only its owner can read, and no other file', () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(directory)).toEqual(['node.json.gz']);
  });

  it('say which lines differ from an expected page, and end with status 1', async () => {
    expect(await command(['replay', file])).toMatchObject({ status: 0, stdout: 'no difference\n' });
    const page = join(directory, 'page.prom');
    const { stdout } = await command(['replay', file, '-o', 'prom']);
    writeFileSync(page, stdout.replace('device_link_up{device="mlx5_0",port="1"} 1', 'device_link_up{device="mlx5_0",port="1"} 0'));
    const differing = await command(['replay', file, '--expect', page]);
    expect([differing.status, differing.stdout]).toEqual([
      1,
      '-device_link_up{device="mlx5_0",port="1"} 0\n+device_link_up{device="mlx5_0",port="1"} 1\n',
    ]);
  });

  it('go to the standard output with -o -, whose text goes elsewhere', async () => {
    const shell = `"$0" ${PROGRAM} capture -o - ${flags.join(' ')} > ${join(directory, 'piped.json.gz')}`;
    const { status, stderr } = spawnSync('/bin/sh', ['-c', shell, process.execPath], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, expect.stringContaining('two reads, names replaced\n')]);
    expect((await command(['replay', join(directory, 'piped.json.gz')])).status).toBe(0);
    rmSync(join(directory, 'piped.json.gz'));
  });

  it('refuse a place that cannot be written before anything is read', async () => {
    const { status, stderr } = await command(['capture', '-o', '/proc/node.json.gz', ...flags]);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/cannot be written: .*-o - > FILE/s)]);
    const missing = await command(['capture', '-o', join(directory, 'none/node.json.gz'), ...flags]);
    expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining('cannot be written')]);
  });

  it('say that the archive cannot be written, and leave no part of it', async () => {
    const full = join(directory, 'full');
    symlinkSync('/dev', full);
    const { status, stderr } = await command(['capture', '-o', join(full, 'full', 'node.json.gz'), ...flags]);
    expect(status).toBe(1);
    expect(stderr).toContain('cannot be written');
    expect(readdirSync(directory).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it.each([
    ['a file that is no archive', () => Buffer.from('hello'), 'no capture of device-agent'],
    ['an archive that is cut off', () => readFileSync(file).subarray(0, 1_000), 'cut off'],
    ['a film of an earlier version', () => gzipSync(`${'manifest.json'.padEnd(257, '\0')}ustar`), 'it has format 1'],
  ])('refuse %s with a sentence', async (_, bytes, problem) => {
    const bad = join(directory, 'bad.json.gz');
    writeFileSync(bad, bytes());
    for (const words of [
      ['replay', bad],
      ['demo', '--replay', bad],
    ]) {
      const { status, stdout, stderr } = await command(words);
      expect([status, stdout]).toEqual([2, '']);
      expect(stderr).toContain(problem);
      expect(stderr).not.toMatch(/^ +at /m);
    }
  });

  it('refuse wrong options with a sentence', async () => {
    expect(await command(['replay'])).toMatchObject({ status: 2, stderr: expect.stringContaining('a capture is missing') });
  });
});
