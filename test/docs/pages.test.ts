import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const PAGES = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path): readonly [string, string] => [`docs/${path}`, readFileSync(`docs/${path}`, 'utf8')]);
const flags = new Set(readFileSync('docs/configuration.md', 'utf8').match(/--[a-z][a-z.-]+[a-z]/g));
/** Flags of other programs. */
const COMMANDS = /^--(?:namespace|field|ignore|delete|image|profile|device|clear|since|previous|show|gpu|max|heap|help|sim|no-collector)/;
const OURS =
  /--(?:no-)?(?:config|path|podresources|podsapi|dra|cdi|refresh|device|plugin|state|labels|web|log|probe|health-feed|incidents)\.[a-z.-]*[a-z]/g;

describe('pages', () => {
  it.each(PAGES)('%s names options that exist', (_path, page) => {
    const named = [...page.matchAll(OURS)].map(([flag]) => flag).filter((flag) => !COMMANDS.test(flag));
    expect(named.filter((flag) => !flags.has(flag) && ![...flags].some((one) => one.startsWith(`${flag}.`)))).toEqual([]);
  });

  it.each(PAGES)('%s links to headings and pages that exist', (path, page) => {
    const folder = path.slice(0, path.lastIndexOf('/'));
    const links = [...page.matchAll(/\]\(([^)#\s]+\.md)(?:#([\w-]+))?\)/g)].map(([, target, heading]) => ({
      target: target as string,
      heading,
    }));
    const known = new Map(PAGES);
    const wrong = links.filter(({ target, heading }) => {
      const file = new URL(`${folder}/${target}`, 'file:///').pathname.slice(1);
      const text = known.get(file) ?? (file.startsWith('docs/') ? undefined : '');
      const slug = (title: string): string =>
        title
          .toLowerCase()
          .replaceAll(/[^\w\s-]/g, '')
          .replaceAll(' ', '-');
      const headings = [...(text ?? '').matchAll(/^#+ (.*)$/gm)].map(([, title]) => slug(title as string));
      return text === undefined || (heading !== undefined && !headings.includes(heading));
    });
    expect(wrong).toEqual([]);
  });

  it.each(PAGES)('%s has YAML that can be read', (_path, page) => {
    for (const [, text] of page.matchAll(/```yaml\n(.*?)```/gs)) expect(() => parse(text as string)).not.toThrow();
  });
});
