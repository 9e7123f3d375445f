// Large and hostile documents for each reader: it must stay within 100 ms of CPU for each megabyte and 32 MiB above the file.
import { readFileSync, writeFileSync } from 'node:fs';
import { Documents } from '../../../dist/capture/redaction/documents.js';
import { Pseudonyms } from '../../../dist/capture/redaction/pseudonyms.js';
import { Shapes } from '../../../dist/capture/redaction/shapes.js';
import { checkDeclaration } from '../../../dist/config/families/family-file.js';
import { checkConfigText } from '../../../dist/config/file.js';
import { createRegistry } from '../../../dist/config/registry.js';
import { loadFamilies, optionSections } from '../../../dist/config/sections.js';
import { structuredParts } from '../../../dist/config/structured.js';
import { parseWebConfig } from '../../../dist/config/web/web-config.js';
import { answerOf } from '../../../dist/host/documents/kind.js';
import { documentKinds } from '../../../dist/kubelet/document-kinds.js';
import { familyLoaders } from '../../../dist/probes/families.js';
import { mutate, pick, randomText } from '../random.mjs';

const MIB = 2 ** 20;
const MS_PER_MIB = 100;
const ABOVE_FILE_MIB = 32;

/** Texts that fill a size. */
const fill = (size, make) => {
  const parts = [];
  for (let [at, length] = [0, 0]; length < size; at += 1) {
    parts.push(make(at));
    length += parts.at(-1).length;
  }
  return parts.join('');
};
const indented = (size) => {
  let text = '';
  for (let at = 0; text.length < size; at += 1) text += `${' '.repeat(at)}a:\n`;
  return text;
};

const JSON_SHAPES = [
  (size) => `{${fill(size, (at) => `"k${at}":1,`)}"z":1}`,
  (size) => `{"a":[${fill(size, () => '1,')}1]}`,
  (size) => `{"a":[${fill(size, () => '{},')}1]}`,
  (size) => `{"a":[${fill(size, () => '"",')}1]}`,
  (size) => `{"a":[${fill(size, (at) => `{"k${at}":{}},`)}1]}`,
  (size) => '['.repeat(size),
  (size) => '{"a":'.repeat(size / 5),
  (size) => `{"a":${'['.repeat(size / 2)}${']'.repeat(size / 2)}}`,
  (size) => `{"a":"${'x'.repeat(size)}"}`,
  (size) => `{"a":"${'\\u0041'.repeat(size / 6)}"}`,
  (size) => `{"a":"${'\\\\'.repeat(size / 2)}"}`,
  (size) => `{"a":"${'é'.repeat(size / 2)}"}`,
  (size) => `{"a":${'1'.repeat(size)}}`,
  (size) => `{"a":1${' '.repeat(size)}}`,
  (size) => fill(size, () => '{}'),
  (size) => fill(size, () => '{"a":1}\n'),
  (size) => '"'.repeat(size),
];
const YAML_SHAPES = [
  (size) => fill(size, (at) => `k${at}: 1\n`),
  (size) => `{${fill(size, (at) => `k${at}: 1, `)}}\n`,
  (size) => `a: [${fill(size, () => '1, ')}]\n`,
  (size) => `a: [${fill(size, () => ',')}]\n`,
  (size) => `a: [${fill(size, () => '{},')}]\n`,
  (size) => `a: ${fill(size, () => 'x\n ')}\n`,
  (size) => `a: "${fill(size, () => 'x\n ')}"\n`,
  (size) => `a: '${fill(size, () => 'x\n ')}'\n`,
  (size) => `a: ${'x'.repeat(size)}\n`,
  (size) => `a: x${' '.repeat(size)}y\n`,
  (size) => `a: "${'\\x41'.repeat(size / 4)}"\n`,
  (size) => `a: |\n${fill(size, () => '  x\n')}`,
  (size) => `a: >\n${fill(size, () => '  x\n\n')}`,
  (size) => fill(size, () => '# c\n'),
  (size) => `a: 1\n${'\n'.repeat(size)}`,
  (size) => fill(size, () => '- # c\n  1\n'),
  (size) => '['.repeat(size),
  (size) => '{a: '.repeat(size / 4),
  (size) => '- '.repeat(size / 2),
  (size) => '? '.repeat(size / 2),
  indented,
  (size) => fill(size, (at) => `? k${at}\n: 1\n`),
  (size) => fill(size, () => '? [a]\n: 1\n'),
  (size) => fill(size, (at) => `- &a${at} x\n`),
  (size) => `- &a x\n${fill(size, () => '- *a\n')}`,
  (size) => `- &a [${fill(size / 2, () => '1,')}]\n${fill(400, () => '- *a\n')}`,
  (size) => `b: &b {x: 1}\n${fill(size, (at) => `k${at}:\n  <<: *b\n`)}`,
  (size) => fill(size, () => '---\na: 1\n'),
  (size) => fill(size, () => '- !!str a\n'),
  (size) => `${fill(size, (at) => `%TAG !e${at}! tag:x,2000:\n`)}---\na: 1\n`,
  (size) => fill(size, () => 'a: b: c\n'),
  (size) => fill(size, () => '\ta: 1\n'),
  (size) => ':'.repeat(size),
  (size) => `a: ${'1'.repeat(size)}\n`,
  (size) => `a: ${'_'.repeat(size)}\n`,
  (size) => `a: 2001-12-14t21:59:43.${'1'.repeat(size)}x\n`,
  (size) => fill(size, () => 'a\r'),
  (size) => '&a '.repeat(size / 3),
  (size) => '!a '.repeat(size / 3),
  (size) => `{${fill(size, () => 'a,')}}\n`,
  () => 'a: &a [*a]\n',
];

/** Nine of ten inputs are small; few are as large as a reader allows, and larger. */
function sizeOf(choose, most) {
  const part = choose(100);
  return Math.max(8, Math.ceil(choose(part < 90 ? 16_384 : part < 99 ? most / 8 : most * 1.05)));
}

function inputOf(choose, sample, shapes, most) {
  const size = sizeOf(choose, most);
  const kind = choose(10);
  if (kind < 3) return mutate(choose, sample);
  if (kind === 3) return randomText(choose, 2_000);
  const shape = pick(choose, shapes)(size);
  // Inside of a document that is otherwise right, so that what follows the parser sees it too.
  if (kind < 6) return sample + shape;
  return choose(4) === 0 ? mutate(choose, shape) : shape;
}

/** A target that measures CPU, because the machine can be busy, and the highest memory of the process while it reads. */
function measured(sample, shapes, most, read) {
  const worst = { msPerMiB: 0, ms: 0, aboveMiB: 0, text: '' };
  const once = async (text) => {
    writeFileSync('/proc/self/clear_refs', '5');
    const [before, started] = [statusMiB('VmRSS'), process.cpuUsage()];
    await read(text);
    const { user, system } = process.cpuUsage(started);
    return { ms: (user + system) / 1_000, aboveMiB: statusMiB('VmHWM') - before };
  };
  let isWarm = false;
  return {
    make: (choose) => inputOf(choose, sample, shapes, most),
    async check(text) {
      // The tests of the project replay inputs beside each other, where no measurement holds.
      if (globalThis.gc === undefined) return void (await read(text));
      // The time of Node's compiler belongs to no input.
      for (const shape of isWarm ? [] : shapes) await read(shape(10_000));
      isWarm = true;
      const sizeMiB = Buffer.byteLength(text) / MIB;
      const isOver = ({ ms, aboveMiB }) => ms > MS_PER_MIB * Math.max(1, sizeMiB) || aboveMiB > ABOVE_FILE_MIB + sizeMiB;
      let run = await once(text);
      // Garbage of earlier inputs and compilation count once.
      for (let again = 0; again < 2 && isOver(run); again += 1) {
        globalThis.gc();
        run = await once(text);
      }
      const shown = JSON.stringify(text.slice(0, 30));
      if (run.ms > worst.ms)
        Object.assign(worst, { ms: run.ms, slowest: `${run.ms.toFixed(0)} ms for ${(sizeMiB * 1_024).toFixed(0)} KiB ${shown}` });
      if (run.aboveMiB > worst.aboveMiB)
        Object.assign(worst, {
          aboveMiB: run.aboveMiB,
          largest: `${run.aboveMiB.toFixed(0)} MiB for ${(sizeMiB * 1_024).toFixed(0)} KiB ${shown}`,
        });
      if (isOver(run)) throw new Error(`${run.ms.toFixed(0)} ms and ${run.aboveMiB.toFixed(0)} MiB for ${sizeMiB.toFixed(2)} MiB`);
    },
    summary: () => `slowest: ${worst.slowest}; most memory: ${worst.largest}`,
  };
}

function statusMiB(name) {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1_024;
}

const CHECKPOINT = JSON.stringify({
  Data: { PodDeviceEntries: [{ PodUID: 'u', ContainerName: 'c', ResourceName: 'v/r', DeviceIDs: { 0: ['d'] }, AllocResp: 'CgA=' }] },
  Checksum: 1,
});
const CDI = {
  cdiVersion: '0.6.0',
  kind: 'v.com/gpu',
  devices: [{ name: 'a', containerEdits: { deviceNodes: [{ path: '/dev/gpu0', major: 1, minor: 2 }] } }],
};
const CDI_YAML = `cdiVersion: 0.6.0
kind: v.com/gpu
devices:
  - name: a
    containerEdits:
      deviceNodes:
        - path: /dev/gpu0
`;
const METADATA = JSON.stringify({
  kind: 'DeviceMetadata',
  apiVersion: 'metadata.resource.k8s.io/v1',
  metadata: { name: 'c', namespace: 'n', uid: 'u', generation: 1 },
  requests: [{ name: 'r', devices: [{ driver: 'd', pool: 'p', name: 'x', attributes: { uuid: { string: 'GPU-1' } } }] }],
});
const WANTED = ['v.com/gpu=a', 'n\0c\0d\0p\0x'];

const ofKind = (name) => (text) => {
  const kind = documentKinds[name];
  // The size is checked before the content is read.
  return Buffer.byteLength(text) > kind.bounds.mostBytes ? undefined : answerOf(kind, text, WANTED);
};
const upTo = (most, read) => (text) => (Buffer.byteLength(text) > most ? undefined : read(text));

export const checkpoint = () => measured(CHECKPOINT, JSON_SHAPES, 8 * MIB, ofKind('checkpoint'));
export const cdiJson = () => measured(JSON.stringify(CDI), JSON_SHAPES, 2 * MIB, ofKind('cdi'));
export const cdiYaml = () => measured(CDI_YAML, YAML_SHAPES, 2 * MIB, ofKind('cdi'));
export const metadata = () => measured(METADATA, JSON_SHAPES, MIB, ofKind('metadata'));
export const declaration = () =>
  measured(readFileSync('families/gaudi.yaml', 'utf8'), YAML_SHAPES, MIB / 4, upTo(MIB / 4, checkDeclaration));
export async function configuration() {
  const registry = createRegistry(optionSections(await loadFamilies(familyLoaders)), structuredParts);
  return measured(
    'log: {level: info}\n',
    YAML_SHAPES,
    MIB,
    upTo(MIB, (text) => checkConfigText('x.yaml', text, registry)),
  );
}
export const webConfiguration = () =>
  measured(
    'http_server_config: {http2: false}\n',
    YAML_SHAPES,
    MIB,
    upTo(MIB, (text) => parseWebConfig('/x.yaml', text)),
  );
export const captured = () => {
  const readers = ['checkpoint', 'cdiSpec', 'metadata'];
  return measured(
    CHECKPOINT,
    [...JSON_SHAPES, ...YAML_SHAPES],
    4 * MIB,
    upTo(8 * MIB, (content) => {
      const pseudonyms = new Pseudonyms();
      return new Documents(pseudonyms, new Shapes(pseudonyms, new Set(), []))[readers[content.length % readers.length]](content);
    }),
  );
};
