/** Declaration of one error that a user can meet. `{name}` in the texts stands for a field of the error. */
export interface ErrorEntry {
  readonly message: string;
  /** What to do next. */
  readonly remedy: string;
  /** Exit status: 1 when something did not work, 2 when what was asked for makes no sense. */
  readonly exit: 1 | 2;
}

/** Every error that a user can meet, by code. The reference page is written from it. */
export const errors = {
  'flag-unknown': {
    message: 'unknown flag {flag}{nearest}',
    remedy: 'Run "{command} --help" for the flags of this command.',
    exit: 2,
  },
  'flag-invalid': {
    message: 'flag {flag}: {problem}',
    remedy: 'Correct the value; --help behind the command shows the kind and default of each flag.',
    exit: 2,
  },
  'command-unknown': {
    message: 'unknown command "{command}"{nearest}',
    remedy: 'Run "device-agent --help" for the list of commands.',
    exit: 2,
  },
  'usage-invalid': {
    message: '{problem}',
    remedy: 'Run "{command} --help" for how it is used.',
    exit: 2,
  },
  'environment-invalid': {
    message: 'environment variable {variable}: {problem}',
    remedy: 'Correct the variable or remove it; "device-agent --help" shows the kind and default of each option.',
    exit: 2,
  },
  'config-file-unreadable': {
    message: 'configuration file {file} cannot be read: {problem}',
    remedy: 'Check the path given by {origin} and that the user of this process may read the file.',
    exit: 2,
  },
  'config-file-invalid': {
    message: 'configuration file {file} is not valid:\n{problems}',
    remedy: 'Correct the lines named; "device-agent config schema" prints the JSON Schema that an editor can check against.',
    exit: 2,
  },
  'setting-invalid': {
    message: '{option} {problem} ({origin})',
    remedy: 'Correct the value where it was given; "device-agent --help" shows the kind and default of each option.',
    exit: 2,
  },
  'descriptors-exhausted': {
    message: 'no file descriptors are left: {problem}',
    remedy: 'Raise the limit of open files of this process to 256 at least (ulimit -n, LimitNOFILE=), or fs.file-max of the node.',
    exit: 1,
  },
  'output-failed': {
    message: 'the output cannot be written: {problem}',
    remedy: 'Make room where it goes, or send it elsewhere.',
    exit: 1,
  },
  'demo-failed': {
    message: 'the simulated node cannot be made below {directory}: {problem}',
    remedy: 'Set TMPDIR to a directory with a short path and some MiB of room, in which files and sockets can be made.',
    exit: 1,
  },
  'listen-failed': {
    message: 'cannot listen on {address}: {problem}',
    remedy: 'Free the address, or choose another one with --web.listen-address.',
    exit: 1,
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

export type ErrorCode = keyof typeof errors;

type FieldsOf<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | FieldsOf<Rest> : never;

/** The fields that the texts of one error need. */
export type ErrorFields<C extends ErrorCode> = Readonly<
  Record<FieldsOf<(typeof errors)[C]['message']> | FieldsOf<(typeof errors)[C]['remedy']>, string>
>;

/** An error that is told to the user as one sentence with a remedy, never as a stack trace. */
export class UserError<C extends ErrorCode = ErrorCode> extends Error {
  readonly code: C;
  readonly fields: Readonly<Record<string, string>>;
  readonly remedy: string;
  readonly exit: 1 | 2;

  constructor(code: C, fields: ErrorFields<C>, cause?: unknown) {
    const entry: ErrorEntry = errors[code];
    super(fill(entry.message, fields), cause === undefined ? undefined : { cause });
    this.name = 'UserError';
    this.code = code;
    this.fields = fields;
    this.remedy = fill(entry.remedy, fields);
    this.exit = entry.exit;
  }
}

/** What the system said, without the call and the path that an error of Node's ends in. */
export const systemWords = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/, \w+(?: '.*')?$/s, '') : String(error);

function fill(template: string, fields: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z]+)\}/gi, (whole, name: string) => fields[name] ?? whole);
}
