import type { Bounds } from '../../host/documents/bounds.ts';
import { parseJson } from '../../host/documents/json.ts';
import { parseYaml } from '../../host/documents/yaml.ts';
import type { Pseudonyms } from './pseudonyms.ts';
import type { Shapes } from './shapes.ts';

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const recordAt = (value: unknown, key: string): Json => {
  const inner = isRecord(value) ? value[key] : undefined;
  return isRecord(inner) ? inner : {};
};
const listAt = (value: unknown, key: string): readonly unknown[] => {
  const inner = isRecord(value) ? value[key] : undefined;
  return Array.isArray(inner) ? inner : [];
};

const textAt = (value: unknown, key: string): string | undefined => {
  const inner = isRecord(value) ? value[key] : undefined;
  return typeof inner === 'string' ? inner : undefined;
};
const numberAt = (value: unknown, key: string): number | undefined => {
  const inner = isRecord(value) ? value[key] : undefined;
  return typeof inner === 'number' ? inner : undefined;
};

/** Replaces a file whose content has not the form that its path requires: a link there can lead to any file of the machine. */
const unknown = (content: string): string => `not a known document, ${Buffer.byteLength(content)} bytes\n`;

/**
 * Reduces documents of the kubelet and of DRA drivers to the keys that the agent reads. The rest has environment variables, mounts and hooks
 * of containers, and a document of another kind has nothing that is known.
 */
export class Documents {
  readonly #pseudonyms: Pseudonyms;
  readonly #shapes: Shapes;

  constructor(pseudonyms: Pseudonyms, shapes: Shapes) {
    this.#pseudonyms = pseudonyms;
    this.#shapes = shapes;
  }

  /** An id of a device, of a claim's device, or a path of a device node. */
  readonly id = (text: string): string => this.#shapes.redact(text, 'names');

  /** The name of a resource, a driver or an API, with its domain. */
  readonly public = (text: string): string =>
    /^(?=.*[./])[a-z0-9.-]{1,253}(?:\/[\w.-]{1,64}){0,2}$/.test(text) ? this.#shapes.redact(text, 'texts') : this.id(text);

  /** `vendor.com/class=device`, as the kubelet and the kind and the device of a spec name it. */
  cdiName(name: string): string {
    const at = name.indexOf('=');
    return at < 0 ? this.id(name) : `${this.public(name.slice(0, at))}=${this.id(name.slice(at + 1))}`;
  }

  /** The kubelet's checkpoint. */
  checkpoint(content: string): string {
    const document = parsed(content);
    if (!isRecord(document) || !isRecord(document.Data)) return unknown(content);
    const entries = listAt(document.Data, 'PodDeviceEntries').map((entry) => ({
      PodUID: this.#text(entry, 'PodUID', this.id),
      ContainerName: this.#text(entry, 'ContainerName', (name) => this.#pseudonyms.name(name, 'ctr')),
      ResourceName: this.#text(entry, 'ResourceName', this.public),
      DeviceIDs: this.#ids(isRecord(entry) ? entry.DeviceIDs : []),
    }));
    return JSON.stringify({ Data: { PodDeviceEntries: entries }, Checksum: 0 });
  }

  /** A CDI spec. */
  cdiSpec(content: string): string {
    const document = parsed(content);
    const [cdiVersion, kind] = ['cdiVersion', 'kind'].map((key) => this.#text(document, key, this.public));
    if (cdiVersion === undefined || kind === undefined) return unknown(content);
    const edits = (value: unknown): Json => ({
      deviceNodes: listAt(recordAt(value, 'containerEdits'), 'deviceNodes').map((node) => ({
        path: this.#text(node, 'path', this.id),
        hostPath: this.#text(node, 'hostPath', this.id),
        type: this.#text(node, 'type', this.id),
        major: numberAt(node, 'major'),
        minor: numberAt(node, 'minor'),
      })),
    });
    const devices = listAt(document, 'devices').map((device) => ({
      name: this.#text(device, 'name', this.id),
      containerEdits: edits(device),
    }));
    return JSON.stringify({ cdiVersion, kind, devices, containerEdits: edits(document) });
  }

  /** The metadata of a claim: a stream of objects, one for each version of the API. */
  metadata(content: string): string {
    const objects = jsonStream(content).map((object) => this.#metadataObject(object));
    const known = objects.filter((object) => object !== undefined);
    return known.length === 0 || known.length < objects.length
      ? unknown(content)
      : known.map((object) => `${JSON.stringify(object)}\n`).join('');
  }

  #metadataObject(object: unknown): Json | undefined {
    if (textAt(object, 'kind') !== 'DeviceMetadata') return undefined;
    const meta = recordAt(object, 'metadata');
    return {
      apiVersion: this.#text(object, 'apiVersion', this.public),
      kind: 'DeviceMetadata',
      metadata: {
        namespace: this.#text(meta, 'namespace', (name) => this.#pseudonyms.name(name, 'ns')),
        name: this.#text(meta, 'name', (name) => this.#pseudonyms.name(name, 'claim')),
        uid: this.#text(meta, 'uid', this.id),
        generation: numberAt(meta, 'generation'),
      },
      requests: listAt(object, 'requests').map((request) => ({
        devices: listAt(request, 'devices').map((device) => this.#metadataDevice(device)),
      })),
    };
  }

  #metadataDevice(device: unknown): Json {
    const network = recordAt(device, 'networkData');
    const attributes = Object.entries(recordAt(device, 'attributes')).flatMap(([name, value]) => {
      const text = this.#text(value, 'string', this.id);
      return ATTRIBUTE.test(name) && text !== undefined ? [[this.public(name), { string: text }]] : [];
    });
    return {
      driver: this.#text(device, 'driver', this.public),
      pool: this.#text(device, 'pool', (name) => this.#pseudonyms.name(name, 'pool')),
      name: this.#text(device, 'name', this.id),
      attributes: Object.fromEntries(attributes) as Json,
      networkData: {
        interfaceName: this.#text(network, 'interfaceName', this.id),
        hardwareAddress: this.#text(network, 'hardwareAddress', this.id),
      },
    };
  }

  #text(value: unknown, key: string, redacted: (text: string) => string): string | undefined {
    const text = textAt(value, key);
    return text === undefined ? undefined : redacted(text);
  }

  /** A list of ids, or lists of ids by NUMA node. */
  #ids(value: unknown): unknown {
    if (typeof value === 'string') return this.id(value);
    if (Array.isArray(value)) return value.map((item) => this.#ids(item));
    return isRecord(value) ? Object.fromEntries(Object.entries(value).map(([node, ids]) => [this.id(node), this.#ids(ids)])) : undefined;
  }
}

/** Attributes of a claim's device that the agent reads, with or without a domain. */
const ATTRIBUTE = /^(?:[a-z0-9.-]{1,253}\/)?(?:pciBusID|pciAddress|uuid|ifName|interfaceName|parentUUID|type)$/;

/** Versions of the API in one file. */
const MOST_OBJECTS = 32;

/** The objects of a stream. A text that is none gives an undefined one. */
function jsonStream(content: string): readonly unknown[] {
  const parts = content.split(/(?<=\})\s*(?=\{)/);
  if (parts.length > MOST_OBJECTS) return [undefined];
  const [objects, open]: [unknown[], string[]] = [[], []];
  for (const part of parts) {
    open.push(part);
    const object = parsed(open.join(''));
    if (object !== undefined) objects.push(object);
    if (object !== undefined) open.length = 0;
  }
  return open.length === 0 ? objects : [...objects, undefined];
}

/** Bounds of the kubelet's checkpoint, and those of YAML as for CDI specs: its parser takes more memory for each entry. */
const JSON_BOUNDS: Bounds = { mostBytes: 8 * 1_048_576, mostEntries: 250_000, mostDepth: 32 };
const YAML_BOUNDS: Bounds = { mostBytes: 2 * 1_048_576, mostEntries: 50_000, mostDepth: 32 };

function parsed(content: string): unknown {
  try {
    return content.trimStart().startsWith('{') ? parseJson(content, JSON_BOUNDS) : parseYaml(content, YAML_BOUNDS);
  } catch {
    return undefined;
  }
}
