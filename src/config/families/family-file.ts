import { resolve } from 'node:path';
import { UserError } from '../../errors.ts';
import { openPath, RefusedLink } from '../../host/fs/open-path.ts';
import { readUntrustedFile } from '../../host/fs/untrusted-file.ts';
import { deviceMetrics } from '../../metrics/series/device-metrics.ts';
import type { Declaration } from '../../probes/declared/declaration.ts';
import { declarationSchema } from '../../probes/declared/declaration.ts';
import type { DeclaredFamily } from '../../probes/declared/family.ts';
import { type FileProblem, inOrder, parseDocument, problemLines } from '../document.ts';
import { checkSchema, type SchemaProblem } from '../schema-check.ts';
import { meaningProblems } from './meaning.ts';

const MOST_BYTES = 262_144;
const TAKEN: ReadonlySet<string> = new Set(Object.values(deviceMetrics).map(({ name }) => name));

export type CheckedDeclaration =
  | { readonly declaration: Declaration; readonly problems?: undefined }
  | { readonly declaration?: undefined; readonly problems: readonly FileProblem[] };

/** Parses and checks the text of a declaration. Returns all problems with their lines, sorted. Never throws. */
export async function checkDeclaration(text: string): Promise<CheckedDeclaration> {
  const parsed = await parseDocument(text);
  if (parsed.problems !== undefined) return { problems: parsed.problems };
  const { positions, plain } = parsed;
  const located = (problems: readonly SchemaProblem[]): readonly FileProblem[] => {
    const places = problems.map(({ path, atKey, message }) => ({
      ...(atKey ? positions.ofKey(path) : positions.of(path)),
      message: message.trim(),
    }));
    return inOrder([...new Map(places.map((place) => [`${place.line}:${place.column}:${place.message}`, place])).values()]);
  };
  const wrong = await checkSchema(declarationSchema, plain);
  if (wrong.length > 0) return { problems: located(wrong) };
  const declaration = plain as Declaration;
  const unclear = meaningProblems(declaration, TAKEN);
  return unclear.length > 0 ? { problems: located(unclear) } : { declaration };
}

/**
 * Reads one declaration. Throws {@link UserError}, also for a file that others than root and the user of this process can change: a
 * declaration names programs that run and device nodes that containers get.
 */
export async function readFamilyFile(file: string): Promise<DeclaredFamily> {
  const read = await readUntrustedFile(file, MOST_BYTES);
  if (read.problem !== undefined) throw new UserError('family-file-unreadable', { file, problem: read.reason });
  if (read.untrusted !== undefined) throw new UserError('family-file-untrusted', { file, problem: read.untrusted });
  const { declaration, problems } = await checkDeclaration(read.text);
  if (problems !== undefined) throw new UserError('family-file-invalid', { file, problems: problemLines(file, problems) });
  return { declaration, origin: 'administrator' };
}

/** Why others can change what a path names; undefined when they cannot, or when nothing can be opened there. */
export async function weaknessOf(path: string): Promise<string | undefined> {
  try {
    const { handle, untrusted } = await openPath(resolve(path));
    await handle.close();
    return untrusted;
  } catch (error) {
    return error instanceof RefusedLink ? error.message : undefined;
  }
}
