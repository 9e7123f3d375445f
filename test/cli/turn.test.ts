import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import { type ServedAgent, serve } from '../support/serve.ts';
import { MAIN, run } from './command-line.ts';

const WAIT = { interval: 50 };
const WAITS = 'another command reads the devices beside the agent; this one waits';

let folder: string;
let own: readonly string[];
let agent: ServedAgent | undefined;
let held: ClientRequest[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-turn-'));
  for (const name of ['sys', 'proc', 'dev', 'state']) mkdirSync(join(folder, name));
  own = [
    ...['sysfs', 'procfs', 'dev'].map((name) => `--path.${name}=${folder}/${name === 'dev' ? name : name.slice(0, -2)}`),
    `--podresources.socket=${folder}/none.sock`,
    '--podresources.checkpoint=',
    `--state.file=${folder}/state/health.json`,
    '--refresh.interval=200ms',
    ...Object.keys(familyLoaders).map((family) => `--no-probe.${family}`),
  ];
  held = [];
});
afterEach(async () => {
  for (const request of held) request.destroy();
  await agent?.stop('SIGKILL');
  agent = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const control = (): string => join(folder, 'state/control.sock');

/** What a command that reads the devices does: `text` is what it was told so far. */
async function queue(): Promise<{ readonly status: number | undefined; text: string; leave(): void }> {
  return await new Promise((resolve, reject) => {
    const request = get({ socketPath: control(), path: '/turn', agent: false }, (response: IncomingMessage) => {
      const place = { status: response.statusCode, text: '', leave: () => void request.destroy() };
      response
        .on('error', () => undefined)
        .on('data', (part: Buffer) => {
          place.text += part.toString();
        });
      resolve(place);
    });
    held.push(request);
    request.on('error', reject);
  });
}

/** A command, with what it said so far. */
function begun(...words: readonly string[]): { said: string; readonly ended: Promise<number | null> } {
  const child = spawn(process.execPath, [MAIN, ...words, ...own], { stdio: ['ignore', 'ignore', 'pipe'] });
  const command = { said: '', ended: new Promise<number | null>((resolve) => void child.once('close', resolve)) };
  child.stderr.on('data', (part: Buffer) => {
    command.said += part.toString();
  });
  return command;
}

describe('commands that read the devices beside an agent', () => {
  it.each([
    ['capture', ['capture', '-o', '-']],
    ['doctor', ['doctor']],
    ['list --read', ['list', '--read']],
  ])('%s says that it waits for another one, and reads when that has ended', async (_name, words) => {
    agent = await serve(own);
    const first = await queue();
    await expect.poll(() => first.text, WAIT).toBe('your turn\n');
    const command = begun(...words);
    await expect.poll(() => command.said, WAIT).toContain(WAITS);
    const third = await queue();
    expect([third.status, third.text]).toEqual([200, '']);
    first.leave();
    expect(await command.ended).toBeLessThan(2);
    await expect.poll(() => third.text, WAIT).toBe('your turn\n');
  });

  it('one that goes away in the queue holds up nobody', async () => {
    agent = await serve(own);
    const places = [await queue(), await queue(), await queue()];
    places[1]?.leave();
    places[0]?.leave();
    await expect.poll(() => places[2]?.text, WAIT).toBe('your turn\n');
  });

  it('a queue of sixteen is full: the next command says so and goes on', async () => {
    agent = await serve(own);
    for (let place = 0; place < 16; place += 1) await queue();
    expect((await queue()).status).toBe(503);
    const { status, stderr } = await run(['list', '--read', ...own]);
    expect([status, stderr]).toEqual([0, expect.stringContaining('many commands read the devices')]);
  });

  it('waits for nobody without an agent', async () => {
    const { status, stderr } = await run(['list', '--read', ...own]);
    expect([status, stderr.includes('beside the agent')]).toEqual([0, false]);
    expect(existsSync(control())).toBe(false);
  });

  it('waits for no agent that hangs', async () => {
    const hung = createServer(() => undefined);
    await new Promise<void>((resolve) => void hung.listen(control(), resolve));
    const { status, stderr } = await run(['list', '--read', ...own]);
    hung.close();
    expect([status, stderr.includes('beside the agent')]).toEqual([0, false]);
  });
});
