import { X509Certificate } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { TLSSocket } from 'node:tls';
import { stateOptions } from '../agent/options.ts';
import type { Configuration } from '../config/configuration.ts';
import { UserError } from '../errors.ts';
import { get as getPlain } from '../host/node-http.ts';
import { controlSocket } from '../server/control/control-socket.ts';
import { parseListenAddress } from '../server/http/listen.ts';
import type { CommandContext } from './context.ts';
import { webConfigOf } from './settings.ts';

/** node-problem-detector gives a plugin five seconds by default. A read without the agent may need the rest of that time. */
const ANSWER_MS = 2_000;
/** An agent under load has the socket and answers late. A command that read the hardware beside it would only add to the load. */
const LOCAL_MS = 4_000;
const LARGEST_ANSWER = 64 * 1024 * 1024;

/** The other side speaks, but not what it is asked. */
const CLOSED = /^(?:ECONNRESET|EPROTO|HPE_|ERR_SSL_)/;

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
  /** Undefined when the answer is not JSON. */
  readonly body: unknown;
}

/** Why a process that listens did not answer the request of a command. */
export type Refusal = 'no-password' | 'no-api' | 'no-client-certificate' | 'other-certificate' | 'closed';

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

/** Asks the agent of this node; with `--read`, no one. */
export function askFor({ configuration, options }: Pick<CommandContext, 'configuration' | 'options'>): Ask {
  return options.read === true ? () => Promise.resolve({}) : (path) => askAgent(configuration, path);
}

/**
 * Asks the agent whose state file is configured, by its socket, which needs no password. Without such an agent: the one at the configured
 * address, by the TLS of the web configuration file. Throws a {@link UserError} when an agent has the socket and does not answer: a
 * command that then read the hardware would take memory and time of an agent that lacks them.
 */
async function askAgent(configuration: Configuration, path: string): Promise<Asked> {
  const { file } = configuration.section('state', stateOptions);
  if (file !== '') {
    const socketPath = controlSocket(file);
    const asked = await request({ socketPath, path }, LOCAL_MS);
    if (asked === 'late') throw new UserError('agent-silent', { path: socketPath, seconds: String(LOCAL_MS / 1_000) });
    if (asked.answer !== undefined) return asked;
  }
  return await askAddress(configuration, path);
}

/** A stream of the API that the agent opened, or why there is none. */
export type Opened =
  | { readonly stream: IncomingMessage; readonly refusal?: undefined }
  | { readonly stream?: undefined; readonly refusal?: Refusal };

/** Opens an answer that does not end, as {@link askFor} asks for one that does. An agent that is not ready has no stream. */
export async function openStream(configuration: Configuration, path: string): Promise<Opened> {
  const { file } = configuration.section('state', stateOptions);
  const opened = file === '' ? {} : await streamOf({ socketPath: controlSocket(file), path });
  if (opened.stream !== undefined) return opened;
  const target = await addressOf(configuration);
  return target === undefined ? opened : await streamOf({ ...target.address, path }, target.certificate);
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

async function askAddress(configuration: Configuration, path: string): Promise<Asked> {
  const target = await addressOf(configuration);
  if (target === undefined) return {};
  const asked = await request({ ...target.address, path }, ANSWER_MS, target.certificate);
  if (asked === 'late') return {};
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

/** `late`: somebody listens, and did not answer in time. */
async function request(target: RequestOptions, patienceMs: number, certificate?: string): Promise<Asked | 'late'> {
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
      response.on('end', () => resolve(judged(response.statusCode ?? 0, Buffer.concat(parts).toString())));
      response.on('error', ({ name }) => resolve(name === 'AbortError' ? 'late' : {}));
      response.on('close', () => resolve({}));
    });
    sent.on('error', ({ name, code = '' }: NodeJS.ErrnoException) => {
      if (name === 'AbortError') resolve('late');
      else resolve(CLOSED.test(code) ? { refusal: 'closed' } : {});
    });
  });
}

function isFrom(certificate: string, socket: unknown): boolean {
  const shown = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return shown?.fingerprint256 === new X509Certificate(certificate).fingerprint256;
}

function judged(status: number, text: string): Asked {
  const answer: ApiAnswer = { status, text, body: parsed(text) };
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
