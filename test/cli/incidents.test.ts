import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from './command-line.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-incidents-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const incidents = (...flags: readonly string[]) => run(['incidents', '--web.listen-address=127.0.0.1:1', ...flags]);

describe('device-agent incidents without an agent', () => {
  it.each([[[]], [['--pod=ml/train-0']], [['--by=device']], [['-o', 'json']]])('fails where nothing is kept, with %j', async (flags) => {
    for (const file of ['', join(folder, 'health.json')])
      expect(await incidents(`--state.file=${file}`, ...flags)).toMatchObject({
        status: 1,
        stdout: '',
        stderr: expect.stringMatching(/no agent answers, and there are no incidents on the disk to read: .*\n.*--state\.file/),
      });
  });

  it('fails where the directory cannot be listed', async () => {
    writeFileSync(join(folder, 'health.json'), '{}');
    writeFileSync(join(folder, 'incidents'), '');
    expect(await incidents(`--state.file=${folder}/health.json`)).toMatchObject({ status: 1, stdout: '' });
  });

  it('says that there are none where an agent ran and recorded none', async () => {
    mkdirSync(join(folder, 'run'));
    writeFileSync(join(folder, 'run/health.json'), '{}');
    expect(await incidents(`--state.file=${folder}/run/health.json`)).toMatchObject({ status: 0, stdout: 'There are no incidents.\n' });
  });
});
