import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Device } from '../../model/device.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import { ADDRESS_FACTS, type DeclaredDevices, FACT_NAMES, type Fact, type FactName, NUMBER_FACTS } from './declaration.ts';
import type { Entry, SourceReader } from './source-reader.ts';
import { fill, plain, type Words } from './template.ts';

/** A device and the texts for its templates. */
export interface KnownDevice {
  readonly device: Device;
  readonly words: Words;
}

/** Reads the facts of one device. Undefined when its id cannot be read. */
export function readDevice(family: string, declared: DeclaredDevices, entry: Entry, reader: SourceReader): KnownDevice | undefined {
  const texts = readFacts(declared, entry, reader);
  const { sys } = reader.host;
  const address = texts.pciAddress ?? entry.words.pci;
  const words: Words = { ...entry.words, ...texts, ...(address === undefined ? {} : { pciAddress: address }) };
  const id = textOf(declared.id, entry, words, reader);
  if (id === undefined) return undefined;
  const known: Words = { ...words, id };
  const one = (fact: Fact | undefined): string | undefined => (fact === undefined ? undefined : textOf(fact, entry, known, reader));
  const aliases = (declared.aliases ?? []).flatMap((alias) => textsOf(alias, entry, known, reader)).filter((alias) => alias !== id);
  const nodes = (declared.nodes ?? []).map((node) => fill(node, known)).filter(isNode);
  const parent = one(declared.parent);
  const device: Device = {
    family,
    id,
    ...(declared.identity === undefined ? {} : { identity: one(declared.identity) ?? null }),
    kind: declared.kind,
    aliases: [...new Set(aliases)],
    ...(parent === undefined ? {} : { parent }),
    ...(address === undefined ? {} : readPciFunction(sys, address)),
    ...typed(texts),
    ...(nodes.length === 0 ? {} : { characterDevices: nodes }),
  };
  return { device, words: known };
}

/** Facts that are read come first, because templates use them. */
function readFacts({ facts = {} }: DeclaredDevices, entry: Entry, reader: SourceReader): Partial<Record<FactName, string>> {
  const texts: Partial<Record<FactName, string>> = {};
  const names = FACT_NAMES.filter((name) => facts[name] !== undefined);
  const isTemplate = (name: FactName): boolean => typeof facts[name] === 'string';
  for (const name of [...names.filter((each) => !isTemplate(each)), ...names.filter(isTemplate)]) {
    const text = textOf(facts[name] as Fact, entry, { ...entry.words, ...texts }, reader);
    const fact = text === undefined ? undefined : factOf(name, text);
    if (fact !== undefined) texts[name] = fact;
  }
  return texts;
}

function factOf(name: FactName, text: string): string | undefined {
  if ((ADDRESS_FACTS as readonly string[]).includes(name)) return normalizePciAddress(text);
  if ((NUMBER_FACTS as readonly string[]).includes(name)) return /^\d{1,9}$/.test(text) ? text : undefined;
  return text;
}

const typed = (texts: Partial<Record<FactName, string>>): Partial<Device> =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, (NUMBER_FACTS as readonly string[]).includes(name) ? Number(text) : text]),
  );

const textOf = (fact: Fact, entry: Entry, words: Words, reader: SourceReader): string | undefined => textsOf(fact, entry, words, reader)[0];

function textsOf(fact: Fact, entry: Entry, words: Words, reader: SourceReader): readonly string[] {
  const texts =
    typeof fact === 'string'
      ? [fill(fact, words)]
      : reader
          .read(fact, { ...entry, words })
          .values.map(({ text }) => (fact.as === undefined ? text : fill(fact.as, { ...words, value: text })));
  return texts.map(named).filter((text) => text !== undefined);
}

const named = (text: string | undefined): string | undefined => (text === undefined ? undefined : plain(text) || undefined);

/** A node lies below `/dev` in plain words. */
const isNode = (path: string | undefined): path is string => path !== undefined && /^\/dev\/[\w./@:-]+$/.test(path) && !path.includes('..');
