import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const DOCS = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path) => `docs/${path}`);
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...DOCS].map((path): readonly [string, string] => [
  path,
  readFileSync(path, 'utf8'),
]);
/** Files that the programs make. */
const MADE = ['bench/results/'];
/** Paths of this repository in backticks. Those with a placeholder are patterns. */
const FILES = /`((?:src|test|scripts|bench|deploy|dashboards|docs|proto|families)\/[\w./-]*\w\/?)`/g;
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
    const links = [...page.matchAll(/\]\(([^)#\s]+\.md|(?=#))(?:#([\w-]+))?\)/g)].map(([, target, heading]) => ({
      target: target === '' ? basename(path) : (target as string),
      heading,
    }));
    const known = new Map(PAGES);
    const slug = (title: string): string =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, '')
        .replaceAll(' ', '-');
    const wrong = links.filter(({ target, heading }) => {
      const file = normalize(`${dirname(path)}/${target}`);
      const headings = [...(known.get(file) ?? '').matchAll(/^#+ (.*)$/gm)].map(([, title]) => slug(title as string));
      return !existsSync(file) || (heading !== undefined && !headings.includes(heading));
    });
    expect(wrong).toEqual([]);
  });

  it.each(PAGES)('%s names files that exist', (_path, page) => {
    const named = [...page.matchAll(FILES)].map(([, file]) => file as string);
    expect(named.filter((file) => !MADE.includes(file) && !existsSync(file))).toEqual([]);
  });

  it('about alerts name keys of the configuration that exist', () => {
    const reference = readFileSync('docs/configuration.md', 'utf8');
    const [, policy = ''] = /^## health\n.*?```yaml\n(.*?)```/ms.exec(reference) ?? [];
    const known = [
      ...(reference.match(/(?<=\| `)[a-z-]+\.[a-z.-]+(?=` \|)|(?<=^## )[a-z]+\.[a-z]+$/gm) ?? []),
      ...Object.keys(parse(policy).health).map((key) => `health.${key}`),
    ];
    const sections = new Set(known.map((key) => key.split('.')[0]));
    const alerts = [
      ...PAGES.filter(([path]) => path.includes('/runbooks/')).map(([, page]) => page),
      readFileSync('deploy/rules.yaml', 'utf8'),
    ];
    const named = alerts.flatMap((text) => [...text.matchAll(/`([a-z]+)\.([a-z-]+)`/g)]);
    const keys = named.flatMap(([, section = '', key]) => (sections.has(section) ? [`${section}.${key}`] : []));
    expect(keys).toContain('join.rules');
    expect(keys.filter((key) => !known.includes(key))).toEqual([]);
  });

  it('are few', () => {
    expect(DOCS.length).toBeLessThanOrEqual(55);
  });

  it('are all found from the table of docs/README.md', () => {
    const [, table = ''] = readFileSync('docs/README.md', 'utf8').split('| Question | Page |');
    const linked = [...table.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target);
    const ofFolders = DOCS.filter((path) => dirname(path) === 'docs');
    expect(ofFolders.filter((path) => path !== 'docs/README.md' && !linked.includes(basename(path)))).toEqual([]);
  });

  it.each(PAGES)('%s has YAML that can be read', (_path, page) => {
    for (const [, text] of page.matchAll(/```yaml\n(.*?)```/gs)) expect(() => parse(text as string)).not.toThrow();
  });
});
