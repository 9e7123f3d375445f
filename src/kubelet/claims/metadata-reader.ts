import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import type { Tree } from '../../host/fs/tree.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';
import { FileCache, forEachOf, type Parsed } from './file-cache.ts';
import { type Metadata, type MetadataDevice, parseMetadata } from './metadata.ts';

/** A claim has 32 requests at most, and Kubernetes limits the attributes of a device. */
const MOST_REQUESTS = 64;
const MOST_BYTES = 1_048_576;
const AT_ONCE = 8;
/** A driver rewrites a file in place. A second read after this time finds the file complete. */
const HALF_WRITTEN_MS = 20;
/** Names of the kubelet's answer become parts of a path: DNS subdomains, without a slash. */
const PATH_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const SUBDIRECTORY = 'dra-device-metadata';

/**
 * Reads the metadata files of DRA drivers (KEP-5304): `<dir>/<driver>/dra-device-metadata/<namespace>_<claim>/<request>/metadata.json`.
 * It opens only the directories of claims that a container holds, so files of ended claims cost nothing.
 */
export class MetadataReader {
  readonly #directory: string;
  readonly #sys: Tree;
  readonly #clock: Clock;
  readonly #observe: Observe | undefined;
  readonly #files: FileCache<Metadata | undefined>;

  constructor(directory: string, sys: Tree, clock: Clock, observe?: Observe) {
    this.#observe = observe;
    const parse = (text: string): Parsed<Metadata | undefined> => {
      const { metadata, isComplete } = parseMetadata(text);
      return { value: metadata, isComplete };
    };
    this.#files = new FileCache(MOST_BYTES, parse, observe);
    this.#directory = directory;
    this.#sys = sys;
    this.#clock = clock;
  }

  /** Returns the hardware of the devices of these claims, keyed by {@link claimDeviceKey}. Never rejects. */
  async read(claims: readonly Claim[]): Promise<ReadonlyMap<string, ClaimHardware>> {
    const found = new Map<string, ClaimHardware>();
    const byDirectory = new Map<string, Claim>();
    for (const claim of claims) {
      if (![claim.driver, claim.namespace, claim.name].every((name) => PATH_NAME.test(name))) continue;
      byDirectory.set(join(this.#directory, claim.driver, SUBDIRECTORY, `${claim.namespace}_${claim.name}`), claim);
    }
    await forEachOf([...byDirectory], AT_ONCE, async ([directory, claim]) => {
      for (const [key, hardware] of this.#join(await this.#documents(directory), claim)) found.set(key, hardware);
    });
    this.#files.endRound();
    return found;
  }

  /** The documents of all requests of a claim. */
  async #documents(directory: string): Promise<readonly Metadata[]> {
    const requests = await readdir(directory).catch((): string[] => []);
    this.#observe?.({ kind: 'directory', path: directory, entries: requests.map((name) => [name, 'directory'] as const) });
    const documents: Metadata[] = [];
    for (const request of requests.slice(0, MOST_REQUESTS)) {
      const path = join(directory, request, 'metadata.json');
      let read = await this.#files.read(path);
      if (read?.isComplete === false) {
        await new Promise<void>((resolve) => void this.#clock.after(HALF_WRITTEN_MS, resolve));
        read = await this.#files.read(path);
      }
      if (read?.value !== undefined) documents.push(read.value);
    }
    return documents;
  }

  /**
   * A document counts only where it stands under the names that it states. Documents with two UIDs belong to two claims of one name, and
   * nothing tells which of them has ended: none counts. A device that two documents describe differently is left out.
   */
  #join(documents: readonly Metadata[], { namespace, name, driver }: Claim): ReadonlyMap<string, ClaimHardware> {
    const own = documents.filter((one) => one.namespace === namespace && one.claim === name);
    if (new Set(own.map(({ uid }) => uid)).size > 1) return new Map();
    const found = new Map<string, ClaimHardware>();
    const contradicted = new Set<string>();
    for (const device of own.flatMap(({ devices }) => devices)) {
      if (device.driver !== driver) continue;
      const key = claimDeviceKey({ namespace, name, ...device });
      const hardware = this.#withInterface(device);
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
