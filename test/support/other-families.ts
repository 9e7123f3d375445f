import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';

/** The built agent in a folder of its own, in which the code of some families is another one. */
export interface OtherBuild {
  readonly root: string;
  import<T>(module: string): Promise<T>;
}

/** `sources`: by name of a family, the module that takes its place. */
export function buildWithFamilies(sources: Readonly<Record<string, string>>): OtherBuild {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-build-'));
  cpSync('dist', join(root, 'dist'), { recursive: true });
  // The maps in it lead to the sources.
  symlinkSync(resolve('src'), join(root, 'src'));
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, 'package.json'), readFileSync('package.json'));
  for (const [name, source] of Object.entries(sources)) {
    const outfile = join(root, `dist/probes/${name}/index.js`);
    buildSync({ entryPoints: [source], outfile, bundle: true, platform: 'node', format: 'esm', allowOverwrite: true });
  }
  return { root, import: (module) => import(pathToFileURL(join(root, 'dist', module)).href) };
}
