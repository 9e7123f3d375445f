// Writes the agent as one file per thread into a directory (default dist-bundle): node scripts/bundle.mjs [directory]
// What it writes needs nothing but Node: no node_modules, no installation. koffi keeps its own folder, since its native part
// is a file that the loader must find.
import { cpSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { analyzeMetafile, build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = resolve(process.argv[2] ?? join(root, 'dist-bundle'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

// CommonJS packages ask for Node's own modules by `require`, which modules do not have.
const requireForCommonJs = `import { createRequire as createRequire__ } from 'node:module'; const require = createRequire__(import.meta.url);`;

// express loads the parsers of request bodies and their character tables at start. The agent answers GET and HEAD only.
const withoutBodies = {
  name: 'without-bodies',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^body-parser$/ }, ({ path }) => ({ path, namespace: 'empty' }));
    onLoad({ filter: /.*/, namespace: 'empty' }, () => ({ contents: 'module.exports = {};' }));
  },
};

rmSync(target, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { main: 'src/cli/main.ts', 'probe-worker': 'src/agent/probe-worker.ts', 'facts-worker': 'src/agent/facts-worker.ts' },
  outdir: target,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: `node${/\d+\.\d+/.exec(manifest.engines.node)[0]}`,
  external: ['koffi'],
  plugins: [withoutBodies],
  // Identifiers stay: names of functions and classes appear in logs and profiles, and they cost little.
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'linked',
  banner: { js: requireForCommonJs },
  metafile: true,
  logLevel: 'warning',
});

// Makes the files modules wherever they lie, and tells the version.
const { name, version, license } = manifest;
writeFileSync(join(target, 'package.json'), `${JSON.stringify({ name, version, license, type: 'module', private: true }, null, 2)}\n`);
copyKoffi();
if (process.argv.includes('--analyze')) console.log(await analyzeMetafile(metafile));
for (const [file, { bytes }] of Object.entries(metafile.outputs)) {
  if (file.endsWith('.js')) console.log(`${(bytes / 1024).toFixed(0).padStart(6)} KiB  ${file}`);
}

/** The JavaScript part of koffi and the native parts that are installed here; its sources in C stay behind. */
function copyKoffi() {
  const packages = join(root, 'node_modules');
  const isNeeded = (path) => (statSync(path).isDirectory() ? !/\/(?:doc|vendor)$/.test(path) : /\.(?:c?js|json|node|txt)$/.test(path));
  for (const name of ['koffi', '@koromix']) {
    cpSync(join(packages, name), join(target, 'node_modules', name), { recursive: true, filter: isNeeded });
  }
}
