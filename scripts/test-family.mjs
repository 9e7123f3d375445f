// Runs all tests that hold a family: those that go over all families, and those whose path or imports name it.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const [family, ...more] = process.argv.slice(2);
if (family === undefined || !/^[a-z0-9]+$/.test(family)) {
  process.stderr.write('Name a family: npm run test:family -- nvme\n');
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
