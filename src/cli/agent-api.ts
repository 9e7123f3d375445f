import { X509Certificate } from 'node:crypto';
import { lstatSync } from 'node:fs';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { stateOptions } from '../agent/options.ts';
import type { Configuration, Flags } from '../config/configuration.ts';
import { UserError } from '../errors.ts';
import { whyUntrusted } from '../host/fs/open-path.ts';
import { get as getPlain } from '../host/node-http.ts';
import { IDENTITY_HEADER } from '../model/agent-stats.ts';
import { oneLine } from '../model/one-line.ts';
import { controlSocket, VALUES_PATH } from '../server/control/control-socket.ts';
import { parseListenAddress } from '../server/http/listen.ts';
import type { CommandContext } from './context.ts';
import { webConfigOf } from './settings.ts';

/** node-problem-detector gives a plugin five seconds by default. A read without the agent may need the rest of that time. */
const ANSWER_MS = 2_000;
/** An agent under load has the socket and answers late. A command that read the hardware beside it would only add to the load. */
const LOCAL_MS = 4_000;
const LARGEST_ANSWER = 64 * 1024 * 1024;
const MOST_IDENTITY = 300;

/** The other side speaks, but not what it is asked. */
const CLOSED = /^(?:ECONNRESET|EPROTO|HPE_|ERR_SSL_)/;

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
  /** Undefined when the answer is not JSON. */
  readonly body: unknown;
  /** Which agent it says it is: node, process id, start. */
  readonly agent?: string;
}

/** Why a process that listens did not answer the request of a command. */
export type Refusal = 'no-password' | 'no-api' | 'no-client-certificate' | 'other-certificate' | 'closed' | 'untrusted';

export const REFUSAL_TEXTS: Readonly<Record<Refusal, { readonly detail: string; readonly remedy: string }>> = {
  'no-password': {
    detail: 'it asks for a password',
    remedy: 'A command has no password: ask /api/v1 by curl with a user name and a password.',
  },
  'no-api': { detail: 'its API is off', remedy: 'Start it without --no-web.api.' },
  'no-client-certificate': {
    detail: 'it asks for a client certificate',
    remedy: 'A command has no client certificate: ask /api/v1 by curl with --cert and --key.',
  },
  'other-certificate': {
    detail: 'its certificate is not the one of --web.config.file',
    remedy: 'Give the command the same --web.config.file as the agent.',
  },
  untrusted: {
    detail: 'its socket is not asked, because others than root and this user can replace it',
    remedy: 'Run "device-agent doctor": it names the directory and what to change.',
  },
  closed: {
    detail: 'it closed the connection, as a server does when only one side uses TLS',
    remedy: 'Give the command the same --web.config.file as the agent.',
  },
};

export type Asked =
  | { readonly answer: ApiAnswer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: Refusal }
  /** No answer came in time. */
  | { readonly answer?: undefined; readonly refusal?: undefined };

/** Asks for one path of the API. */
export type Ask = (path: string) => Promise<Asked>;

type Question = Pick<CommandContext, 'configuration' | 'flags' | 'options'>;

/**
 * Asks the agent of this node; with `--read`, no one. By the socket beside the state file it asks the user of the agent and nobody else. By an
 * address, where any process can listen, it tells which agent says that it answers; see {@link stateFileOf}.
 * Throws a {@link UserError} when the agent does not answer, when the socket belongs to others, and when flags of the command say what only
 * holds for another agent.
 */
export function askFor(context: Question, tell: (text: string) => void = (text) => void process.stderr.write(text)): Ask {
  const { configuration, options, flags } = context;
  if (options.read === true) return () => Promise.resolve({});
  const file = stateFileOf(context);
  if (file !== undefined) return (path) => askSocket(configuration, flags, file, path);
  let told: string | undefined;
  return async (path) => {
    const asked = await askAddress(configuration, path);
    if (asked.answer === undefined) return asked;
    if (asked.answer.agent !== undefined) refuseFlags(flags, () => false);
    else if (!path.startsWith('/api/')) return asked;
    const text = `asked the agent at ${configuration.setting('web.listen-address').value}: ${asked.answer.agent ?? 'it does not say which one it is'}\n`;
    if (text !== told) tell(text);
    told = text;
    return asked;
  };
}

/**
 * The state file beside which the agent has its socket. Undefined when the agent is asked at an address: the state file is empty, or a flag of
 * the command gives the address and none the state file.
 */
export function stateFileOf({ configuration, flags }: Pick<Question, 'configuration' | 'flags'>): string | undefined {
  const { file } = configuration.section('state', stateOptions);
  const isByAddress = file === '' || (flags.has('web.listen-address') && !flags.has('state.file'));
  return isByAddress ? undefined : file;
}

async function askSocket(configuration: Configuration, flags: Flags, file: string, path: string): Promise<Asked> {
  const asked = await request(await ownSocket(file), path);
  if (asked.answer === undefined || !isAnyForReading(flags)) return asked;
  const { answer } = await request(await ownSocket(file), VALUES_PATH);
  const values = (answer?.body ?? {}) as Readonly<Record<string, unknown>>;
  refuseFlags(flags, (key) => isDeepStrictEqual(values[key], JSON.parse(JSON.stringify(configuration.setting(key).value))));
  return asked;

  async function request(socketPath: string, wanted: string): Promise<Asked> {
    const answered = await requestAt({ socketPath, path: wanted }, LOCAL_MS);
    if (answered === 'late') throw new UserError('agent-silent', { path: socketPath, seconds: String(LOCAL_MS / 1_000) });
    if (answered === 'denied') throw new UserError('agent-closed', { path: socketPath });
    return answered;
  }
}

/** The socket beside the state file. Throws when others than root and this user could have put it there. */
export async function ownSocket(stateFile: string): Promise<string> {
  const path = controlSocket(stateFile);
  const problem = (await whyUntrusted(dirname(resolve(path)))) ?? ownerProblem(path);
  if (problem !== undefined) throw new UserError('agent-untrusted', { path, problem });
  return path;
}

function ownerProblem(path: string): string | undefined {
  try {
    const { uid } = lstatSync(path);
    return uid === 0 || uid === process.getuid?.() ? undefined : `it belongs to user ${uid}`;
  } catch {
    // Nobody has a socket there that this user could see.
    return undefined;
  }
}

/** Options of the command itself: whom it asks, and how it shows the answer. All others say what an agent reads and how it judges. */
const OF_COMMAND = /^(?:state\.file|web\..*|config\.file|log\..*|publish\..*|refresh\.interval)$/;

export const isAnyForReading = (flags: Flags): boolean => [...flags.keys()].some((key) => !OF_COMMAND.test(key));

function refuseFlags(flags: Flags, holds: (key: string) => boolean): void {
  const wrong = [...flags.keys()].filter((key) => !OF_COMMAND.test(key) && !holds(key));
  if (wrong.length > 0) throw new UserError('flags-of-another-agent', { flags: wrong.map((key) => `--${key}`).join(', ') });
}

/** A stream of the API that the agent opened, or why there is none. */
export type Opened =
  | { readonly stream: IncomingMessage; readonly refusal?: undefined }
  | { readonly stream?: undefined; readonly refusal?: Refusal };

/** Opens an answer that does not end, as {@link askFor} asks for one that does. An agent that is not ready has no stream. */
export async function openStream(context: Pick<Question, 'configuration' | 'flags'>, path: string): Promise<Opened> {
  const { configuration } = context;
  const file = stateFileOf(context);
  if (file !== undefined) {
    const socketPath = await ownSocket(file).catch(() => undefined);
    return socketPath === undefined ? { refusal: 'untrusted' } : await streamOf({ socketPath, path });
  }
  const target = await addressOf(configuration);
  return target === undefined ? {} : await streamOf({ ...target.address, path }, target.certificate);
}

async function streamOf(target: RequestOptions, certificate?: string): Promise<Opened> {
  const get = await getBy(certificate);
  // The time limit is for the head of the answer only.
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), LOCAL_MS);
  const opened = await new Promise<Opened>((resolve) => {
    const sent = get({ ...target, signal: patience.signal });
    sent.on('close', () => resolve({}));
    sent.on('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(CLOSED.test(code) ? { refusal: 'closed' } : {}));
    sent.on('response', (response) => {
      if (certificate !== undefined && !isFrom(certificate, response.socket)) resolve({ refusal: 'other-certificate' });
      else if (response.statusCode === 200) return resolve({ stream: response });
      else resolve(response.statusCode === 401 ? { refusal: 'no-password' } : {});
      sent.destroy();
    });
  });
  clearTimeout(timer);
  return opened;
}

/** Says on the standard error how old the data of the agent is. `takenAt` is a time as the API writes it. */
export function printAge(takenAt: string | undefined): void {
  const ms = Date.now() - Date.parse(takenAt ?? '');
  if (Number.isFinite(ms)) process.stderr.write(`data of the running agent, ${Math.max(0, ms / 1_000).toFixed(1)} s old\n`);
}

/** Asks at the configured address, whatever listens there. */
export async function askAddress(configuration: Configuration, path: string): Promise<Asked> {
  const target = await addressOf(configuration);
  if (target === undefined) return {};
  const asked = await requestAt({ ...target.address, path }, ANSWER_MS, target.certificate);
  if (asked === 'late' || asked === 'denied') return {};
  return asked.refusal === 'closed' && target.asksForCertificate ? { refusal: 'no-client-certificate' } : asked;
}

interface Target {
  readonly address: RequestOptions;
  /** Certificate of the agent; undefined without TLS. */
  readonly certificate: string | undefined;
  readonly asksForCertificate: boolean;
}

/** Returns the address at which the agent listens; undefined when it listens nowhere, or on a port that only the agent knows. */
async function addressOf(configuration: Configuration): Promise<Target | undefined> {
  const address = parseListenAddress(String(configuration.setting('web.listen-address').value));
  if (address === undefined || ('port' in address && address.port === 0)) return undefined;
  const tls = (await webConfigOf(configuration)?.read())?.access?.tls;
  return {
    address: 'path' in address ? { socketPath: address.path } : { host: reachable(address.host), port: address.port },
    certificate: tls === undefined ? undefined : String(tls.context.cert),
    asksForCertificate: tls?.clientAuth.startsWith('Require') === true,
  };
}

/** Gives the function that sends a request: by TLS when the certificate of the agent is given. */
async function getBy(certificate: string | undefined): Promise<(options: RequestOptions) => ClientRequest> {
  if (certificate === undefined) return (options) => getPlain({ ...options, agent: false });
  const { get } = await import('node:https');
  // No authority says that the address belongs to the agent. Its own certificate does.
  return (options) => get({ ...options, agent: false, rejectUnauthorized: false });
}

/** `late`: somebody listens, and did not answer in time. `denied`: this user may not connect. */
async function requestAt(target: RequestOptions, patienceMs: number, certificate?: string): Promise<Asked | 'late' | 'denied'> {
  const get = await getBy(certificate);
  return await new Promise((resolve) => {
    const sent = get({ ...target, signal: AbortSignal.timeout(patienceMs) });
    sent.on('response', (response) => {
      if (certificate !== undefined && !isFrom(certificate, response.socket)) {
        resolve({ refusal: 'other-certificate' });
        return void sent.destroy();
      }
      const parts: Buffer[] = [];
      let bytes = 0;
      response.on('data', (part: Buffer) => {
        parts.push(part);
        bytes += part.length;
        if (bytes > LARGEST_ANSWER) sent.destroy();
      });
      response.on('end', () => resolve(judged(response, Buffer.concat(parts).toString())));
      response.on('error', ({ name }) => resolve(name === 'AbortError' ? 'late' : {}));
      response.on('close', () => resolve({}));
    });
    sent.on('error', ({ name, code = '' }: NodeJS.ErrnoException) => {
      if (name === 'AbortError') resolve('late');
      else if (code === 'EACCES' || code === 'EPERM') resolve('denied');
      else resolve(CLOSED.test(code) ? { refusal: 'closed' } : {});
    });
  });
}

function isFrom(certificate: string, socket: unknown): boolean {
  const shown = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return shown?.fingerprint256 === new X509Certificate(certificate).fingerprint256;
}

function judged({ statusCode: status = 0, headers }: IncomingMessage, text: string): Asked {
  const [agent] = [headers[IDENTITY_HEADER]].flat();
  const answer: ApiAnswer = {
    status,
    text,
    body: parsed(text),
    ...(agent === undefined ? {} : { agent: oneLine(agent).slice(0, MOST_IDENTITY) }),
  };
  if (status === 401) return { refusal: 'no-password' };
  const { code } = (answer.body as { readonly error?: { readonly code?: unknown } } | undefined | null)?.error ?? {};
  return code === 'api-off' ? { refusal: 'no-api' } : { answer };
}

/** Converts the listening address to a host to connect to. */
function reachable(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
