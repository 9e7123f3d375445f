import { dirname, join } from 'node:path';
import { errnoName, type ReadResult, Tree } from '../fs/tree.ts';

/** No file of the kernel begins with this character. */
const MARK = '\u0000';
const MARKED = new RegExp(`^${MARK}(E[A-Z0-9]{1,30})\n$`);
/** Content of a file of a replay whose reads must fail with an error, such as `EINVAL`. */
export const failing = (errno: string): string => `${MARK}${errno}\n`;
/** The error that {@link failing} stands for; undefined for every other content. */
export const capturedError = (text: string): string | undefined => MARKED.exec(text)?.[1];

/**
 * The files of a replay. No plain file fails with `EINVAL`, and a super user may read every file. So a file with the content of
 * {@link failing} fails as the one of the captured machine did.
 */
export class ReplayedTree extends Tree {
  override read(path: string): ReadResult {
    return asCaptured(super.read(path));
  }

  override reread(path: string): ReadResult {
    return asCaptured(super.reread(path));
  }

  override bytes(path: string, limit: number): Buffer | undefined {
    const bytes = super.bytes(path, limit);
    return bytes !== undefined && capturedError(bytes.toString('latin1')) !== undefined ? undefined : bytes;
  }

  override listing(path: string): ReturnType<Tree['listing']> {
    const listing = super.listing(path);
    return listing.error === undefined ? listing : { error: this.read(path).error ?? listing.error };
  }

  override *names(path: string): Generator<string, void> {
    try {
      yield* super.names(path);
    } catch (error) {
      const code = this.read(path).error ?? errnoName(error);
      throw Object.assign(new Error(`${code}: ${path}`), { code });
    }
  }

  /** The links of a process to device nodes are absolute on a machine. */
  override link(path: string): string | undefined {
    const target = super.link(path);
    const nodes = join(dirname(this.root), 'dev/');
    const full = target === undefined ? '' : join(dirname(this.path(path)), target);
    return full.startsWith(nodes) ? `/dev/${full.slice(nodes.length)}` : target;
  }
}

function asCaptured(result: ReadResult): ReadResult {
  const error = capturedError(result.text ?? '');
  return error === undefined ? result : { error };
}
