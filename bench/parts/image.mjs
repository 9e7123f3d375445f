// The agent as the image starts it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { imageStart as readStart } from '../../scripts/image/start.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Node's own flags and the variables of the image's entry point. */
export function imageStart() {
  const { entrypoint, env } = readStart();
  return { flags: entrypoint.slice(1, -1), env };
}

/**
 * Bundles into a temporary directory. `words` and `env` start it. `given`: flags of Node instead of those of the image. `checkout`: of
 * another version.
 */
export function makeBundle(given, checkout = here('../..')) {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-bundle-'));
  execFileSync(process.execPath, [join(checkout, 'scripts/bundle.mjs'), directory], { stdio: 'ignore' });
  const { flags, env } = imageStart();
  return {
    words: [...(given ?? flags), join(directory, 'main.js')],
    env,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
