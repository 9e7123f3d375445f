// Loads TypeScript sources that are not part of the built program.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Resolves to the modules of the sources, which are paths below the root of the project, without `.ts`. */
export async function loadSources(sources) {
  // Inside the project, so that the bundle finds its packages.
  const directory = mkdtempSync(join(root, 'node_modules/.generate-'));
  try {
    const entryPoints = sources.map((source) => join(root, `${source}.ts`));
    const output = { outdir: directory, outbase: root, outExtension: { '.js': '.mjs' } };
    await build({ entryPoints, ...output, bundle: true, packages: 'external', platform: 'node', format: 'esm' });
    return await Promise.all(sources.map((source) => import(pathToFileURL(join(directory, `${source}.mjs`)))));
  } finally {
    rmSync(directory, { recursive: true });
  }
}
