import type { Clock } from '../../host/clock.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import { Tree } from '../../host/fs/tree.ts';
import { RecordedTree } from '../../host/recorded/recorded-tree.ts';
import { SingleFlight } from '../../host/single-flight.ts';
import type { Allocation, Claim } from '../../model/allocation.ts';
import {
  type ClaimForms,
  type ClaimHardware,
  type ClaimHardwareIndex,
  type ClaimTimes,
  claimDeviceKey,
} from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';
import { CdiReader, type ClaimFileProblem } from './cdi-reader.ts';
import { MetadataReader } from './metadata-reader.ts';

export interface ClaimReaderSettings {
  /** Empty: metadata files are not read. */
  readonly metadataDirectory: string;
  /** A directory before another one wins. Empty: CDI specs are not read. */
  readonly cdiDirectories: readonly string[];
  readonly sysfs: string;
  /** How the drivers of the families describe devices. */
  readonly forms: readonly ClaimForms[];
  /** Parses the files. */
  readonly thread: DocumentThread;
  readonly clock: Clock;
  /** Takes what was read. */
  readonly observe?: Observe | undefined;
}

/** A directory on a file system that hangs delays a snapshot by this time at most. */
const TIMEOUT_MS = 2_000;
const NOTHING: ClaimHardwareIndex = new Map();

/** Finds out what hardware the devices of claims are, from files that the drivers write. It asks no server. */
export class ClaimReader {
  readonly #clock: Clock;
  readonly #metadata: MetadataReader | undefined;
  readonly #cdi: CdiReader | undefined;
  #current: ClaimHardwareIndex = NOTHING;
  /** Of the claims in `#current`, with the CDI names of their devices. */
  #times: ReadonlyMap<string, ClaimTimes & { readonly of: string }> = new Map();
  #problems: readonly ClaimFileProblem[] = [];
  readonly #reads = new SingleFlight(() => this.#read(this.#wanted));
  /** Claims that the next read takes. */
  #wanted: readonly Claim[] = [];

  constructor({ metadataDirectory, cdiDirectories, sysfs, forms, thread, clock, observe }: ClaimReaderSettings) {
    const sys = observe === undefined ? new Tree(sysfs) : new RecordedTree(sysfs, undefined, observe);
    this.#clock = clock;
    this.#metadata = metadataDirectory === '' ? undefined : new MetadataReader(metadataDirectory, sys, thread, clock, forms, observe);
    this.#cdi = cdiDirectories.length === 0 ? undefined : new CdiReader(cdiDirectories, sys, thread, forms, observe);
  }

  /** True while a read has not returned. Such a read can keep the process from exiting. */
  get isPending(): boolean {
    return this.#reads.running !== undefined;
  }

  /** The result of the last read that returned. */
  current(): ClaimHardwareIndex {
    return this.#current;
  }

  /** When the files of each claim in {@link current} were read. */
  get times(): ReadonlyMap<string, ClaimTimes> {
    return this.#times;
  }

  /** Files that the last read did not use. */
  problems(): readonly ClaimFileProblem[] {
    return this.#problems;
  }

  /**
   * Reads what the claims among these allocations need. Never rejects, and resolves within a timeout. One read runs at a time; claims that arrive
   * meanwhile cause another one.
   */
  read(allocations: readonly Allocation[]): Promise<void> {
    this.#wanted = allocations.map(({ claim }) => claim).filter((claim) => claim !== undefined);
    const pending = this.#reads.again();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(TIMEOUT_MS, resolve);
      void pending.then(() => {
        cancel();
        resolve();
      });
    });
  }

  async #read(claims: readonly Claim[]): Promise<void> {
    const lastMs = this.#clock.monotonic();
    const [metadata, cdi] = await Promise.all([this.#metadata?.read(claims), this.#cdi?.read(claims)]);
    const endMs = this.#clock.monotonic();
    const index = new Map<string, readonly ClaimHardware[]>();
    const times = new Map<string, ClaimTimes & { readonly of: string }>();
    for (const claim of claims) {
      const key = claimDeviceKey(claim);
      const hardware = [metadata?.hardware.get(key), cdi?.hardware.get(key)].filter((one) => one !== undefined);
      if (hardware.length === 0) continue;
      index.set(key, hardware);
      // Another claim of this name has other CDI names, because they have its UID.
      const of = JSON.stringify([claim.cdiDevices, hardware]);
      const before = this.#times.get(key);
      times.set(key, { firstMs: before?.of === of ? before.firstMs : endMs, lastMs, of });
    }
    this.#current = index;
    this.#times = times;
    this.#problems = [...(metadata?.problems ?? []), ...(cdi?.problems ?? [])];
  }
}
