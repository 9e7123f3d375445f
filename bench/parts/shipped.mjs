// What ships: the bundle, started as the image starts it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Words after `node` and variables of the image's entry point; the words end with the program's place in the image. */
export function imageStart() {
  const stage = readFileSync(here('../../deploy/Dockerfile'), 'utf8')
    .split(/^FROM /m)
    .at(-1);
  const [, ...words] = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(stage)[1]);
  const variables = /^ENV (.+)$/m.exec(stage)[1].split(' ');
  return { words, env: Object.fromEntries(variables.map((variable) => variable.split('='))) };
}

/** Node's own flags among them. */
export const imageFlags = () => imageStart().words.slice(0, -1);

/** Bundles into a temporary directory. `image` is started as in the image, `plain` by `node main.js`. */
export function makeBundle() {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-bundle-'));
  execFileSync(process.execPath, [here('../../scripts/bundle.mjs'), directory], { stdio: 'ignore' });
  const program = join(directory, 'main.js');
  return {
    image: { words: [...imageFlags(), program], env: imageStart().env },
    plain: { words: [program], env: {} },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
