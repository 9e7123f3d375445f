import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { systemWords, UserError } from '../../errors.ts';
import { type DeclaredFamily, familyOf } from '../../probes/declared/family.ts';
import type { DeviceFamily } from '../../probes/family.ts';

/** Limit of files in the directory. Each family can have a thread. */
const MOST_FILES = 64;

/** The directory of declarations, and how its name was given. */
export interface FamilyDirectory {
  readonly path: string;
  /** A directory other than the default one must exist. */
  readonly isGiven: boolean;
}

/** The declared families of a directory. Throws {@link UserError} for the first file that is wrong. */
export async function readFamilyDirectory({ path, isGiven }: FamilyDirectory): Promise<readonly DeclaredFamily[]> {
  if (path === '' || (!isGiven && !existsSync(path))) return [];
  const { names, root } = listed(path);
  if (names.length > MOST_FILES)
    throw new UserError('family-dir-invalid', { directory: path, problem: `has more than ${MOST_FILES} files` });
  const families: DeclaredFamily[] = [];
  const { readFamilyFile } = await import('./family-file.ts');
  for (const name of names) {
    const file = join(path, name);
    if (!isInside(root, file)) throw new UserError('family-file-unreadable', { file, problem: 'it is a link to another directory' });
    const declared = await readFamilyFile(file);
    const { family } = declared.declaration;
    if (families.some(({ declaration }) => declaration.family === family))
      throw new UserError('family-file-unreadable', { file, problem: `another file declares the family "${family}"` });
    families.push(declared);
  }
  return families;
}

/** Adds declared families to those of the program. A file replaces a family that the program itself has as a declaration. */
export function withDeclared(
  families: readonly DeviceFamily[],
  declared: readonly DeclaredFamily[],
  directory: string,
): readonly DeviceFamily[] {
  const added = declared.map(familyOf);
  for (const { name } of added)
    if (families.some((family) => family.name === name && family.declared === undefined))
      throw new UserError('family-dir-invalid', { directory, problem: `declares the family "${name}", which the agent has as code` });
  const replaced = new Set(added.map(({ name }) => name));
  return [...families.filter(({ name }) => !replaced.has(name)), ...added].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** File names in the directory, without hidden files: the kubelet keeps the versions of a ConfigMap in hidden directories. */
function listed(path: string): { readonly names: readonly string[]; readonly root: string } {
  try {
    const names = readdirSync(path).filter((name) => /^[^.].*\.ya?ml$/.test(name));
    return { names: names.sort(), root: realpathSync(path) };
  } catch (error) {
    throw new UserError('family-dir-invalid', { directory: path, problem: `cannot be listed: ${systemWords(error)}` }, error);
  }
}

function isInside(root: string, file: string): boolean {
  try {
    return realpathSync(file).startsWith(`${root}${sep}`);
  } catch {
    // The reader tells why the file cannot be opened.
    return true;
  }
}
