// Writes the reference pages below docs/ from the declarations in dist/.
import { writeFileSync } from 'node:fs';
import { referencePages } from '../dist/cli/reference-pages.js';
import { loadFamilies } from '../dist/config/sections.js';
import { familyLoaders } from '../dist/probes/families.js';

const pages = await referencePages(await loadFamilies(familyLoaders));
for (const [path, text] of Object.entries(pages)) writeFileSync(new URL(`../${path}`, import.meta.url), text);
