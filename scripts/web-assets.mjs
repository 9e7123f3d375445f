// Writes the files that the HTML pages load, and the documentation, into a directory: node scripts/web-assets.mjs <directory>
// The sources are TypeScript for the browser. They become one file each, so that a page needs one request for each.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { documentHtml } from './document-html.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Resolves to the folders of the packages whose code is in the files. */
export async function writeWebAssets(directory) {
  const target = resolve(directory);
  mkdirSync(target, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { live: 'src/web/live.ts' },
    outdir: target,
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    metafile: true,
    logLevel: 'warning',
  });
  // The pages that alerts name, and those that these link.
  for (const folder of ['', 'runbooks', 'health']) {
    mkdirSync(join(target, 'docs', folder), { recursive: true });
    for (const name of readdirSync(join(root, 'docs', folder)).filter((file) => file.endsWith('.md'))) {
      const [source, copy] = [join(root, 'docs', folder, name), join(target, 'docs', folder, name)];
      copyFileSync(source, copy);
      writeFileSync(copy.replace(/\.md$/, '.html'), documentHtml(readFileSync(source, 'utf8')));
    }
  }
  const folders = Object.keys(metafile.inputs).map(
    (input) => /^(?:\.\.\/)*(?:[^/]+\/)*?(node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(input)?.[1],
  );
  return new Set(folders.filter((folder) => folder !== undefined));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeWebAssets(process.argv[2] ?? join(root, 'dist/web'));
