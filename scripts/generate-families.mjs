// Writes src/probes/families.ts from the folder names below src/probes and the declarations in families/, src/sim/families.ts from the folder
// names below src/sim/families, and each declaration as plain data below src/generated/families/: an agent that uses the shipped declarations
// parses no YAML.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';

const probes = new URL('../src/probes/', import.meta.url);
const simulated = new URL('../src/sim/', import.meta.url);
const declared = new URL('../families/', import.meta.url);
const generated = new URL('../src/generated/families/', import.meta.url);

const foldersOf = (directory) =>
  readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, directory)))
    .map((entry) => entry.name)
    .sort();
const folders = foldersOf(probes);
const simulations = foldersOf(new URL('families/', simulated));
const declarations = readdirSync(declared)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.replace(/\.yaml$/, ''));

rmSync(generated, { recursive: true, force: true });
mkdirSync(generated, { recursive: true });
for (const name of declarations) {
  const data = JSON.stringify(parse(readFileSync(new URL(`${name}.yaml`, declared), 'utf8')), null, 2);
  writeFileSync(
    new URL(`${name}.ts`, generated),
    `// Written by \`npm run generate\` from families/${name}.yaml. Not edited by hand.\nexport const declaration: object = ${data};\n`,
  );
}

const key = (name) => (/^[a-z]+$/.test(name) ? name : `'${name}'`);
const lines = [
  ...folders.map((name) => [name, `async () => (await import('./${name}/index.ts')).family`]),
  ...declarations.map((name) => [name, `async () => shipped((await import('../generated/families/${name}.ts')).declaration)`]),
].sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  new URL('families.ts', probes),
  `// Written by \`npm run generate\` from the folder names and the files in families/. Not edited by hand.
import type { Declaration } from './declared/declaration.ts';
import type { DeviceFamily } from './family.ts';

/** Every device family, loaded only when it is needed. */
export const familyLoaders: Readonly<Record<string, () => Promise<DeviceFamily>>> = {
${lines.map(([name, load]) => `  ${key(name)}: ${load},`).join('\n')}
};

async function shipped(declaration: object): Promise<DeviceFamily> {
  const { familyOf } = await import('./declared/family.ts');
  return familyOf({ declaration: declaration as Declaration, origin: 'package' });
}
`,
);

writeFileSync(
  new URL('families.ts', simulated),
  `// Written by \`npm run generate\` from the folder names. Not edited by hand.
${simulations.map((name) => `import { simulation as ${name} } from './families/${name}/index.ts';`).join('\n')}
import type { SimulatedFamily } from './family-simulation.ts';

/** Every family of which the simulated node has devices. */
export const simulatedFamilies: readonly SimulatedFamily[] = [
${simulations.map((name) => `  { name: '${name}', simulation: ${name} },`).join('\n')}
];
`,
);
