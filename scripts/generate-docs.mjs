// Writes the reference pages below docs/ from the declarations in dist/.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { loadFamilies } from '../dist/config/sections.js';
import { familyLoaders } from '../dist/probes/families.js';
import { loadSources } from './load-sources.mjs';

const [reference] = await loadSources(['scripts/reference/pages']);
const pages = await reference.referencePages(await loadFamilies(familyLoaders));
const health = new URL('../docs/health', import.meta.url);
rmSync(health, { recursive: true, force: true });
mkdirSync(health);
for (const [path, text] of Object.entries(pages)) writeFileSync(new URL(`../${path}`, import.meta.url), text);
