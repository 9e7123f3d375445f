import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { DocumentCache, forEachOf, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import type { DocumentProblem } from '../../host/documents/kind.ts';
import { descriptorPath, type OpenedPath, openEntry, openPath } from '../../host/fs/open-path.ts';
import type { Tree } from '../../host/fs/tree.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimForms, type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';
import type { ClaimFiles } from './claim-files.ts';
import { type Metadata, type MetadataDevice, metadataKind } from './metadata.ts';

/** A claim has 32 requests at most, and Kubernetes limits the attributes of a device. */
const MOST_REQUESTS = 64;
/** Files of all claims that containers hold. */
const MOST_ROUND_BYTES = 8 * 1_048_576;
const AT_ONCE = 8;
/** A driver rewrites a file in place. A second read after this time finds the file complete. */
const HALF_WRITTEN_MS = 20;
/** Names of the kubelet's answer become parts of a path: DNS subdomains, without a slash. */
const PATH_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const SUBDIRECTORY = 'dra-device-metadata';
const NAME = 'metadata.json';

/**
 * Reads the metadata files of DRA drivers (KEP-5304): `<dir>/<driver>/dra-device-metadata/<namespace>_<claim>/<request>/metadata.json`.
 * It opens only the directories of claims that a container holds, so files of ended claims cost nothing.
 */
export class MetadataReader {
  readonly #directory: string;
  readonly #sys: Tree;
  readonly #clock: Clock;
  readonly #partTypes: ReadonlySet<string | undefined>;
  readonly #observe: Observe | undefined;
  readonly #files: DocumentCache<Metadata | undefined>;

  constructor(directory: string, sys: Tree, thread: DocumentThread, clock: Clock, forms: readonly ClaimForms[], observe?: Observe) {
    this.#partTypes = new Set(forms.flatMap(({ partTypes = [] }) => partTypes));
    this.#observe = observe;
    this.#files = new DocumentCache({
      kind: 'metadata',
      mostBytes: metadataKind.bounds.mostBytes,
      mostRoundBytes: MOST_ROUND_BYTES,
      thread,
      serves: (_, madeFor, wanted) => [...wanted].every((key) => madeFor.has(key)),
      observe,
    });
    this.#directory = resolve(directory);
    this.#sys = sys;
    this.#clock = clock;
  }

  /** Returns the hardware of the devices of these claims, keyed by {@link claimDeviceKey}. Never rejects. */
  async read(claims: readonly Claim[]): Promise<ClaimFiles> {
    const found = new Map<string, ClaimHardware>();
    const problems: DocumentProblem[] = [];
    /** Claims of one directory differ in their devices. The directories of one driver are opened together. */
    const byDriver = new Map<string, Map<string, Claim[]>>();
    for (const claim of claims) {
      if (![claim.driver, claim.namespace, claim.name].every((name) => PATH_NAME.test(name))) continue;
      const directories = byDriver.get(claim.driver) ?? new Map<string, Claim[]>();
      const name = `${claim.namespace}_${claim.name}`;
      byDriver.set(claim.driver, directories.set(name, [...(directories.get(name) ?? []), claim]));
    }
    const take = async (parent: OpenedPath, name: string, held: readonly Claim[]): Promise<void> => {
      const wanted = new Set(held.map(claimDeviceKey));
      const documents = await this.#below(parent, [name], (directory) => this.#documents(directory, wanted, problems));
      if (documents === undefined) return;
      if ('code' in documents) problems.push(documents);
      else for (const [key, hardware] of this.#join(documents, held[0] as Claim)) found.set(key, hardware);
    };
    const ended = await inDirectory(this.#directory, openPath(this.#directory), async (plugins) => {
      for (const [driver, directories] of byDriver) {
        const problem = await this.#below(plugins, [driver, SUBDIRECTORY], (parent) =>
          forEachOf([...directories], AT_ONCE, ([name, held]) => take(parent, name, held)),
        );
        if (problem !== undefined) problems.push(problem);
      }
    });
    if (ended !== undefined) problems.push(ended);
    this.#files.endRound();
    return { hardware: found, problems };
  }

  /** Drivers write below their own directories, so no link there is followed. */
  #below<T>(
    directory: OpenedPath,
    [name, ...rest]: readonly string[],
    work: (directory: OpenedPath) => Promise<T>,
  ): Promise<T | DocumentProblem | undefined> {
    if (name === undefined) return work(directory);
    return inDirectory(`${directory.path}/${name}`, openEntry(directory, name), (next) => this.#below(next, rest, work));
  }

  /** The documents of all requests of a claim. */
  async #documents(directory: OpenedPath, wanted: ReadonlySet<string>, problems: DocumentProblem[]): Promise<readonly Metadata[]> {
    const requests = await readdir(descriptorPath(directory)).catch((): string[] => []);
    this.#observe?.({ kind: 'directory', path: directory.path, entries: requests.map((name) => [name, 'directory'] as const) });
    if (requests.length > MOST_REQUESTS)
      problems.push({ code: 'too-large', message: `${directory.path}: it has ${requests.length} requests; ${MOST_REQUESTS} are read` });
    const documents: Metadata[] = [];
    for (const request of requests.slice(0, MOST_REQUESTS)) {
      const read = await this.#below(directory, [request], (opened) => this.#document(opened, wanted));
      if (read === undefined) continue;
      if ('code' in read) problems.push(read);
      else documents.push(read);
    }
    return documents;
  }

  async #document(directory: OpenedPath, wanted: ReadonlySet<string>): Promise<Metadata | DocumentProblem | undefined> {
    const once = async () => (await this.#files.read(directory, [NAME], wanted)).get(NAME);
    let read = await once();
    if (read !== undefined && !isProblem(read) && !read.isComplete) {
      await new Promise<void>((done) => void this.#clock.after(HALF_WRITTEN_MS, done));
      read = await once();
    }
    return read === undefined || isProblem(read) ? read : read.value;
  }

  /**
   * A document counts only if its path has the names that it states. Documents with two UIDs belong to two claims of one name, and
   * nothing shows which of them has ended, so none counts. A device that two documents describe differently is left out.
   */
  #join(documents: readonly Metadata[], { namespace, name, driver }: Claim): ReadonlyMap<string, ClaimHardware> {
    const own = documents.filter((one) => one.namespace === namespace && one.claim === name);
    if (new Set(own.map(({ uid }) => uid)).size > 1) return new Map();
    const found = new Map<string, ClaimHardware>();
    const contradicted = new Set<string>();
    for (const device of own.flatMap(({ devices }) => devices)) {
      if (device.driver !== driver) continue;
      const key = claimDeviceKey({ namespace, name, ...device });
      const named = this.#withInterface(device);
      const hardware = this.#partTypes.has(device.type) ? { ...named, isPartition: true as const } : named;
      const known = found.get(key);
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(hardware)) contradicted.add(key);
      found.set(key, hardware);
    }
    for (const key of contradicted) found.delete(key);
    return found;
  }

  /**
   * The file names the interface as the pod sees it. On the host another interface may have this name, so the name counts only when the
   * hardware addresses are equal.
   */
  #withInterface({ hardware, network }: MetadataDevice): ClaimHardware {
    if (network === undefined || hardware.interfaceName !== undefined || /[/\0]|^\.+$/.test(network.interfaceName)) return hardware;
    const address = this.#sys.text(`class/net/${network.interfaceName}/address`);
    const isSame = address !== undefined && address.toLowerCase() === network.hardwareAddress.toLowerCase();
    return isSame ? { ...hardware, interfaceName: network.interfaceName } : hardware;
  }
}
