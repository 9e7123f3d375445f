/**
 * The comments of `values.yaml` by the path of the value below them, such as `image.tag`. They are the only source of the descriptions in the schema and in
 * the README of the chart. A comment that an empty line separates from the next value belongs to none.
 */
export function commentsOf(yaml: string): ReadonlyMap<string, string> {
  const comments = new Map<string, string>();
  const path: string[] = [];
  let lines: string[] = [];
  for (const line of yaml.split('\n')) {
    const remark = /^ *# ?(.*)$/.exec(line)?.[1];
    const [, indent = '', key] = /^((?: {2})*)([\w-]+):/.exec(line) ?? [];
    if (remark !== undefined) {
      lines.push(remark);
      continue;
    }
    if (key !== undefined) {
      path.splice(indent.length / 2, Number.POSITIVE_INFINITY, key);
      if (lines.length > 0) comments.set(path.join('.'), lines.join(' '));
    }
    lines = [];
  }
  return comments;
}
