import type { Bounds } from '../../host/documents/bounds.ts';
import { parseJson } from '../../host/documents/json.ts';
import { parseYaml } from '../../host/documents/yaml.ts';
import type { Pseudonyms } from './pseudonyms.ts';

type Text = (text: string) => string;
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

/** Reduces the kubelet's checkpoint to what the agent reads. The rest has environment variables and paths of containers. */
export function redactCheckpoint(content: string, pseudonyms: Pseudonyms, text: Text): string {
  const document = parsed(content);
  if (document === undefined) return '';
  const entries = listAt(recordAt(document, 'Data'), 'PodDeviceEntries').map((entry) => ({
    ...(strings(isRecord(entry) ? { PodUID: entry.PodUID, ResourceName: entry.ResourceName } : {}, text) as Json),
    ContainerName: pseudonyms.name(String(isRecord(entry) ? (entry.ContainerName ?? '') : ''), 'ctr'),
    DeviceIDs: strings(isRecord(entry) ? entry.DeviceIDs : [], text) ?? [],
  }));
  return JSON.stringify({ Data: { PodDeviceEntries: entries }, Checksum: 0 });
}

/** Reduces a CDI spec to the device nodes. The rest has environment variables, mounts and hooks of containers. */
export function redactCdiSpec(content: string, text: Text): string {
  const document = parsed(content);
  if (!isRecord(document)) return '';
  const edits = (value: unknown): Json => ({
    deviceNodes: strings(
      listAt(recordAt(value, 'containerEdits'), 'deviceNodes').map((node) => {
        const { path, hostPath, type, major, minor } = isRecord(node) ? node : {};
        return { path, hostPath, type, major, minor };
      }),
      text,
    ),
  });
  const devices = listAt(document, 'devices').map((device) => ({
    name: strings(isRecord(device) ? device.name : '', text),
    containerEdits: edits(device),
  }));
  const { cdiVersion, kind } = document;
  return JSON.stringify({ cdiVersion, kind, devices, containerEdits: edits(document) });
}

/** Replaces names and identifiers in the metadata of a claim. It can be a stream of objects, so it stays a text. */
export function redactMetadata(content: string, pseudonyms: Pseudonyms, text: Text): string {
  return content.replaceAll(/"((?:[^"\\]|\\.)*)"/g, (_, value: string) => `"${pseudonyms.known(value) ?? text(value)}"`);
}

/** Replaces text in all values and keys of a document. */
function strings(value: unknown, text: Text): unknown {
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return value.map((item) => strings(item, text));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, strings(inner, text)]));
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
