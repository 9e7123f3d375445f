import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ServedAgent, serve } from '../support/serve.ts';

/** A machine without devices, in the boot that the files name. */
let root: string;
let agent: ServedAgent | undefined;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kept-files-'));
  for (const folder of ['sys', 'proc/sys/kernel/random', 'dev']) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'proc/sys/kernel/random/boot_id'), 'unknown\n');
  cpSync(new URL('state-5', import.meta.url), join(root, 'state'), { recursive: true });
});
afterEach(async () => {
  await agent?.stop('SIGKILL');
  agent = undefined;
  rmSync(root, { recursive: true, force: true });
});

const place = (name: string): string => join(root, 'state', name);
const text = (name: string): string => readFileSync(place(name), 'utf8');
const kept = (): readonly string[] => readdirSync(place('')).filter((name) => name.includes('.unused'));

/** A run of the agent, with what it logged about saved files. `ask`: what to do while it runs. */
async function run(ask: (agent: ServedAgent) => Promise<void> = async () => undefined): Promise<readonly Record<string, unknown>[]> {
  const paths = ['sysfs', 'procfs', 'dev'].map((name) => `--path.${name}=${join(root, name.replace(/fs$/, ''))}`);
  const flags = ['--podresources.checkpoint=', `--podresources.socket=${root}/none.sock`, '--family.dir=', '--refresh.interval=200ms'];
  agent = await serve([...paths, ...flags, `--state.file=${place('health.json')}`]);
  await agent.until('a snapshot', (page) => page.includes('device_agent_snapshot_timestamp_seconds '));
  await ask(agent);
  await agent.stop();
  const lines = agent
    .log()
    .split('\n')
    .filter((line) => line.includes('is not used'));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Gives the first line of a file another version; what it has after it is of no form that this agent knows. */
function newer(name: string, version: number): string {
  const [first = '', ...rest] = text(name).split('\n');
  writeFileSync(
    place(name),
    [first.replace(/"version":\d+/, `"version":${version}`), `what only version ${version} knows`, ...rest].join('\n'),
  );
  return text(name);
}

describe('the files of a newer agent', () => {
  it('stay byte for byte over restarts, and each start that finds one says so once', async () => {
    const [incident = ''] = readdirSync(place('incidents')).map((name) => `incidents/${name}`);
    const logs = { 'findings/findings-20270101T000000Z.jsonl': 'findings', 'usage/usage-20270101T000000Z.jsonl': 'usage' };
    for (const [name, format] of Object.entries(logs)) {
      mkdirSync(join(place(name), '..'), { recursive: true });
      writeFileSync(place(name), `{"format":"device-agent-${format}","version":4}\nwhat only version 4 knows\n`);
    }
    const head = text(incident).replace('"version":1', '"version":4');
    writeFileSync(place(incident), head);
    const others = new Map([incident, ...Object.keys(logs)].map((name) => [name, text(name)]));
    const [health, usage] = [newer('health.json', 6), newer('usage.json', 6)];

    const told = await run(async ({ url }) => {
      const { incidents } = (await (await fetch(`${url}/api/incidents`)).json()) as { readonly incidents: readonly object[] };
      expect(incidents).toEqual([expect.objectContaining({ newerVersion: 4 })]);
    });
    expect(told).toEqual(
      ['health', 'usage'].map((name) =>
        expect.objectContaining({
          level: 'warn',
          reason: 'other-version',
          path: place(`${name}.json`),
          detail: 'has version 6; this agent uses version 5',
          kept: place(`${name}.json.unused`),
        }),
      ),
    );
    expect([text('health.json.unused'), text('usage.json.unused')]).toEqual([health, usage]);
    expect(await run(), 'the files in use are of this agent').toEqual([]);

    // A second downgrade, from another version.
    const [later, laterUsage] = [newer('health.json', 6), newer('usage.json', 6)];
    expect((await run()).map((line) => line.kept)).toEqual(['health', 'usage'].map((name) => place(`${name}.json.unused-2`)));
    expect(await run()).toEqual([]);
    expect(kept()).toEqual(['health.json.unused', 'health.json.unused-2', 'usage.json.unused', 'usage.json.unused-2']);
    expect([text('health.json.unused'), text('usage.json.unused')]).toEqual([health, usage]);
    expect([text('health.json.unused-2'), text('usage.json.unused-2')]).toEqual([later, laterUsage]);
    for (const [name, was] of others) expect(text(name), name).toBe(was);
  });

  it('are at most nine, of which the last is replaced', async () => {
    for (const at of ['', ...Array.from({ length: 8 }, (_, n) => `-${n + 2}`)])
      writeFileSync(place(`usage.json.unused${at}`), `kept ${at}`);
    const [usage] = [newer('usage.json', 6)];
    expect(await run()).toEqual([expect.objectContaining({ kept: place('usage.json.unused-9') })]);
    expect(kept()).toHaveLength(9);
    expect([text('usage.json.unused'), text('usage.json.unused-8'), text('usage.json.unused-9')]).toEqual(['kept ', 'kept -8', usage]);
  });
});
