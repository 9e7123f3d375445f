import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { systemWords, UserError } from '../../errors.ts';
import { type DeclaredFamily, familyOf } from '../../probes/declared/family.ts';
import { familyLoaders } from '../../probes/families.ts';
import type { DeviceFamily } from '../../probes/family.ts';

/** Limit of files in the directory. Each family can have a thread. */
const MOST_FILES = 64;
/** Limit of declarations that others can change: their threads and values must not use up the memory of the agent. */
const MOST_OF_OTHERS = 8;

/** The directory of declarations, and how its name was given. */
export interface FamilyDirectory {
  readonly path: string;
  /** A directory other than the default one must exist. */
  readonly isGiven: boolean;
}

/** The families of a directory, and what is wrong with declarations of others, which are left out. */
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
  const { weaknessOf, tryFamilyFile } = await import('./family-file.ts');
  const isOfOthers = (await weaknessOf(path)) !== undefined;
  const { names, root } = listed(path);
  if (!isOfOthers && names.length > MOST_FILES) throw tooMany(path, MOST_FILES);
  const [own, ofOthers, leftOut]: [DeclaredFile[], DeclaredFile[], UserError[]] = [[], [], []];
  for (const name of isOfOthers ? names.slice(0, MOST_OF_OTHERS) : names) {
    const file = join(path, name);
    const { declared, weakness, problem } = isInside(root, file)
      ? await tryFamilyFile(file)
      : { weakness: undefined, problem: unusable(file, 'it is a link to another directory') };
    if (declared !== undefined) (weakness === undefined ? own : ofOthers).push({ file, declared });
    else if (isOfOthers || weakness !== undefined) leftOut.push(problem);
    else throw problem;
  }
  const families = new Map<string, DeclaredFamily>();
  for (const { file, declared } of own) {
    const { family } = declared.declaration;
    if (families.has(family)) throw unusable(file, `another file declares the family "${family}"`);
    families.set(family, declared);
  }
  for (const { file, declared } of ofOthers.slice(0, MOST_OF_OTHERS)) {
    const { family } = declared.declaration;
    const isTaken = families.has(family) || Object.hasOwn(familyLoaders, family);
    if (isTaken) leftOut.push(unusable(file, `there is another family "${family}", and others can change this file: ${declared.weakness}`));
    else families.set(family, declared);
  }
  if (ofOthers.length > MOST_OF_OTHERS || (isOfOthers && names.length > MOST_OF_OTHERS))
    leftOut.push(tooMany(path, MOST_OF_OTHERS, ' that others can change'));
  return { families: [...families.values()], leftOut };
}

interface DeclaredFile {
  readonly file: string;
  readonly declared: DeclaredFamily;
}

const unusable = (file: string, problem: string): UserError => new UserError('family-file-unreadable', { file, problem });
const tooMany = (directory: string, most: number, which = ''): UserError =>
  new UserError('family-dir-invalid', { directory, problem: `has more than ${most} files${which}` });

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
