import { AllocatableResourcesResponse, ListPodResourcesResponse, PodResourcesListerService } from '../../generated/podresources/v1/api.ts';
import { PodResourcesListerService as Alpha, ListPodResourcesResponse as ListAlpha } from '../../generated/podresources/v1alpha1/api.ts';
import { type CdiNode, cdiSpecOf } from '../../host/cdi/spec.ts';
import { jsonStream, parseJson } from '../../host/documents/json.ts';
import type { Bounds } from '../../host/documents/kind.ts';
import { firstDocument } from '../../host/documents/yaml-nodes.ts';
import type { Pseudonyms } from './pseudonyms.ts';
import type { Shape, Shapes } from './shapes.ts';

/** Replaces a file whose content has not the form that its path requires: a link there can lead to any file of the machine. */
const unknown = (content: string): string => `not a known document, ${Buffer.byteLength(content)} bytes\n`;
/** Bounds of the kubelet's checkpoint, and those of CDI specs: their parser takes more memory for each entry. */
const JSON_BOUNDS: Bounds = { mostBytes: 8 * 1_048_576, mostEntries: 250_000, mostDepth: 32 };
const YAML_BOUNDS: Bounds = { mostBytes: 2 * 1_048_576, mostEntries: 50_000, mostDepth: 32 };
/** Attributes of a claim's device that the agent reads, with or without a domain. */
const ATTRIBUTE = /^(?:[a-z0-9.-]{1,253}\/)?(?:pciBusID|pciAddress|uuid|ifName|interfaceName|parentUUID|type)$/;

/**
 * Reduces documents of the kubelet and of DRA drivers to the keys that the agent reads. The rest has environment variables, mounts and hooks
 * of containers, and a document of another kind has nothing that is known.
 */
export class Documents {
  readonly #checkpoint: Rule;
  readonly #metadata: Rule;
  readonly #shapes: Shapes;

  constructor(pseudonyms: Pseudonyms, shapes: Shapes) {
    this.#shapes = shapes;
    const [id, known] = [text(this.id), text(this.public)];
    const name = (prefix: string): Rule => text((value) => pseudonyms.name(value, prefix));
    const ids: Rule = (value) =>
      isRecord(value) ? Object.fromEntries(Object.entries(value).map(([node, one]) => [this.id(node), list(id)(one)])) : list(id)(value);
    const entry = record({ PodUID: id, ContainerName: name('ctr'), ResourceName: known, DeviceIDs: ids });
    this.#checkpoint = record({ Data: record({ PodDeviceEntries: list(entry) }) });
    const attributes: Rule = (value) =>
      Object.fromEntries(
        Object.entries(isRecord(value) ? value : {}).flatMap(([key, one]) =>
          ATTRIBUTE.test(key) ? [[this.public(key), record({ string: id })(one)]] : [],
        ),
      );
    const networkData = record({ interfaceName: id, hardwareAddress: id });
    const device = record({ driver: known, pool: name('pool'), name: id, attributes, networkData });
    this.#metadata = record({
      apiVersion: known,
      kind: known,
      metadata: record({ namespace: name('ns'), name: name('claim'), uid: id, generation: number }),
      requests: list(record({ devices: list(device) })),
    });
  }

  /** An id of a device, of a claim's device, or a path of a device node. */
  readonly id = (value: string): string => this.#shapes.redact(value, 'names');

  /** The name of a resource, a driver or an API, with its domain. */
  readonly public = (value: string): string =>
    /^(?:(?=.*[./])[a-z0-9.-]{1,253}(?:\/[\w.-]{1,64}){0,2}|DeviceMetadata)$/.test(value)
      ? this.#shapes.redact(value, 'texts')
      : this.id(value);

  /** `vendor.com/class=device`, as the kubelet and the kind and the device of a spec name it. */
  cdiName(name: string): string {
    const at = name.indexOf('=');
    return at < 0 ? this.id(name) : `${this.public(name.slice(0, at))}=${this.id(name.slice(at + 1))}`;
  }

  /** The kubelet's checkpoint. */
  checkpoint(content: string): string {
    const document = parsed(content);
    if (!isRecord(document) || !isRecord(document.Data)) return unknown(content);
    return JSON.stringify({ ...(this.#checkpoint(document) as object), Checksum: 0 });
  }

  /** A CDI spec: the device nodes. A device without nodes keeps its name, and needs a change that it makes. */
  cdiSpec(content: string): string {
    try {
      const { cdiVersion, kind, devices } = cdiSpecOf(firstDocument(content, YAML_BOUNDS));
      const id = (value: string): string | undefined => (value === '' ? undefined : this.id(value));
      const node = ({ path, hostPath, type, major, minor }: CdiNode): object => ({
        ...{ path: id(path), hostPath: id(hostPath), type: id(type), major, minor },
      });
      return JSON.stringify({
        cdiVersion,
        kind: this.public(kind),
        devices: devices.map(({ name, containerEdits: { deviceNodes } }) => ({
          name: id(name),
          containerEdits: deviceNodes.length === 0 ? { env: ['CDI=redacted'] } : { deviceNodes: deviceNodes.map(node) },
        })),
      });
    } catch {
      return unknown(content);
    }
  }

  /** The metadata of a claim: a stream of objects, one for each version of the API. */
  metadata(content: string): string {
    try {
      const { objects, isComplete } = jsonStream(content, JSON_BOUNDS);
      const isKnown = objects.every((object) => isRecord(object) && object.kind === 'DeviceMetadata');
      if (isComplete && isKnown && objects.length > 0)
        return objects.map((object) => `${JSON.stringify(this.#metadata(object))}\n`).join('');
    } catch {
      // It is past the bounds.
    }
    return unknown(content);
  }
}

function parsed(content: string): unknown {
  try {
    return parseJson(content, JSON_BOUNDS);
  } catch {
    return undefined;
  }
}

/** What is kept of a value of a document; undefined: nothing. */
export type Rule = (value: unknown) => unknown;

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const text =
  (redacted: (value: string) => string): Rule =>
  (value) =>
    typeof value === 'string' ? redacted(value) : undefined;

/** A number, also one of 64 bits. */
export const number: Rule = (value) => (typeof value === 'number' || typeof value === 'bigint' ? value : undefined);

export const list =
  (rule: Rule): Rule =>
  (value) =>
    Array.isArray(value) ? value.map(rule) : undefined;

/** A document with these keys and no others. */
export const record =
  (rules: Readonly<Record<string, Rule>>): Rule =>
  (value) =>
    isRecord(value) ? Object.fromEntries(Object.entries(rules).map(([key, rule]) => [key, rule(value[key])])) : undefined;

/**
 * Replaces the names in an answer of the kubelet. The answer is decoded and encoded again, so that fields which this version does not
 * know are dropped, because they may name anything. Undefined for a method that this version does not know.
 */
export function redactAnswer(method: string, bytes: Uint8Array, pseudonyms: Pseudonyms, documents: Documents): Uint8Array | undefined {
  const [id, known] = [text(documents.id), text(documents.public)];
  const name = (prefix: string): Rule => text((value) => pseudonyms.name(value, prefix));
  const topology = record({ nodes: list(record({ ID: number })) });
  const cpuIds = list(number);
  const memory = list(record({ memoryType: id, size: number, topology }));
  const devices = list(record({ resourceName: known, deviceIds: list(id), topology }));
  const cdiDevices = list(record({ name: text((value) => documents.cdiName(value)) }));
  const claimResources = list(record({ driverName: known, poolName: name('pool'), deviceName: id, cdiDevices, shareId: id }));
  const dynamicResources = list(record({ claimName: name('claim'), claimNamespace: name('ns'), claimResources }));
  const containers = list(record({ name: name('ctr'), devices, cpuIds, memory, dynamicResources }));
  const pods = record({ podResources: list(record({ namespace: name('ns'), name: name('pod'), cpuIds, memory, containers })) });
  if (method === PodResourcesListerService.list.path)
    return ListPodResourcesResponse.encode(
      ListPodResourcesResponse.fromPartial(pods(ListPodResourcesResponse.decode(bytes)) as object),
    ).finish();
  if (method === Alpha.list.path) return ListAlpha.encode(ListAlpha.fromPartial(pods(ListAlpha.decode(bytes)) as object)).finish();
  if (method !== PodResourcesListerService.getAllocatableResources.path) return undefined;
  const allocatable = record({ devices, cpuIds, memory })(AllocatableResourcesResponse.decode(bytes));
  return AllocatableResourcesResponse.encode(AllocatableResourcesResponse.fromPartial(allocatable as object)).finish();
}

/** Labels that name something of the cluster, with the prefix of the replacement. */
const NAMES: readonly (readonly [label: RegExp, prefix: string])[] = [
  [/namespace$/, 'ns'],
  [/pod$/, 'pod'],
  [/container$/, 'ctr'],
  [/claim$/, 'claim'],
  [/pool$/, 'pool'],
];
/** Labels with what all boards of a kind share. */
const TEXTS =
  /^(?:model|vendor|brand|rate|board_id|board_part|gpu_part|driver|firmware|vbios|gsp_firmware|\w*version|bitstream_id|shell|compat_id|accelerator_id|memory_vendor|gfx_target|hardware_revision)$/;
/** Labels with identities. */
const IDENTITIES = /^(?:serial|uuid|unique_id|\w*guid)$/;
const NAMES_OF_RESOURCES = /^(?:resource|driver_name|dra_driver)$/;
const LABEL = /([{,])([a-zA-Z_]\w*)="((?:[^"\\\n]|\\.)*)"/g;

/** Replaces names and identities in the labels of a metrics page. Values are numbers, and comments are of the agent. */
export function redactLabels(page: string, pseudonyms: Pseudonyms, shapes: Shapes, documents: Documents): string {
  const other = (label: string, value: string): string => {
    const prefix = NAMES.find(([name]) => name.test(label))?.[1];
    if (prefix !== undefined) return pseudonyms.name(value, prefix);
    if (NAMES_OF_RESOURCES.test(label)) return documents.public(value);
    const shape: Shape = TEXTS.test(label) ? 'texts' : IDENTITIES.test(label) ? 'nothing' : 'names';
    return shapes.redact(value, shape);
  };
  return page
    .split('\n')
    .map((line) =>
      line.startsWith('#')
        ? line
        : line.replaceAll(LABEL, (_, head: string, label: string, value: string) => `${head}${label}="${other(label, value)}"`),
    )
    .join('\n');
}
