// The agent as the image starts it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Node's own flags and the variables of the image's entry point. */
export function imageStart() {
  const stage = readFileSync(here('../../deploy/Dockerfile'), 'utf8')
    .split(/^FROM /m)
    .at(-1);
  const [, ...words] = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(stage)[1]);
  const variables = /^ENV (.+)$/m.exec(stage)[1].split(' ');
  return { flags: words.slice(0, -1), env: Object.fromEntries(variables.map((variable) => variable.split('='))) };
}

/** Bundles into a temporary directory. `words` and `env` start it. */
export function makeBundle() {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-bundle-'));
  execFileSync(process.execPath, [here('../../scripts/bundle.mjs'), directory], { stdio: 'ignore' });
  const { flags, env } = imageStart();
  return { words: [...flags, join(directory, 'main.js')], env, remove: () => rmSync(directory, { recursive: true, force: true }) };
}
