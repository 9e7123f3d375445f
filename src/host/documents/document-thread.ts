import type { Clock } from '../clock.ts';
import { JobThread } from '../job-thread.ts';
import { type Answer, answerOf, type DocumentJob, type DocumentKinds } from './kind.ts';

/** A JSON document of this size is parsed in a millisecond, and a thread needs forty to start. YAML always gets the thread. */
const SMALL_BYTES = 65_536;
const BRACE = 0x7b;

/** Parses documents of other programs in a thread, which is ended when a document takes too long or too much memory. */
export class DocumentThread {
  readonly #kinds: DocumentKinds;
  readonly #thread: JobThread<DocumentJob, Answer<unknown>>;

  /** `entry`: a module that calls `serveDocuments` with the same kinds. */
  constructor(entry: URL, kinds: DocumentKinds, clock: Clock) {
    this.#kinds = kinds;
    this.#thread = new JobThread({
      ...{ name: 'documents', entry, clock },
      // The bounds keep a document below 32 MiB above its size.
      memoryMib: 64,
      // A document within its bounds takes some tens of milliseconds of CPU. On a busy node, the thread may have to wait for it.
      deadlineMs: 5_000,
      // The idle thread takes about 6 MiB.
      idleMs: 2_000,
    });
  }

  /** Never rejects. */
  async parse(job: DocumentJob): Promise<Answer<unknown>> {
    const kind = this.#kinds[job.kind];
    if (kind !== undefined && job.bytes.length <= (kind.smallBytes ?? SMALL_BYTES) && job.bytes[0] === BRACE)
      return answerOf(kind, Buffer.from(job.bytes).toString('utf8'), job.wanted);
    const made = await this.#thread.ask(job);
    if ('answer' in made) return made.answer;
    const code = made.failure === 'memory' || made.failure === 'failed' ? 'too-complex' : 'too-slow';
    return { code, reason: `the parser was ended: ${made.reason}` };
  }

  close(): void {
    this.#thread.close();
  }
}
