import { type Step, StepGuard, type StepKind, type StepPlace } from '../../src/host/fs/step-guard.ts';
import { type ReadResult, Tree } from '../../src/host/fs/tree.ts';
import type { Host } from '../../src/host/host.ts';

/** Knows each step while it lasts, with the whole path. */
export class WatchedGuard extends StepGuard {
  current: Step | undefined;

  override enter(path: string, kind: StepKind = 'file', file?: StepPlace): string | undefined {
    const refusal = super.enter(path, kind, file);
    if (refusal === undefined) this.current = { kind, path };
    return refusal;
  }

  override leave(): void {
    super.leave();
    this.current = undefined;
  }
}

/** What a file gives instead: bytes, or an errno name. Undefined: what it holds. */
export type Answer = (path: string) => Buffer | string | undefined;

/** A host whose files give other answers. */
export function answeringHost(host: Host, answer: Answer): Host {
  const tree = ({ root, guard }: Tree): Tree => new AnsweringTree(root, guard, answer);
  return { ...host, sys: tree(host.sys), proc: tree(host.proc), dev: tree(host.dev) };
}

class AnsweringTree extends Tree {
  readonly #answer: Answer;

  constructor(root: string, guard: StepGuard | undefined, answer: Answer) {
    super(root, guard);
    this.#answer = answer;
  }

  override read(path: string): ReadResult {
    return resultOf(this.#answer(this.path(path))) ?? super.read(path);
  }

  override reread(path: string): ReadResult {
    return resultOf(this.#answer(this.path(path))) ?? super.reread(path);
  }

  override bytes(path: string, limit: number): Buffer | undefined {
    const answer = this.#answer(this.path(path));
    if (answer === undefined) return super.bytes(path, limit);
    return typeof answer === 'string' ? undefined : answer.subarray(0, limit);
  }
}

function resultOf(answer: Buffer | string | undefined): ReadResult | undefined {
  if (answer === undefined) return undefined;
  return typeof answer === 'string' ? { error: answer } : { text: answer.toString('utf8') };
}
