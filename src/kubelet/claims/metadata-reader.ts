import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Clock, pause } from '../../host/clock.ts';
import { DocumentCache, forEachOf, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import { jsonStream } from '../../host/documents/json.ts';
import type { Bounds, DocumentKind, DocumentProblem } from '../../host/documents/kind.ts';
import { descriptorPath, type OpenedPath, openEntry, openPath } from '../../host/fs/open-path.ts';
import type { Tree } from '../../host/fs/tree.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimForms, type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import { defined } from '../../model/defined.ts';
import type { Observe } from '../../model/observation.ts';
import type { ClaimFiles } from './cdi-reader.ts';

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
      await pause(this.#clock, HALF_WRITTEN_MS);
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

/** One device that a metadata file describes. */
export interface MetadataDevice {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly hardware: ClaimHardware;
  /** Name that the driver has for this kind of devices. */
  readonly type?: string;
  /** The interface in the pod and its address. The name says nothing about the host until the address was compared. */
  readonly network?: { readonly interfaceName: string; readonly hardwareAddress: string };
}

/** The content of one metadata file of a DRA driver (KEP-5304). */
export interface Metadata {
  readonly namespace: string;
  readonly claim: string;
  readonly uid: string;
  readonly generation: number;
  readonly devices: readonly MetadataDevice[];
}

/** Kubernetes limits a claim to 32 requests and a device to 32 attributes; a file has one request and some versions of it. */
const BOUNDS: Bounds = { mostBytes: 1_048_576, mostEntries: 50_000, mostDepth: 32 };

/**
 * Metadata files. Wanted are the keys of devices ({@link claimDeviceKey}). The value is undefined when no complete object could be understood, or
 * when the objects belong to different claims.
 */
export const metadataKind: DocumentKind<Metadata | undefined> = {
  bounds: BOUNDS,
  parse: (text, wanted) => {
    const { objects, isComplete } = jsonStream(text, BOUNDS);
    const metadata = newest(objects);
    if (metadata === undefined) return { value: undefined, isComplete };
    const { namespace, claim: name } = metadata;
    const devices = metadata.devices.filter((device) => wanted.has(claimDeviceKey({ namespace, name, ...device })));
    return { value: { ...metadata, devices }, isComplete };
  },
};

/**
 * A stream has one object for each API version. The order of versions has no meaning here. The highest generation counts, and of one generation
 * the most stable version.
 */
function newest(objects: readonly unknown[]): Metadata | undefined {
  const understood = objects.map(versioned).filter((one) => one !== undefined);
  const [best] = understood.sort((a, b) => b.metadata.generation - a.metadata.generation || b.stability - a.stability);
  if (best === undefined) return undefined;
  const { namespace, claim, uid } = best.metadata;
  const isOneClaim = understood.every(
    ({ metadata }) => metadata.uid === uid && metadata.namespace === namespace && metadata.claim === claim,
  );
  return isOneClaim ? best.metadata : undefined;
}

const API_VERSION = /^metadata\.resource\.k8s\.io\/v1(?:(alpha|beta)(\d{1,3}))?$/;

function versioned(value: unknown): { readonly metadata: Metadata; readonly stability: number } | undefined {
  const version = API_VERSION.exec(textOf(field(value, 'apiVersion')) ?? '');
  if (version === null || field(value, 'kind') !== 'DeviceMetadata') return undefined;
  const meta = field(value, 'metadata');
  const [namespace, claim, uid] = ['namespace', 'name', 'uid'].map((name) => textOf(field(meta, name)));
  if (namespace === undefined || claim === undefined || uid === undefined) return undefined;
  const generation = field(meta, 'generation');
  const devices = listOf(field(value, 'requests')).flatMap((request) => listOf(field(request, 'devices')).flatMap(deviceFrom));
  const metadata = { namespace, claim, uid, generation: typeof generation === 'number' ? generation : 0, devices };
  return { metadata, stability: stabilityOf(version[1], Number(version[2] ?? 0)) };
}

function stabilityOf(stage: string | undefined, number: number): number {
  if (stage === undefined) return 2_000;
  return (stage === 'beta' ? 1_000 : 0) + number;
}

function deviceFrom(value: unknown): MetadataDevice[] {
  const [driver, pool, device] = ['driver', 'pool', 'name'].map((name) => textOf(field(value, name)));
  if (driver === undefined || pool === undefined || device === undefined) return [];
  const network = networkFrom(field(value, 'networkData'));
  const attributes = field(value, 'attributes');
  /** An attribute without a domain belongs to the driver's domain. Lists and unknown types of values are skipped. */
  const own = (name: string): string | undefined =>
    attributeText(field(attributes, name)) ?? attributeText(field(attributes, `${driver}/${name}`));
  const type = own('type');
  const hardware = hardwareFrom(attributeText(field(attributes, 'resource.kubernetes.io/pciBusID')), own);
  return [defined({ driver, pool, device, hardware, type, network })];
}

function hardwareFrom(standardAddress: string | undefined, own: (name: string) => string | undefined): ClaimHardware {
  const address = standardAddress ?? own('pciBusID') ?? own('pciAddress');
  return defined({
    by: 'metadata',
    pciAddress: address === undefined ? undefined : normalizePciAddress(address),
    uuid: own('uuid'),
    interfaceName: own('ifName') ?? own('interfaceName'),
    isPartition: own('parentUUID') === undefined ? undefined : true,
  });
}

function networkFrom(value: unknown): MetadataDevice['network'] {
  const interfaceName = textOf(field(value, 'interfaceName'));
  const hardwareAddress = textOf(field(value, 'hardwareAddress'));
  return interfaceName === undefined || hardwareAddress === undefined ? undefined : { interfaceName, hardwareAddress };
}

const attributeText = (value: unknown): string | undefined => textOf(field(value, 'string'));

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
