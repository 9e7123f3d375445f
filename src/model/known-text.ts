/**
 * Names of files below `/sys`, `/proc` and `/dev`, or of the cells of an output, by the form of what they hold. A name is the last part of
 * a path, an element of XML, a key of JSON, or a column. `#` is a number and `*` any text. `parent/name` also names the directory.
 * What has no name here can be an identity, so a capture replaces all of it.
 */
export interface NameVocabulary {
  /** Numbers and words: counters, sizes, states, labels of sensors. */
  readonly values?: readonly string[];
  /** Models, versions, part numbers: what all boards of a kind share. */
  readonly texts?: readonly string[];
  /** Names that the kernel gives, such as `eth0` or `0000:3b:00.0`. */
  readonly names?: readonly string[];
  /** Hexadecimal ids that many machines share, such as that of a design. Names of resources are made from them. */
  readonly designs?: readonly string[];
  /** Binary files without text. */
  readonly binary?: readonly string[];
}

/** Output of a program that a family runs. An output in XML, JSON or with `columns` is known by its cells, and other lines by `lines`. */
export interface OutputVocabulary extends NameVocabulary {
  /** Last part of the path of the program. */
  readonly program: string;
  /** Lines that are no cells and may stay by their form: sentences of the program, tables. */
  readonly lines?: RegExp;
  /** Names of the columns of a CSV without a header line. */
  readonly columns?: readonly string[];
  readonly separator?: string;
  /** Whether the text of a cell only says that there is no value. */
  isAbsent?(cell: string): boolean;
}

/** What a family understands of the sources that it reads. A capture keeps this and replaces everything else. */
export interface Vocabulary {
  readonly files?: NameVocabulary;
  readonly outputs?: readonly OutputVocabulary[];
  /** Keys of the JSON documents in a directory that an option names, by option: `probe.acme.log-directory`. The name of a file is an identity. */
  readonly documents?: Readonly<Record<string, NameVocabulary>>;
  /** Programs of the vendor, whose names show nothing about who uses the machine. */
  readonly programs?: readonly string[];
  /** Words that say what kind of identity follows in a text, such as `uuid`, and names with digits that all boards of a kind share. */
  readonly formats?: readonly string[];
  /** Names that its driver gives to devices, when they have more than one number. */
  readonly deviceNames?: readonly RegExp[];
  /** Beginnings of names that are unique in the world, so that all of the name is an identity. */
  readonly worldwide?: readonly string[];
  /** Functions of the vendor's library whose answer is a text that all boards of a kind share. */
  readonly callTexts?: readonly string[];
  /** Bytes of answers that identify something, `[begin, end)` by function. */
  readonly callIdentities?: Readonly<Record<string, readonly [begin: number, end: number]>>;
  /** Returns the names of the programs in a record of the kernel log. Undefined when the family does not understand the record. */
  kernelPrograms?(record: KernelRecord): readonly string[] | undefined;
  /** Parts of such a record that stay as they are: a key and the number behind it, such as a channel or an address. Global. */
  readonly kernelValues?: RegExp;
}

/** One record of the kernel log, decoded. `origin`: who chose its words. */
export interface KernelRecord {
  readonly origin: 'kernel' | 'about-process' | 'piece' | 'program';
  readonly text: string;
  readonly subsystem?: string;
  readonly device?: string;
}

/** Splits a text of names at white space. */
export const namesIn = (text: string): readonly string[] => text.trim().split(/\s+/);
