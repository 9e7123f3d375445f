import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startAgent } from '../support/serve.ts';

const root = mkdtempSync(join(tmpdir(), 'device-agent-serve-modules-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Writes the URL of each module that is loaded into a file. */
function recorder(seen: string): string {
  const hook = `import { appendFileSync } from 'node:fs';
export async function load(url, context, next) { appendFileSync(${JSON.stringify(seen)}, url + '\\n'); return next(url, context); }`;
  writeFileSync(join(root, 'hook.mjs'), hook);
  writeFileSync(join(root, 'loader.mjs'), `import { register } from 'node:module'; register('./hook.mjs', import.meta.url);`);
  return join(root, 'loader.mjs');
}

describe('a serving agent', () => {
  it('loads no module of the publisher', async () => {
    for (const folder of ['sys', 'proc', 'dev']) mkdirSync(join(root, folder));
    const seen = join(root, 'modules');
    appendFileSync(seen, '');
    const paths = ['sysfs=sys', 'procfs=proc', 'dev=dev'].map((one) => `--path.${one.replace('=', `=${root}/`)}`);
    const flags = [...paths, `--podresources.socket=${root}/absent.sock`, `--state.file=${root}/state/health.json`];
    const agent = await startAgent([process.execPath, '--import', recorder(seen), 'dist/cli/main.js', 'serve', ...flags]);
    await agent.metrics();
    expect(await agent.stop()).toBe(0);
    const modules = readFileSync(seen, 'utf8').split('\n');
    expect(modules.length).toBeGreaterThan(100);
    expect(modules.filter((url) => /\/cli\/publish\//.test(url))).toEqual([]);
  });
});
