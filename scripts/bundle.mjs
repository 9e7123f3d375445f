// Writes the agent as few files into a directory (default dist-bundle): node scripts/bundle.mjs [directory]
// One file for each thing that is started - the program, the readers of hardware, the threads of passwords, facts and the kernel log - and the parts that
// these share, or load only when they need them: what a thread does not load takes none of its memory.
// What it writes needs nothing but Node: no node_modules, no installation. koffi keeps its own folder, since its native part
// is a file that the loader must find.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { analyzeMetafile, build } from 'esbuild';
import { writeWebAssets } from './web-assets.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Where the bundle is for esbuild. Its source maps name sources from there: they are the same wherever the files are written to. */
const NAMED = join(root, 'dist-bundle');
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

// A CommonJS package that is loaded late becomes a part of its own, whose names esbuild does not tell: they are told here.
const require = createRequire(import.meta.url);
const lateCommonJs = {
  name: 'late-common-js',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:ajv|systeminformation)$/ }, ({ path, kind, resolveDir }) =>
      kind === 'dynamic-import' ? { path, namespace: 'late', pluginData: { resolveDir } } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'late' }, ({ path, pluginData: { resolveDir } }) => {
      const names = Object.keys(require(path)).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default');
      const contents = `import all from '${path}'; export default all; export const { ${names.join(', ')} } = all;`;
      return { contents, resolveDir };
    });
  },
};

// The program knows a family by its declarations; only a reader ever makes the probe and has its code.
const withoutProbes = {
  name: 'without-probes',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/probes\/[\w-]+\/(?:probe|kernel-log)\.ts$/ }, ({ path }) => {
      const code = readFileSync(path, 'utf8');
      const [value] = /^export const \w+/m.exec(code) ?? [];
      if (value !== undefined) throw new Error(`${path}: the program has no part of a probe: move "${value}" to the declaration`);
      const names = [...code.matchAll(/^export (?:async )?(?:class|function) (\w+)/gm)].map(([, name]) => name);
      const text = (name) => `export function ${name}() { throw new Error('a probe runs in a reader'); }`;
      return { contents: names.map(text).join('\n') };
    });
  },
};

const settings = {
  absWorkingDir: root,
  outdir: NAMED,
  write: false,
  bundle: true,
  splitting: true,
  chunkNames: '[name]-[hash]',
  platform: 'node',
  format: 'esm',
  target: `node${/\d+\.\d+/.exec(manifest.engines.node)[0]}`,
  external: ['koffi'],
  // Identifiers stay: names of functions and classes appear in logs and profiles, and they cost little.
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'linked',
  banner: { js: requireForCommonJs },
  metafile: true,
  logLevel: 'warning',
};

// Threads and processes share no code in memory: each is built for itself.
const PARTS = [
  ['main', 'src/cli/main.ts', [withoutBodies, lateCommonJs, withoutProbes]],
  ['reader', 'src/supervisor/reader.ts', []],
  ['password-worker', 'src/server/access/password-worker.ts', []],
  ['facts-worker', 'src/host/facts-worker.ts', []],
  ['kernel-worker', 'src/incidents/kernel-worker.ts', []],
  ['document-worker', 'src/kubelet/document-worker.ts', []],
];

/** Resolves to the folders of the packages whose code is in the files, and to what esbuild tells of each part. */
export async function writeBundle(target) {
  rmSync(target, { recursive: true, force: true });
  const packages = new Set(['node_modules/koffi']);
  const metafiles = [];
  for (const [name, entry, plugins] of PARTS) {
    const { metafile, outputFiles } = await build({ ...settings, entryPoints: { [name]: entry }, plugins });
    metafiles.push(metafile);
    for (const input of Object.keys(metafile.inputs)) {
      const folder = /^(?:late:)?(.*node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(input)?.[1];
      if (folder !== undefined) packages.add(folder);
    }
    for (const { path, contents, text } of outputFiles) {
      const file = join(target, relative(NAMED, path));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, contents, { mode: text.startsWith('#!') ? 0o755 : 0o644 });
    }
  }
  for (const folder of await writeWebAssets(join(target, 'web'))) packages.add(folder);
  // Makes the files modules wherever they lie, and tells the version.
  const { name, version, license } = manifest;
  writeFileSync(join(target, 'package.json'), `${JSON.stringify({ name, version, license, type: 'module', private: true }, null, 2)}\n`);
  copyKoffi(target);
  const folders = [...packages].sort();
  writeFileSync(join(target, 'licences.txt'), licences(folders));
  return { folders, metafiles };
}

/** Each package whose code is in the bundle: name, version, licence, and the text of its licence, which has to go with copies. */
function licences(folders) {
  const entries = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const file = readdirSync(join(root, folder)).find((each) => /^(?:licen[cs]e|copying)/i.test(each));
    if (license === undefined) throw new Error(`${folder} names no licence`);
    const text = file === undefined ? '' : `\n${readFileSync(join(root, folder, file), 'utf8').trim()}\n`;
    return `${name} ${version} - ${license}\n${text}`;
  });
  return `Packages in this program, with their licences.\n\n${entries.join(`\n${'-'.repeat(100)}\n\n`)}`;
}

/** The JavaScript part of koffi and the native parts that are installed here; its sources in C stay behind. */
function copyKoffi(target) {
  const packages = join(root, 'node_modules');
  const isNeeded = (path) => (statSync(path).isDirectory() ? !/\/(?:doc|vendor)$/.test(path) : /\.(?:c?js|json|node|txt)$/.test(path));
  for (const name of ['koffi', '@koromix']) {
    cpSync(join(packages, name), join(target, 'node_modules', name), { recursive: true, filter: isNeeded });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { metafiles } = await writeBundle(resolve(process.argv[2] ?? NAMED));
  for (const metafile of metafiles) {
    if (process.argv.includes('--analyze')) console.log(await analyzeMetafile(metafile));
    for (const [file, { bytes }] of Object.entries(metafile.outputs)) {
      if (file.endsWith('.js')) console.log(`${(bytes / 1024).toFixed(0).padStart(6)} KiB  ${file}`);
    }
  }
}
