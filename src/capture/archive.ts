import { gunzipSync, gzipSync } from 'node:zlib';
import { Ajv } from 'ajv';
import type { Bounds } from '../host/documents/bounds.ts';
import { parseJson } from '../host/documents/json.ts';
import { isTreePath } from './entry-name.ts';
import { type Capture, FORMAT, type Frame, type Manifest } from './frame.ts';
import { packTar, type TarEntry } from './tar.ts';
import { ARCHIVE_LIMITS, ArchiveProblem, pathProblem, unpackTar } from './untar.ts';

const MANIFEST = 'manifest.json';
const folderOf = (index: number): string => `frames/${String(index).padStart(5, '0')}`;
const FRAME = 'frame.json';
const PAGE = 'page.prom';
const TREE = 'tree/';

/** The part of a frame that is one JSON file. */
type FrameText = Omit<Frame, 'files' | 'page'>;

/** A capture as a compressed archive that `tar` opens. */
export function packCapture({ manifest, frames }: Capture): Buffer {
  const json = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value, null, 1)}\n`);
  const entries: TarEntry[] = [{ path: MANIFEST, bytes: json(manifest) }];
  for (const [index, { files, page, ...text }] of frames.entries()) {
    const folder = folderOf(index);
    entries.push({ path: `${folder}/${FRAME}`, bytes: json(text) }, { path: `${folder}/${PAGE}`, bytes: Buffer.from(page) });
    for (const [path, bytes] of Object.entries(files)) entries.push({ path: `${folder}/${TREE}${path}`, bytes });
  }
  return gzipSync(packTar(entries, frames[0]?.wallMs ?? 0));
}

/** Bytes that a frame adds to an archive, without compression. */
export function frameBytes({ files, page, ...text }: Frame): number {
  const sizes = Object.values(files).map(({ length }) => 1_024 + length);
  return sizes.reduce((sum, size) => sum + size, 2_048 + page.length + JSON.stringify(text).length);
}

/** Reads an archive. Throws {@link ArchiveProblem} for everything that is no capture of this format. */
export function unpackCapture(archive: Buffer): Capture {
  const entries = new Map(unpackTar(uncompressed(archive)).map(({ path, bytes }) => [path, bytes]));
  const manifest = parsed<Manifest>(entries, MANIFEST, isManifest, () => new ArchiveProblem('it is no capture of device-agent'));
  if (manifest.format !== FORMAT)
    throw new ArchiveProblem(`it has format ${manifest.format}, and this version of device-agent reads format ${FORMAT}`);
  const frames = Array.from({ length: manifest.frames }, (_, index) => frameOf(entries, folderOf(index)));
  if (frames.length === 0) throw new ArchiveProblem('it has no frame');
  return { manifest, frames };
}

function uncompressed(archive: Buffer): Buffer {
  if (archive[0] !== 0x1f || archive[1] !== 0x8b) return archive;
  try {
    return gunzipSync(archive, { maxOutputLength: ARCHIVE_LIMITS.mostBytes });
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new ArchiveProblem(isTooLarge ? `it is larger than ${ARCHIVE_LIMITS.mostBytes} bytes` : 'it is cut off or damaged');
  }
}

function frameOf(entries: ReadonlyMap<string, Uint8Array>, folder: string): Frame {
  const text = parsed<FrameText>(entries, `${folder}/${FRAME}`, isFrame, () => new ArchiveProblem(`${folder} is missing or damaged`));
  const start = `${folder}/${TREE}`;
  const files = Object.fromEntries(
    [...entries].flatMap(([path, bytes]) => (path.startsWith(start) ? [[path.slice(start.length), bytes] as const] : [])),
  );
  for (const path of [
    ...Object.keys(files),
    ...Object.keys(text.links),
    ...Object.keys(text.errors),
    ...text.directories,
    ...text.unread,
    ...text.removed,
  ])
    if (!isTreePath(path)) throw pathProblem(path);
  return { ...text, files, page: Buffer.from(entries.get(`${folder}/${PAGE}`) ?? []).toString('utf8') };
}

function parsed<T>(
  entries: ReadonlyMap<string, Uint8Array>,
  path: string,
  isValid: (value: unknown) => boolean,
  problem: () => ArchiveProblem,
): T {
  try {
    const value = parseJson(Buffer.from(entries.get(path) ?? []).toString('utf8'), BOUNDS);
    if (isValid(value)) return value as T;
  } catch {
    // It is no JSON, or past its bounds.
  }
  throw problem();
}

/** A frame has an entry for each file, command and answer of a node: some ten thousand. */
const BOUNDS: Bounds = { mostBytes: ARCHIVE_LIMITS.mostEntryBytes, mostEntries: 1_000_000, mostDepth: 16 };

const texts = { type: 'object', required: [], additionalProperties: { type: 'string' } } as const;
const paths = { type: 'array', items: { type: 'string' } } as const;
const number = { type: 'number' } as const;
const string = { type: 'string' } as const;

const manifestSchema = {
  type: 'object',
  required: ['format', 'agentVersion', 'node', 'isRedacted', 'options', 'parts', 'frames'],
  properties: {
    format: number,
    agentVersion: string,
    node: string,
    isRedacted: { type: 'boolean' },
    options: texts,
    parts: { type: 'object' },
    frames: { type: 'integer', minimum: 0, maximum: 100_000 },
  },
} as const;

const frameSchema = {
  type: 'object',
  required: ['atMs', 'wallMs', 'links', 'directories', 'unread', 'errors', 'removed', 'kernelLog', 'commands', 'library', 'requests'],
  properties: {
    atMs: { type: 'number', minimum: 0 },
    wallMs: { type: 'number', minimum: 0, maximum: 8.64e15 },
    links: texts,
    directories: paths,
    unread: paths,
    errors: { ...texts, additionalProperties: { type: 'string', pattern: '^[A-Za-z-]{1,32}$' } },
    removed: paths,
    kernelLog: paths,
    commands: {
      type: 'array',
      items: {
        type: 'object',
        required: ['program', 'args', 'stdout', 'stderr'],
        properties: {
          program: string,
          args: paths,
          stdout: string,
          stderr: string,
          exitCode: { type: 'integer', minimum: 0, maximum: 255 },
          signal: { type: 'string', pattern: '^SIG[A-Z0-9]{1,12}$' },
          failure: string,
        },
      },
    },
    library: {
      type: 'array',
      items: {
        type: 'object',
        required: ['symbol', 'types', 'values', 'memory'],
        properties: {
          symbol: string,
          types: string,
          values: paths,
          code: number,
          event: number,
          memory: {
            type: 'array',
            items: { type: 'object', required: ['at', 'before', 'after'], properties: { at: number, before: string, after: string } },
          },
        },
      },
    },
    requests: {
      type: 'array',
      items: {
        type: 'object',
        required: ['method', 'kubelet'],
        properties: {
          method: { type: 'string', pattern: '^/[A-Za-z0-9._/]{1,200}$' },
          kubelet: { type: 'integer' },
          answer: string,
          error: {
            type: 'object',
            required: ['code', 'details'],
            properties: { code: { type: 'integer', minimum: 1, maximum: 16 }, details: string, errno: string },
          },
        },
      },
    },
  },
} as const;

const ajv = new Ajv({ strict: false });
const isManifest = ajv.compile(manifestSchema);
const isFrame = ajv.compile(frameSchema);
