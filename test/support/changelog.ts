/** Sections of a version, in the order of Keep a Changelog 1.1. */
export const SECTIONS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'] as const;
export type Section = (typeof SECTIONS)[number];

export interface ChangelogVersion {
  /** `Unreleased`, or such as `0.2.0`. */
  readonly name: string;
  /** Absent for what is not released. */
  readonly date?: string;
  /** Lines by their section, without the dash. */
  readonly sections: ReadonlyMap<string, readonly string[]>;
}

/** The versions of a changelog, newest first, and each line that does not have the form. */
export function parseChangelog(text: string): { readonly versions: readonly ChangelogVersion[]; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const versions: { name: string; date?: string; sections: Map<string, string[]> }[] = [];
  const [, ...parts] = `\n${text}`.split(/\n(?=## )/);
  for (const part of parts) {
    const [title = '', ...blocks] = part.split(/\n(?=### )/);
    const [, name, date] =
      /^## \[(Unreleased|(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2})\](?: - (\d{4}-\d{2}-\d{2}))?$/.exec(title.trim()) ?? [];
    if (name === undefined || (name === 'Unreleased') !== (date === undefined) || (date !== undefined && !isDate(date))) {
      problems.push(`not the title of a version: ${title.trim()}`);
      continue;
    }
    const sections = new Map<string, string[]>();
    let rank = -1;
    for (const block of blocks) {
      const [head = '', ...lines] = block.split('\n').filter((line) => line !== '');
      const section = head.slice('### '.length);
      const at = (SECTIONS as readonly string[]).indexOf(section);
      if (at < 0) problems.push(`${name}: no section is named ${section}`);
      else if (at <= rank) problems.push(`${name}: ${section} is not in its place`);
      rank = Math.max(rank, at);
      if (lines.length === 0) problems.push(`${name}: ${section} is empty`);
      for (const line of lines) if (!/^- [a-z][\w .,-]*: \S.*\.$/.test(line)) problems.push(`${name}: no line "- subject: text.": ${line}`);
      sections.set(section, [...(sections.get(section) ?? []), ...lines.map((line) => line.slice(2))]);
    }
    versions.push({ name, ...(date === undefined ? {} : { date }), sections });
  }
  if (versions[0]?.name !== 'Unreleased') problems.push('the first version is not [Unreleased]');
  const released = versions.slice(1);
  for (const [at, version] of released.entries()) {
    const before = released[at - 1];
    if (version.name === 'Unreleased') problems.push('[Unreleased] is not the first version');
    else if (before !== undefined && compareVersions(before.name, version.name) <= 0)
      problems.push(`${version.name} stands below ${before.name}`);
    else if (before !== undefined && String(before.date) < String(version.date))
      problems.push(`${version.name} is later than ${before.name}`);
  }
  return { versions, problems };
}

function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** Below 0 when `a` is the earlier version. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (const [at, part] of (left ?? []).entries()) if (part !== right?.[at]) return part - (right?.[at] ?? 0);
  return 0;
}
