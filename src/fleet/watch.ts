import type { Clock } from '../host/clock.ts';
import { type ChangeLog, createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { Answer, Sample } from './answer.ts';
import type { Fleet, FleetProblem } from './fleet.ts';
import type { Prometheus } from './prometheus.ts';
import { type Question, type QuestionName, questionsOf } from './questions.ts';
import { fleetOf } from './reading.ts';
import { PrometheusTrouble } from './trouble.ts';

const EVERY_MS = 30_000;
const DEFAULT_GROUP_LABEL = 'label_topology_kubernetes_io_zone';

export interface ReadOptions {
  /** Label of kube_node_labels that groups nodes on the map. */
  readonly groupLabel?: string | undefined;
}

/** Reads the fleet once, at one moment of Prometheus's clock. Rejects with {@link PrometheusTrouble} when Prometheus answers nothing. */
export async function readFleet(prometheus: Prometheus, { groupLabel = DEFAULT_GROUP_LABEL }: ReadOptions = {}): Promise<Fleet> {
  const [now] = (await prometheus.query('time()')).rows;
  if (now === undefined) throw new PrometheusTrouble('it does not know its time', 'See the log of Prometheus.');
  const problems: FleetProblem[] = [];
  const ask = async ([name, { about, expr, isOptional }]: readonly [string, Question]): Promise<
    readonly [QuestionName, Answer<Sample>][]
  > => {
    try {
      const answer = await prometheus.query(expr, now.value);
      problems.push(...answer.warnings.map((message) => ({ question: about, message })));
      return [[name as QuestionName, answer]];
    } catch (error) {
      if (isOptional !== true) problems.push({ question: about, message: (error as Error).message });
      return [];
    }
  };
  const answers = await Promise.all(Object.entries(questionsOf(groupLabel)).map(ask));
  return fleetOf(Object.fromEntries(answers.flat()), now.value, problems);
}

/** Reads the fleet again and again. A read that fails keeps the last fleet, with its time, and says so. */
export class FleetWatch {
  readonly #prometheus: Prometheus;
  readonly #options: ReadOptions;
  readonly #clock: Clock;
  readonly #changes: ChangeLog;
  #fleet: Fleet | undefined;
  #trouble: PrometheusTrouble | undefined;
  #cancel = (): void => {};
  #ended = false;

  constructor(prometheus: Prometheus, options: ReadOptions, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#prometheus = prometheus;
    this.#options = options;
    this.#clock = clock;
    this.#changes = createChangeLog(logger, () => clock.monotonic());
  }

  /** The latest fleet that was read; undefined before the first. */
  get fleet(): Fleet | undefined {
    if (this.#fleet === undefined || this.#trouble === undefined) return this.#fleet;
    const { message, remedy } = this.#trouble;
    return { ...this.#fleet, problems: [{ question: 'the fleet now', message: `Prometheus: ${message}. ${remedy}` }] };
  }

  /** Why the latest read failed. */
  get trouble(): PrometheusTrouble | undefined {
    return this.#trouble;
  }

  /** Reads now and from then on. Resolves after the first read; never rejects. */
  async start(): Promise<void> {
    try {
      this.#fleet = await readFleet(this.#prometheus, this.#options);
      this.#trouble = undefined;
    } catch (error) {
      this.#trouble =
        error instanceof PrometheusTrouble ? error : new PrometheusTrouble((error as Error).message, 'See the log of Prometheus.');
    }
    this.#changes.update('prometheus', this.#trouble === undefined ? [] : [troubleOf(this.#trouble)]);
    if (!this.#ended) this.#cancel = this.#clock.after(EVERY_MS, () => void this.start());
  }

  stop(): void {
    this.#ended = true;
    this.#cancel();
  }
}

const troubleOf = ({ message, remedy }: PrometheusTrouble) => ({
  key: 'prometheus',
  message: 'Prometheus cannot be read, so the page shows the last fleet that is known',
  ended: 'Prometheus could not be read; it is read again',
  fields: {},
  detail: message,
  remedy,
});
