// Runs all tests that hold a family: those that go over all families, and those whose path or imports name it.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const [family, ...more] = process.argv.slice(2);
const namesIn = (folder, ending) =>
  readdirSync(folder).flatMap((name) => (name.endsWith(ending) ? [name.slice(0, name.length - ending.length)] : []));
const inCode = namesIn('src/probes', '').filter((name) => existsSync(`src/probes/${name}/index.ts`));
const known = [...inCode, ...namesIn('families', '.yaml')].sort();
if (!known.includes(family)) {
  const which = family === undefined ? 'Name a family' : `There is no family ${family}`;
  process.stderr.write(`${which}: npm run test:family -- ${known.join('|')}\n`);
  process.exit(2);
}
/** Tests that go over all families. Those of commands and of the whole program only switch the others off. */
const ALL = /\b(?:familyLoaders|loadFamilies|simulatedFamilies)\b/;
const ALL_BY_PLACE = /^test\/(?:probes|oracle)\/[^/]+$/;
const NOT_ALL = /^test\/(?:cli|e2e|node)\//;
const own = new RegExp(`(?:probes|families|false-alarms)/${family}[/.']`);
const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/${name}`)
  .filter((path) => {
    if (path.includes(family) || ALL_BY_PLACE.test(path)) return true;
    const text = readFileSync(path, 'utf8');
    return own.test(text) || (ALL.test(text) && !NOT_ALL.test(path));
  });
const projects = ['pure', 'tests', 'programs'].flatMap((name) => ['--project', name]);
const { status } = spawnSync('node_modules/.bin/vitest', ['run', ...projects, ...more, ...files], { stdio: 'inherit' });
process.exit(status ?? 1);
