import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { checkDeclaration } from '../../../src/config/families/family-file.ts';
import { declarationSchema } from '../../../src/probes/declared/declaration.ts';
import { ACME } from '../../probes/declared/support.ts';

const directory = mkdtempSync(join(tmpdir(), 'device-agent-shipped-'));
afterAll(() => rmSync(directory, { recursive: true }));
const shipped = readdirSync('families').filter((name) => name.endsWith('.yaml'));

it('families/schema.json is the schema that checks the files of users', () => {
  expect(JSON.parse(readFileSync('families/schema.json', 'utf8'))).toEqual(declarationSchema);
});

it.each(shipped)('%s is valid, names the schema for editors, and is what the program has', async (name) => {
  const text = readFileSync(join('families', name), 'utf8');
  expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=schema.json');
  const { declaration, problems } = await checkDeclaration(text);
  expect(problems).toBeUndefined();
  const generated = await import(`../../../src/generated/families/${name.replace('.yaml', '')}.ts`);
  expect(generated.declaration).toEqual(declaration);
});

/** Writes each module that is asked for to stderr. */
const HOOK = `export async function resolve(name, context, next) { process._rawDebug('asked for ' + name); return next(name, context); }`;
const REGISTER = `import { register } from 'node:module'; register('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(HOOK))});`;

it('the program parses no YAML for them, only for a file of the administrator', () => {
  writeFileSync(join(directory, 'acme.yaml'), ACME);
  const asked = (...flags: string[]): readonly string[] => {
    const hook = `--import=data:text/javascript,${encodeURIComponent(REGISTER)}`;
    const { stdout, stderr } = spawnSync(process.execPath, [hook, 'dist/cli/main.js', 'family', 'list', ...flags], { encoding: 'utf8' });
    for (const name of shipped) expect(stdout).toMatch(new RegExp(`^${name.replace('.yaml', '')} +declared`, 'm'));
    expect(stderr).toContain('asked for commander');
    return stderr.split('\n').filter((line) => line.includes('yaml'));
  };
  expect(asked()).toEqual([]);
  expect(asked(`--family.dir=${directory}`)).toContain('asked for js-yaml');
});
