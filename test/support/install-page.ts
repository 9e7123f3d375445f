import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** A block of YAML of docs/install.md below a heading. */
export interface Block {
  readonly heading: string;
  readonly text: string;
  readonly content: Readonly<Record<string, unknown>>;
}

const PAGE = 'docs/install.md';

/** The lines of the block of shell commands below a heading. */
export function installCommands(heading: string): readonly string[] {
  const section = readFileSync(PAGE, 'utf8').split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const block = /^```sh\n([\s\S]*?)^```$/m.exec(section)?.[1];
  if (block === undefined) throw new Error(`${PAGE} has no commands below "${heading}"`);
  return block.trim().split('\n');
}

/** All blocks of YAML of the page, in its order. */
export function installBlocks(): readonly Block[] {
  let heading = '';
  return [...readFileSync(PAGE, 'utf8').matchAll(/^#+ (.+)$|^```yaml\n([\s\S]*?)^```$/gm)].flatMap(([, title, text]) => {
    if (title !== undefined) heading = title;
    return text === undefined ? [] : [{ heading, text, content: parse(text) as Block['content'] }];
  });
}

/** Those that are values of the chart: they are neither manifests nor the configuration of another program. */
export const valueBlocks = (): readonly Block[] =>
  installBlocks().filter(({ content }) => !('apiVersion' in content || 'version' in content));

/** The values of each platform, by its heading. */
export const valuesOfPlatforms = (): Readonly<Record<string, object>> =>
  Object.fromEntries(valueBlocks().map(({ heading, content }) => [heading, content]));
