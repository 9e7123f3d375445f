import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../host/clock.ts';
import type { DocumentThread } from '../host/documents/document-thread.ts';
import type { Host } from '../host/host.ts';
import { checkpointUids } from '../join/processes.ts';
import { type CheckpointRead, CheckpointReader } from '../kubelet/checkpoint/checkpoint.ts';
import type { ClaimFileProblem } from '../kubelet/claims/cdi-reader.ts';
import { ClaimReader } from '../kubelet/claims/claims.ts';
import { documentThread } from '../kubelet/document-kinds.ts';
import { PodsReader } from '../kubelet/pods/reader.ts';
import { type Cause, createPodResourcesPoller, type PodResourcesPoller } from '../kubelet/poller.ts';
import type { Logger } from '../log/logger.ts';
import type { DeviceProcess } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { Observe } from '../model/observation.ts';
import type { CheckpointReason, PodResources } from '../model/pod-resources.ts';
import type { Inputs } from './inputs.ts';
import type { ProblemLog } from './log-lines.ts';
import type { AgentSettings } from './settings.ts';

interface HolderDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly problems: ProblemLog;
  readonly host: Host;
  readonly observe: Observe | undefined;
  /** Called when an answer has arrived, with all files that belong to it. */
  changed(isNews: boolean): void;
  /** The answer of the kubelet in the latest snapshot. */
  known(): PodResources | undefined;
}

/** The sources for the holders of devices: the latest answers of the kubelet, and the latest files of the drivers of claims. */
export class HolderSources {
  readonly poller: PodResourcesPoller;
  /** Absent while the Pods API is not asked. */
  readonly pods: PodsReader | undefined;
  readonly #parts: HolderDependencies;
  /** Parses the files of the kubelet and of drivers. */
  readonly #documents: DocumentThread;
  readonly #checkpointReader: CheckpointReader;
  #checkpoint: CheckpointRead = { entries: [] };
  readonly #claims: ClaimReader;
  /** Containers of processes that the Pods API did not name. */
  #unknown: ReadonlySet<string> = new Set();
  /** The read of the checkpoint and of the claims' files that belongs to the latest answer of the kubelet. */
  #readingFiles: Promise<void> | undefined;

  constructor({ podResources, podsApi, dra, cdi, roots, families, usage }: AgentSettings, parts: HolderDependencies) {
    const { clock, observe, logger, host } = parts;
    this.#parts = parts;
    this.#documents = documentThread(clock);
    this.#claims = new ClaimReader({
      metadataDirectory: dra['metadata-dir'],
      cdiDirectories: cdi.dirs,
      sysfs: roots.sysfs,
      forms: families.flatMap(({ family }) => family.claimForms ?? []),
      thread: this.#documents,
      clock,
      observe,
    });
    this.#checkpointReader = new CheckpointReader(podResources.checkpoint, this.#documents, clock, host);
    // The API is an extra, so what is wrong with it is no warning.
    const onProblem = (detail: string | undefined): void =>
      detail === undefined
        ? logger.info("the kubelet's Pods API answers")
        : logger.info("the kubelet's Pods API does not answer; pods have no UID and no extended resources", { detail });
    const onChange = (): void => parts.changed(true);
    const onReady = (): void => this.poller.settled();
    const labels = [...new Set([...usage.labels, ...usage['delegated-holders'].flatMap((one) => /^(.+?)=/.exec(one)?.[1] ?? [])])];
    this.pods = podsApi && new PodsReader({ options: podsApi, clock, onChange, labels, onProblem, onReady });
    this.poller = createPodResourcesPoller({
      options: podResources,
      specDirectories: cdi.dirs,
      clock,
      observe,
      onChange: (cause) => this.#answered(cause),
    });
  }

  /** The latest answers and files. */
  get inputs(): Omit<Inputs, 'families'> {
    return {
      podResources: this.poller.current(),
      ...defined({ pods: this.pods?.current() }),
      checkpoint: this.#checkpoint.entries,
      claims: this.#claims.current(),
      claimTimes: this.#claims.times,
    };
  }

  /** Why the kubelet's checkpoint cannot be used. */
  get checkpointProblem(): CheckpointReason | undefined {
    return this.#checkpoint.problem?.code;
  }

  /** Files of claims that cannot be used. */
  get claimFileProblems(): readonly ClaimFileProblem[] {
    return this.#claims.problems();
  }

  /** Whether a driver has named hardware for a claim. */
  get hasClaims(): boolean {
    return this.#claims.current().size > 0;
  }

  /** A file does not answer, so that the process cannot end by itself. */
  get isStuck(): boolean {
    return this.#checkpointReader.isPending || this.#claims.isPending;
  }

  /** Asks the kubelet, for a fault also its Pods API. Resolves when the files that belong to its answer are read, too. */
  async ask(isForFault: boolean): Promise<void> {
    await this.poller.refresh();
    await this.#readingFiles;
    await (isForFault ? this.pods?.refresh() : this.pods?.idle());
  }

  /** Asks the Pods API about containers that started after its answer. It is asked once for each, because not all containers belong to pods. */
  seen(processes: readonly DeviceProcess[]): void {
    if (this.pods === undefined) return;
    const known = new Set([...this.pods.current().values()].flatMap(({ containers }) => containers.map(({ id }) => id)));
    const unknown = new Set(processes.flatMap(({ containerId: id }) => (id === undefined || known.has(id) ? [] : [id])));
    if ([...unknown].some((id) => !this.#unknown.has(id))) void this.pods.refresh();
    this.#unknown = unknown;
  }

  /** Reads the files of claims again. */
  readClaims(): Promise<void> {
    return this.#claims.read(this.poller.current().allocations);
  }

  /** Asks nobody any more. */
  stop(): void {
    this.poller.close();
    this.pods?.close();
  }

  /** Ends the thread that parses the files. */
  close(): void {
    this.#documents.close();
  }

  /**
   * Checkpoint and drivers' files are read after each answer, so that a snapshot never joins a new pod with the UID of the one before it. A look that
   * finds the same needs none of it: what changes these files makes the poller ask.
   */
  #answered(cause: Cause): void {
    const { allocations, held, problem } = this.poller.current();
    const known = this.#parts.known();
    const isSame = isSameAnswer(this.poller.current(), known);
    if (cause === 'look' && isSame) {
      this.pods?.look(false);
      return;
    }
    const hasClaims = allocations.some(({ claim }) => claim !== undefined);
    const before = this.#filesRead();
    const reading = Promise.all([this.#readCheckpoint(), hasClaims ? this.#claims.read(allocations) : undefined]).then(() => {
      if (this.#readingFiles === reading) this.#readingFiles = undefined;
      this.#parts.problems.claimFiles(this.#claims.problems());
      const now = this.#filesRead();
      const listed = new Set(known?.allocations);
      const areOthers = allocations.some((one) => !listed.has(one)) || now.entries.some(({ podUid }) => !before.uids.has(podUid));
      // A claim of the same name can be another one, or have another pod of the same name.
      const mayBeOthers = hasClaims && (cause === 'change' || !isDeepStrictEqual(now.claimTimes, before.claimTimes));
      this.pods?.look(areOthers || mayBeOthers || held.size > 0 || problem !== undefined);
      this.#parts.changed(!isSame || !isSameAnswer(this.poller.current(), this.#parts.known()) || !isDeepStrictEqual(now, before));
    });
    this.#readingFiles = reading;
  }

  #filesRead() {
    const { entries } = this.#checkpoint;
    const claimTimes = Array.from(this.#claims.times, ([key, { firstMs }]) => [key, firstMs] as const);
    return { entries, uids: new Set(entries.map(({ podUid }) => podUid)), claims: this.#claims.current(), claimTimes };
  }

  async #readCheckpoint(): Promise<void> {
    this.#checkpoint = await this.#checkpointReader.read();
    this.#parts.problems.checkpoint(this.#checkpoint.problem);
    if (this.#checkpoint.isComplete !== true || this.poller.current().held.size === 0) return;
    const uidsOf = checkpointUids(this.#checkpoint.entries);
    this.poller.dropUnknown((allocation) => uidsOf(allocation).size > 0);
  }
}

/** Compares what an answer says about holders. */
function isSameAnswer(now: PodResources, before: PodResources | undefined): boolean {
  const parts = ({ allocations, held, exclusive, podExclusive, allocatable, problem }: PodResources): unknown[] => [
    allocations,
    held,
    exclusive,
    podExclusive,
    allocatable,
    problem,
  ];
  return before !== undefined && now.problem === undefined && isDeepStrictEqual(parts(now), parts(before));
}
