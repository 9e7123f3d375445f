// Compiles the program into dist, file by file: a command that runs from there keeps what did not change, and finds each file at any moment.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeWebAssets } from './web-assets.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
/** Beside `dist`, because files move between the two by their names. */
const made = join(root, `dist-new-${process.pid}`);
const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );

try {
  try {
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', root, '--outDir', made], { stdio: 'inherit' });
  } catch {
    process.exit(1);
  }
  await writeWebAssets(join(made, 'web'));
  chmodSync(join(made, 'cli/main.js'), 0o755);
  const files = new Set(filesOf(made).map((file) => file.slice(made.length)));
  for (const file of files) {
    const target = dist + file;
    if (existsSync(target) && readFileSync(target).equals(readFileSync(made + file))) continue;
    mkdirSync(dirname(target), { recursive: true });
    renameSync(made + file, target);
  }
  for (const file of filesOf(dist)) if (!files.has(file.slice(dist.length))) rmSync(file, { force: true });
} finally {
  rmSync(made, { recursive: true, force: true });
}
