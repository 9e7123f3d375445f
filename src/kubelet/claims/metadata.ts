import { jsonStream } from '../../host/documents/json.ts';
import type { Bounds, DocumentKind } from '../../host/documents/kind.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import { type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import { defined } from '../../model/defined.ts';

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
