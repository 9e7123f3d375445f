import type { IncomingMessage } from 'node:http';
import { systemWords, UserError } from '../../errors.ts';
import type { Clock } from '../../host/clock.ts';
import { parseJson } from '../../host/documents/json.ts';
import type { ChangeLog } from '../../log/changes.ts';
import { type Ask, type Opened, REFUSAL_TEXTS, type Refusal } from '../agent-api.ts';
import { BOARD_PATH, boardIn } from '../board-answer.ts';
import { type AgentView, type FeedMessage, feedMessageIn } from './view.ts';

const BOUNDS = { mostBytes: 16 * 1024 * 1024, mostEntries: 500_000, mostDepth: 20 };
/** A client that heard nothing for this time knows nothing: docs/health-feed.md. */
export const STALE_MS = 30_000;
const RETRY_MS = 1_000;
/**
 * An agent that has just begun reads its families one after another. Until each was read once, or failed, its first words would change the
 * conditions of the node at each update of the agent. As long as this the publisher waits, as if the agent had begun later.
 */
export const FIRST_READS_MS = 10_000;

export interface AgentFeedParts {
  readonly open: () => Promise<Opened>;
  readonly ask: Ask;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  /** Called after each message of the agent, and when it was silent for too long. */
  readonly heard: () => void;
}

/** Follows the health feed of the agent. At each message, so at least every ten seconds, it asks the API for what the feed does not have. */
export class AgentFeed {
  readonly #parts: AgentFeedParts;
  #feed: FeedMessage | undefined;
  #view: AgentView | undefined;
  #heardMs: number;
  #followedMs = Number.NEGATIVE_INFINITY;
  #stream: IncomingMessage | undefined;
  #cancel: (() => void) | undefined;
  #cancelStale: (() => void) | undefined;
  #cancelFirst: (() => void) | undefined;
  #isOver = false;

  constructor(parts: AgentFeedParts) {
    this.#parts = parts;
    this.#heardMs = parts.clock.monotonic();
  }

  /**
   * Returns `away` when the agent sent nothing for 30 seconds; undefined before that time, before the first answer, and for at most ten
   * seconds while the agent reads its families for the first time.
   */
  view(): AgentView | 'away' | undefined {
    const nowMs = this.#parts.clock.monotonic();
    if (nowMs - this.#heardMs >= STALE_MS) return 'away';
    const isFirstRead = this.#view?.families?.some(({ complete, problem }) => !complete && problem === undefined) === true;
    return isFirstRead && nowMs - this.#followedMs < FIRST_READS_MS ? undefined : this.#view;
  }

  start(): void {
    this.#awaitSilence();
    void this.#follow();
  }

  stop(): void {
    this.#isOver = true;
    this.#cancel?.();
    this.#cancelStale?.();
    this.#cancelFirst?.();
    this.#stream?.destroy();
  }

  async #follow(): Promise<void> {
    const { stream, refusal } = await this.#parts.open();
    if (stream === undefined) this.#tellAway(await this.#why(refusal));
    if (stream !== undefined && !this.#isOver) await this.#read(stream).catch(() => undefined);
    stream?.destroy();
    if (!this.#isOver) this.#cancel = this.#parts.clock.after(RETRY_MS, () => void this.#follow());
  }

  /** Reads lines until the stream ends. A line is taken when the one before it was. */
  async #read(stream: IncomingMessage): Promise<void> {
    this.#stream = stream;
    this.#followedMs = this.#parts.clock.monotonic();
    this.#cancelFirst?.();
    this.#cancelFirst = this.#parts.clock.after(FIRST_READS_MS + 100, () => this.#parts.heard());
    let text = '';
    for await (const part of stream.setEncoding('utf8')) {
      text += part as string;
      if (text.length > BOUNDS.mostBytes) return;
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      const messages = lines.map((line) => parseJson(line, BOUNDS));
      if (messages.length > 0) await this.#take(messages.map(feedMessageIn).findLast((message) => message !== undefined));
    }
  }

  /** `news`: undefined for a heartbeat. */
  async #take(news: FeedMessage | undefined): Promise<void> {
    this.#feed = news ?? this.#feed;
    if (this.#feed === undefined) return;
    const asked = await this.#parts.ask(BOARD_PATH).catch((error: unknown) => ({ answer: undefined, ...whyNot(error) }));
    const board = boardIn(asked.answer?.body);
    if (this.#isOver) return;
    if (board === undefined) return 'detail' in asked ? this.#tellAway(asked) : undefined;
    this.#parts.changes.end('agent');
    this.#view = { ...this.#feed, board };
    this.#heardMs = this.#parts.clock.monotonic();
    this.#awaitSilence();
    this.#parts.heard();
  }

  #awaitSilence(): void {
    this.#cancelStale?.();
    // A timer may fire a moment too early, and nothing would look again.
    this.#cancelStale = this.#parts.clock.after(STALE_MS + 100, () => this.#parts.heard());
  }

  /** A stream that did not open says less than an answer. */
  async #why(known: Refusal | undefined): Promise<Why> {
    try {
      const refusal = known ?? (await this.#parts.ask(BOARD_PATH)).refusal;
      return refusal === undefined ? { detail: 'no agent answers, or it has read nothing yet' } : REFUSAL_TEXTS[refusal];
    } catch (error) {
      return whyNot(error);
    }
  }

  #tellAway(why: Why): void {
    this.#parts.changes.begin({ key: 'agent', message: 'the agent cannot be followed', ended: 'the agent was found', ...why });
  }
}

interface Why {
  readonly detail: string;
  readonly remedy?: string | undefined;
}

/** Why the agent was not asked, such as a flag that it does not use. */
export const whyNot = (error: unknown): Why =>
  error instanceof UserError ? { detail: error.message, remedy: error.remedy } : { detail: systemWords(error) };
