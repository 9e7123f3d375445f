import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

export interface ImageStart {
  readonly env: Readonly<Record<string, string>>;
  /** Program and arguments, as the image's entry point has them. */
  readonly entrypoint: readonly string[];
  readonly arguments: readonly string[];
}

/** What the last stage of a Dockerfile starts. Reads the forms that ours has: one `ENV`, `ENTRYPOINT` and `CMD` as JSON lists. */
export function imageStart(file: string): ImageStart {
  const stage = readFileSync(file, 'utf8')
    .split(/^FROM /m)
    .at(-1) as string;
  const list = (name: string): string[] => JSON.parse(new RegExp(`^${name} (\\[.*\\])$`, 'm').exec(stage)?.[1] ?? '[]') as string[];
  const variables = /^ENV (.+)$/m.exec(stage)?.[1]?.split(' ') ?? [];
  return {
    env: Object.fromEntries(variables.map((variable) => variable.split('=') as [string, string])),
    entrypoint: list('ENTRYPOINT'),
    arguments: list('CMD'),
  };
}

/** The DaemonSet among the manifests of `deploy/`. */
export function daemonSet<T>(): T {
  const documents = parseAllDocuments(readFileSync('deploy/kustomize/base/manifests.yaml', 'utf8')).map(
    (document) => document.toJS() as { kind: string },
  );
  return documents.find(({ kind }) => kind === 'DaemonSet') as T;
}
