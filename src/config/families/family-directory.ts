import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { systemWords, UserError } from '../../errors.ts';
import { type DeclaredFamily, familyOf } from '../../probes/declared/family.ts';
import type { DeviceFamily } from '../../probes/family.ts';

/** Limit of files in the directory. Each family can have a reader. */
const MOST_FILES = 64;

/** The directory of declarations, and how its name was given. */
export interface FamilyDirectory {
  readonly path: string;
  /** A directory other than the default one must exist. */
  readonly isGiven: boolean;
}

/** The families of a directory, and what is wrong with files that others can change. No such file is used. */
export interface ReadFamilies {
  readonly families: readonly DeclaredFamily[];
  readonly leftOut: readonly UserError[];
}

/**
 * Reads the declarations of a directory. Throws {@link UserError} for the first file that is wrong. A file that others can change never
 * throws, because they must not be able to end the start of the agent: it is left out, with the reason.
 */
export async function readFamilyDirectory({ path, isGiven }: FamilyDirectory): Promise<ReadFamilies> {
  if (path === '' || (!isGiven && !existsSync(path))) return { families: [], leftOut: [] };
  const { weaknessOf, readFamilyFile } = await import('./family-file.ts');
  const weakness = await weaknessOf(path);
  if (weakness !== undefined) return { families: [], leftOut: [new UserError('family-file-untrusted', { file: path, problem: weakness })] };
  const { names, root } = listed(path);
  if (names.length > MOST_FILES)
    throw new UserError('family-dir-invalid', { directory: path, problem: `has more than ${MOST_FILES} files` });
  const families = new Map<string, DeclaredFamily>();
  const leftOut: UserError[] = [];
  for (const name of names) {
    const file = join(path, name);
    const read = isInside(root, file) ? readFamilyFile(file) : Promise.reject(unusable(file, 'it is a link to another directory'));
    const declared = await read.catch(async (error: UserError): Promise<undefined> => {
      // A file that others swap while it is read must not end the start either.
      if (error.code !== 'family-file-untrusted' && (await weaknessOf(file)) === undefined) throw error;
      leftOut.push(error);
    });
    if (declared === undefined) continue;
    const { family } = declared.declaration;
    if (families.has(family)) throw unusable(file, `another file declares the family "${family}"`);
    families.set(family, declared);
  }
  return { families: [...families.values()], leftOut };
}

const unusable = (file: string, problem: string): UserError => new UserError('family-file-unreadable', { file, problem });

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
    // The reader reports why the file cannot be opened.
    return true;
  }
}
