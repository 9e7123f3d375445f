import { dirname, resolve } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { systemWords } from '../../errors.ts';
import type { UntrustedRead } from '../../host/fs/untrusted-file.ts';
import { validateHeaderValue } from '../../host/node-http.ts';
import { defined } from '../../model/defined.ts';
import type { Access, ClientAuthType, RateLimit, TlsRules } from '../../server/access/access.ts';
import { type FileProblem, inOrder, parseDocument } from '../document.ts';
import { checkSchema } from '../schema-check.ts';
import type { Path } from '../text-positions.ts';
import { goDuration } from './go-duration.ts';
import { CURVES, TLS_VERSIONS, TLS12_CIPHERS, TLS13_CIPHERS } from './tls-names.ts';
import { isTrue, type TlsData, type WebConfigData, webConfigSchema } from './web-schema.ts';

type PemKey = 'cert' | 'key' | 'client_ca';
const PEM_KEYS: readonly PemKey[] = ['cert', 'key', 'client_ca'];

/** A parsed file. The files that it names are not read yet. */
export interface ParsedWebConfig {
  readonly data: WebConfigData;
  /** Files with certificates and the key. Relative paths are relative to the directory of the file. */
  readonly paths: Readonly<Partial<Record<PemKey, string>>>;
  /** Position of the value at a path of keys. */
  problem(path: Path, message: string): FileProblem;
}

export type Checked<T> = { readonly value: T; readonly problems?: undefined } | { readonly problems: readonly FileProblem[] };

/** Parses the text of the file and checks everything that needs no other file. */
export async function parseWebConfig(file: string, text: string): Promise<Checked<ParsedWebConfig>> {
  const parsed = await parseDocument(text);
  if (parsed.problems !== undefined) return { problems: parsed.problems };
  const { positions, plain } = parsed;
  const found = (await checkSchema(webConfigSchema, plain)).map(({ path, atKey, message }) => ({
    ...(atKey ? positions.ofKey(path) : positions.of(path)),
    message,
  }));
  if (found.length > 0) return { problems: inOrder(found) };
  const data = plain as WebConfigData;
  const problem = (path: Path, message: string): FileProblem => ({
    ...positions.of(path),
    message: `${path.join('.')} ${message}`,
  });
  const tls = data.tls_server_config ?? {};
  const problems = [
    ...userProblems(data, problem),
    ...headerProblems(data, problem),
    ...limitProblems(data, problem),
    ...(isTlsOn(tls) ? tlsProblems(data, problem) : []),
  ];
  if (problems.length > 0) return { problems: inOrder(problems) };
  return { value: { data, paths: isTlsOn(tls) ? pathsOf(tls, dirname(file)) : {}, problem } };
}

/** Joins the parsed file with the contents of the files that it names. */
export function accessOf(parsed: ParsedWebConfig, reads: ReadonlyMap<string, UntrustedRead>): Checked<Access> {
  const { data, paths, problem } = parsed;
  const problems: FileProblem[] = [];
  const contents: Partial<Record<PemKey, string>> = {};
  for (const key of PEM_KEYS) {
    const path = paths[key];
    const read = path === undefined ? undefined : reads.get(path);
    if (read?.problem !== undefined) problems.push(problem(['tls_server_config', `${key}_file`], `cannot be read: ${read.message}`));
    // An empty file of a CA stays empty: without a CA, Node would trust its own list of public ones.
    const text = path === undefined ? data.tls_server_config?.[key] || undefined : read?.text;
    if (text !== undefined) contents[key] = text;
  }
  const tls = data.tls_server_config ?? {};
  if (problems.length === 0 && isTlsOn(tls)) problems.push(...pemProblems(contents, paths, problem));
  if (problems.length > 0) return { problems: inOrder(problems) };
  return {
    value: {
      headers: headersOf(data),
      users: new Map(Object.entries(data.basic_auth_users ?? {})),
      ...defined({ rateLimit: rateLimitOf(data) }),
      ...(isTlsOn(tls) ? { tls: tlsRules(tls, contents) } : {}),
    },
  };
}

/** As in the toolkit, versions and ciphers alone do not switch TLS on. */
function isTlsOn({ cert, cert_file, key, key_file, client_ca, client_ca_file, client_auth_type }: TlsData): boolean {
  return [cert, cert_file, key, key_file, client_ca, client_ca_file, client_auth_type].some(Boolean);
}

type Report = ParsedWebConfig['problem'];

/** HTTP/2 demands one of them. The agent does not speak it, but a server of the toolkit does not start without. */
const HTTP2_CIPHERS = ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'];

function tlsProblems({ tls_server_config, http_server_config }: WebConfigData, problem: Report): FileProblem[] {
  const tls = tls_server_config ?? {};
  const problems: FileProblem[] = [];
  const at = ['tls_server_config'];
  if (!tls.cert && !tls.cert_file) problems.push(problem(at, 'needs cert_file or cert'));
  if (!tls.key && !tls.key_file) problems.push(problem(at, 'needs key_file or key'));
  const clientAuth = clientAuthOf(tls);
  if ((tls.client_ca || tls.client_ca_file) && clientAuth === 'NoClientCert') {
    problems.push(problem([...at, tls.client_ca_file ? 'client_ca_file' : 'client_ca'], 'needs a client_auth_type'));
  }
  if (tls.client_allowed_sans && !['RequireAnyClientCert', 'RequireAndVerifyClientCert'].includes(clientAuth)) {
    const types = 'RequireAnyClientCert or RequireAndVerifyClientCert';
    problems.push(problem([...at, 'client_allowed_sans'], `needs the client_auth_type ${types}`));
  }
  const { min_version: min, max_version: max } = tls;
  if (
    isTrue(http_server_config?.http2 ?? true) &&
    tls.cipher_suites?.length &&
    min !== 'TLS13' &&
    !tls.cipher_suites.some((name) => HTTP2_CIPHERS.includes(name))
  )
    problems.push(problem([...at, 'cipher_suites'], `needs ${HTTP2_CIPHERS.join(' or ')}, or http_server_config.http2: false`));
  if ((min ?? 'TLS12') > (max ?? 'TLS13')) problems.push(problem([...at, min ? 'min_version' : 'max_version'], 'leaves no version of TLS'));
  return problems;
}

const BCRYPT = /^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/;
/** One comparison takes about 80 ms at cost 10, and twice as long with each further step: cost 31 would take two days. */
const HIGHEST_COST = 14;

function userProblems({ basic_auth_users: users }: WebConfigData, problem: Report): FileProblem[] {
  return Object.entries(users ?? {}).flatMap(([user, hash]: [string, unknown]) => {
    const cost = BCRYPT.exec(typeof hash === 'string' ? hash : '')?.[1];
    if (cost !== undefined && Number(cost) <= HIGHEST_COST) return [];
    const what =
      cost === undefined
        ? 'must be a bcrypt hash'
        : `has cost ${cost}, and each comparison would take too long: ${HIGHEST_COST} is the highest`;
    return [problem(['basic_auth_users', user], `${what}. The command htpasswd -nBC 10 "" makes a hash`)];
  });
}

function headerProblems({ http_server_config: http }: WebConfigData, problem: Report): FileProblem[] {
  return Object.entries(http?.headers ?? {}).flatMap(([name, value]) => {
    try {
      validateHeaderValue(name, headerText(value));
      return [];
    } catch {
      return [problem(['http_server_config', 'headers', name], 'has a character that no header may have')];
    }
  });
}

function limitProblems({ rate_limit: limit }: WebConfigData, problem: Report): FileProblem[] {
  if (goDuration(limit?.interval ?? 0) !== undefined) return [];
  return [problem(['rate_limit', 'interval'], 'must be a duration such as 100ms, 1s or 1m30s')];
}

/** As in the toolkit, an interval of 0 or less is no limit, whatever the burst, and a burst below 1 admits nothing. */
function rateLimitOf({ rate_limit: limit }: WebConfigData): RateLimit | undefined {
  const intervalMs = goDuration(limit?.interval ?? 0) ?? 0;
  return intervalMs > 0 ? { intervalMs, burst: Math.trunc(limit?.burst ?? 0) } : undefined;
}

/** A folded text of YAML ends with a line break. */
const headerText = (value: unknown): string =>
  String(value ?? '')
    .replace(/\s*[\r\n]\s*/g, ' ')
    .trim();

function headersOf({ http_server_config: http }: WebConfigData): Readonly<Record<string, string>> {
  const entries = Object.entries(http?.headers ?? {}).map(([name, value]) => [name, headerText(value)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== ''));
}

function pathsOf(tls: TlsData, directory: string): Partial<Record<PemKey, string>> {
  const paths: Partial<Record<PemKey, string>> = {};
  for (const key of PEM_KEYS) {
    const path = tls[`${key}_file`];
    if (path) paths[key] = resolve(directory, path);
  }
  return paths;
}

type Contents = Readonly<Partial<Record<PemKey, string>>>;

/** OpenSSL names what is wrong with certificates, but not which one it means. */
function pemProblems(contents: Contents, paths: ParsedWebConfig['paths'], problem: Report): FileProblem[] {
  const steps: readonly (readonly [PemKey, SecureContextOptions])[] = [
    ['cert', { cert: contents.cert }],
    ['key', { cert: contents.cert, key: contents.key }],
    ['client_ca', { ca: contents.client_ca }],
  ];
  for (const [key, options] of steps) {
    if (contents[key] === undefined && key === 'client_ca') continue;
    const at = ['tls_server_config', paths[key] === undefined ? key : `${key}_file`];
    const label = key === 'key' ? 'PRIVATE KEY-----' : '-----BEGIN CERTIFICATE-----';
    if (contents[key]?.includes(label) !== true)
      return [problem(at, `has no ${key === 'key' ? 'private key' : 'certificate'} in PEM form`)];
    try {
      createSecureContext(options);
    } catch (error) {
      return [problem(at, `cannot be used: ${systemWords(error)}`)];
    }
  }
  return [];
}

function tlsRules(tls: TlsData, { cert, key, client_ca }: Contents): TlsRules {
  const { min_version, max_version, curve_preferences, client_allowed_sans } = tls;
  const [minVersion, maxVersion] = [TLS_VERSIONS[min_version ?? 'TLS12'], TLS_VERSIONS[max_version ?? 'TLS13']];
  const curves = (curve_preferences ?? []).map((name) => CURVES[name]).join(':');
  return {
    clientAuth: clientAuthOf(tls),
    ...(client_allowed_sans ? { allowedSans: client_allowed_sans } : {}),
    context: {
      cert,
      key,
      ...defined({ ca: client_ca, minVersion, maxVersion }),
      ...ciphersOf(tls),
      ...(curves === '' ? {} : { ecdhCurve: curves }),
      honorCipherOrder: isTrue(tls.prefer_server_cipher_suites ?? true),
    },
  };
}

function ciphersOf({ cipher_suites, min_version }: TlsData): Pick<SecureContextOptions, 'ciphers'> {
  const chosen = (cipher_suites ?? []).flatMap((name) => TLS12_CIPHERS[name] ?? []);
  const usual = cipher_suites?.length ? chosen : Object.values(TLS12_CIPHERS).reverse();
  // OpenSSL has TLS 1.0 and 1.1 only on its lowest level of security.
  const isOld = min_version === 'TLS10' || min_version === 'TLS11';
  return { ciphers: [...TLS13_CIPHERS, ...usual, ...(isOld ? ['@SECLEVEL=0'] : [])].join(':') };
}

/** `RequireClientCert` is the toolkit's earlier name. */
function clientAuthOf({ client_auth_type: type }: TlsData): ClientAuthType {
  return type === 'RequireClientCert' ? 'RequireAnyClientCert' : type || 'NoClientCert';
}
