// Writes the reference pages below docs/ from the declarations in dist/, and the schema of declarations. The shipped ones are checked like those of users.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { checkDeclaration } from '../dist/config/families/family-file.js';
import { loadFamilies } from '../dist/config/sections.js';
import { declarationSchema } from '../dist/probes/declared/declaration.js';
import { familyLoaders } from '../dist/probes/families.js';
import { loadSources } from './load-sources.mjs';

const families = new URL('../families/', import.meta.url);
writeFileSync(new URL('schema.json', families), `${JSON.stringify(declarationSchema, null, 2)}\n`);
for (const name of readdirSync(families).filter((one) => one.endsWith('.yaml'))) {
  const { problems = [] } = await checkDeclaration(readFileSync(new URL(name, families), 'utf8'));
  for (const { line, column, message } of problems) console.error(`families/${name}:${line}:${column}: ${message}`);
  if (problems.length > 0) process.exitCode = 1;
}

const [reference] = await loadSources(['scripts/reference/pages']);
const pages = await reference.referencePages(await loadFamilies(familyLoaders));
const health = new URL('../docs/health', import.meta.url);
rmSync(health, { recursive: true, force: true });
mkdirSync(health);
for (const [path, text] of Object.entries(pages)) writeFileSync(new URL(`../${path}`, import.meta.url), text);
