// npm run test:gpu [-- --out=FOLDER --gpu-reset]: compares the agent with nvidia-smi on this machine, and writes gpu-report.md and .json.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
process.chdir(here('../..'));
const folder = mkdtempSync(join(here('../../node_modules'), '.gpu-'));
try {
  const outfile = join(folder, 'main.mjs');
  // Packages stay outside, so that they are found as they are.
  await build({
    entryPoints: [here('main.ts')],
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    outfile,
    logLevel: 'error',
  });
  const { main } = await import(outfile);
  process.exitCode = await main(process.argv.slice(2), (text) => process.stdout.write(`${text}\n`));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
