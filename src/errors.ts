import { visible, visibleLines } from './model/one-line.ts';

/** Declares one user-facing error. `{name}` in the texts is replaced by that field of the error. */
export interface ErrorEntry {
  readonly message: string;
  /** What to do next. */
  readonly remedy: string;
  /** Exit status: 1 when an operation failed, 2 when the input is invalid. */
  readonly exit: 1 | 2;
}

/** All user-facing errors by code. The reference page (docs/errors.md) is generated from this table. */
export const errors = {
  'flag-unknown': {
    message: 'unknown flag {flag}{nearest}',
    remedy: 'Run "{command} --help-all" for the flags of this command.',
    exit: 2,
  },
  'flag-invalid': {
    message: 'flag {flag}: {problem}',
    remedy: 'Correct the command line; add --help-all to the command to see the type and default of each flag.',
    exit: 2,
  },
  'command-unknown': {
    message: 'unknown command "{command}"{nearest}',
    remedy: 'Run "device-agent --help" for the list of commands.',
    exit: 2,
  },
  'usage-invalid': {
    message: '{problem}',
    remedy: 'Run "{command} --help" for its usage.',
    exit: 2,
  },
  'prometheus-unread': {
    message: 'Prometheus: {problem}',
    remedy: 'Check --prometheus and its credentials; docs/fleet.md says what is asked.',
    exit: 1,
  },
  'environment-invalid': {
    message: 'environment variable {variable}: {problem}',
    remedy: 'Correct the variable or remove it; "device-agent --help-all" shows the type and default of each option.',
    exit: 2,
  },
  'config-file-unreadable': {
    message: 'configuration file {file} cannot be read: {problem}',
    remedy: 'Check the path given by {origin}, and check that the user of this process may read the file.',
    exit: 2,
  },
  'config-file-invalid': {
    message: 'configuration file {file} is not valid:\n{problems}',
    remedy: 'Correct these lines; "device-agent config schema" prints a JSON Schema for validation in an editor.',
    exit: 2,
  },
  'terminal-absent': {
    message: 'top needs a terminal for its input and its output',
    remedy: 'Add -it to "kubectl exec", or use "device-agent list -w", which needs no terminal.',
    exit: 2,
  },
  'web-config-unreadable': {
    message: 'web configuration file {file} cannot be read: {problem}',
    remedy: 'Check the path given by --web.config.file, and check that the user of this process may read the file.',
    exit: 2,
  },
  'web-config-invalid': {
    message: 'web configuration file {file} is not valid:\n{problems}',
    remedy: 'Correct these lines. The format is that of --web.config.file of Prometheus exporters; docs/access.md has examples.',
    exit: 2,
  },
  'file-absent': {
    message: 'there is no file {file}',
    remedy: 'Check the path. A relative path begins in the present directory.',
    exit: 2,
  },
  'family-file-unreadable': {
    message: 'family declaration {file} cannot be used: {problem}',
    remedy:
      'Check the path. The file must be a regular file of 256 KiB at most, and only root may replace a shipped family; a file that shall not be used is removed from the directory of --family.dir.',
    exit: 2,
  },
  'family-file-untrusted': {
    message: 'family declaration {file} is not used, because others can change it: {problem}',
    remedy:
      'Make root (or the user of the agent) the owner of the file and of every directory above it, and remove write access of group and others.',
    exit: 2,
  },
  'family-file-invalid': {
    message: 'family declaration {file} is not valid:\n{problems}',
    remedy: 'Correct these lines; "device-agent family schema" prints a JSON Schema for validation in an editor.',
    exit: 2,
  },
  'family-dir-invalid': {
    message: 'directory of family declarations {directory} {problem}',
    remedy: 'Correct the directory or the value of --family.dir; an empty value reads no declarations.',
    exit: 2,
  },
  'setting-invalid': {
    message: '{option} {problem} ({origin})',
    remedy: 'Correct the value where it was given; "device-agent --help-all" shows the type and default of each option.',
    exit: 2,
  },
  'incident-unknown': {
    message: 'there is no incident {id}{nearest}',
    remedy: 'Run "device-agent incidents" for the list.',
    exit: 1,
  },
  'incident-unreadable': {
    message: 'the incident {id} cannot be read: {problem}',
    remedy: 'Check the file of this incident in the directory `incidents` beside the file of --state.file.',
    exit: 1,
  },
  'incidents-nowhere': {
    message: 'no agent answers, and there are no incidents on the disk to read: {problem}',
    remedy: 'Start the agent, or give the --state.file of the agent of this node.',
    exit: 1,
  },
  'descriptors-exhausted': {
    message: 'no file descriptors are left: {problem}',
    remedy: 'Raise the open file limit of this process to at least 256 (ulimit -n, LimitNOFILE=), or raise fs.file-max of the node.',
    exit: 1,
  },
  'output-failed': {
    message: 'the output cannot be written: {problem}',
    remedy: 'Free space at the destination of the output, or write the output elsewhere.',
    exit: 1,
  },
  'demo-failed': {
    message: 'the simulated node cannot be created below {directory}: {problem}',
    remedy: 'Set TMPDIR to a writable directory that has a short path, some MiB of free space and support for sockets.',
    exit: 1,
  },
  'capture-unwritable': {
    message: 'the capture {file} cannot be written: {problem}',
    remedy: 'Choose another file with -o, on a file system with some MiB of free space, or -o - > FILE for the standard output.',
    exit: 1,
  },
  'capture-unreadable': {
    message: 'the capture {file} cannot be read: {problem}',
    remedy: 'Check the path. The file must be an archive that "device-agent capture" wrote; copy it again in binary mode if it is damaged.',
    exit: 2,
  },
  'demo-absent': {
    message: 'no demo runs{which}',
    remedy: 'Start "device-agent demo" in another terminal, as the same user and with the same TMPDIR.',
    exit: 1,
  },
  'demo-silent': {
    message: 'the demo {pid} does not answer: {problem}',
    remedy: 'End it with Ctrl-C in its terminal, and start "device-agent demo" again.',
    exit: 1,
  },
  'demo-fault-refused': {
    message: '{problem}',
    remedy: 'Run "device-agent demo fault" for the faults of the running demo and their devices.',
    exit: 2,
  },
  'agent-untrusted': {
    message: 'the socket {path} is not asked: {problem}',
    remedy:
      'Give its directory to root or to the user of the agent, and remove the right of others to write there. With --read, the command reads the hardware itself.',
    exit: 2,
  },
  'agent-closed': {
    message: 'this user may not open the socket {path} of the agent',
    remedy:
      'Run the command as the user of the agent. Or ask at the address of the agent: --web.listen-address=HOST:PORT. With --read, the command reads the hardware itself.',
    exit: 2,
  },
  'flags-of-another-agent': {
    message: 'the agent that runs does not use these flags: {flags}',
    remedy:
      'Leave them out. A command that has --read reads the hardware with them. For another agent give its --state.file or its --web.listen-address.',
    exit: 2,
  },
  'agent-silent': {
    message: 'the agent with the socket {path} did not answer within {seconds} seconds',
    remedy: 'Ask again, and see its log. With --read, the command reads the hardware itself.',
    exit: 2,
  },
  'agent-not-ready': {
    message: 'the agent has not read the hardware yet',
    remedy: 'Wait some seconds. With --read, the command reads the hardware itself.',
    exit: 1,
  },
  'pod-not-known': {
    message: '{pod}: {problem}',
    remedy: 'Run "device-agent doctor": it says why the kubelet or the agent does not answer.',
    exit: 1,
  },
  'agent-page': {
    message: 'the agent gives no metrics at {path}: {problem}',
    remedy: 'Give the command the same --web.telemetry-path as the agent, or --read.',
    exit: 1,
  },
  'accept-refused': {
    message: 'no condition was accepted: {problem}',
    remedy:
      'Run "device-agent health -o text" for the conditions and whether they are unverified. Run this command as the user of the agent.',
    exit: 1,
  },
  'release-refused': {
    message: 'no driver was released: {problem}',
    remedy: 'Run this command on the node, as the user of the agent: in its container, as by kubectl exec.',
    exit: 1,
  },
  'publish-no-server': {
    message: 'no API server is known',
    remedy: 'Run the command in a pod of the chart, or give --publish.api-server, such as http://127.0.0.1:8001 beside "kubectl proxy".',
    exit: 2,
  },
  'publish-no-agent': {
    message: 'what would be written is not known: {problem}',
    remedy: 'Start the agent, or name its --state.file or --web.listen-address.',
    exit: 1,
  },
  'withdraw-failed': {
    message: 'not all was removed: {problem}',
    remedy: 'Check token, roles and NODE_NAME, and run the command again. docs/publish.md has the commands of kubectl that do the same.',
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

/** The fields that the message and the remedy of one error use. */
export type ErrorFields<C extends ErrorCode> = Readonly<
  Record<FieldsOf<(typeof errors)[C]['message']> | FieldsOf<(typeof errors)[C]['remedy']>, string>
>;

/** An error that the user sees as one sentence with a remedy, never as a stack trace. */
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

/** Returns the error message of the system, without the call and the path that Node appends. */
export const systemWords = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/, \w+(?: '.*')?$/s, '') : String(error);

/** Fields hold paths, names and words of others. Only a list of problems has several lines. */
function fill(template: string, fields: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z]+)\}/gi, (placeholder, name: string) => {
    const text = fields[name] ?? placeholder;
    return name === 'problems' ? visibleLines(text) : visible(text);
  });
}
