import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebConfigFile } from '../../../src/config/web/web-config-file.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { Certificates } from '../../support/certificates.ts';
import { isInstalled } from '../../support/installed.ts';
import { PROMTOOLS } from '../../support/promtool.ts';
import { leaveOut, unless } from '../../support/skipped.ts';

const HASH = '$2b$04$Y0LI3kIj94UG8d8ePCe3Y.wD1UxAXxOPt0ypzyjlB1DLEYvgvxmV2';
const hasOpenssl = isInstalled('openssl', 'version');
let certificates: Certificates;
beforeAll(() => {
  if (!hasOpenssl) return;
  certificates = new Certificates();
  certificates.issue('server');
  certificates.issue('other');
  writeFileSync(certificates.path('empty.crt'), '');
});
afterAll(() => certificates?.remove());

const TLS = 'tls_server_config: {cert_file: server.crt, key_file: server.key';
/** What both accept. */
const RIGHT: readonly (readonly [what: string, text: string])[] = [
  ['nothing', ''],
  ['empty sections', 'tls_server_config:\nhttp_server_config:\nbasic_auth_users:\n'],
  ['certificate and key', `${TLS}}`],
  ['absolute paths', 'tls_server_config: {cert_file: {directory}/server.crt, key_file: {directory}/server.key}'],
  ['one version', `${TLS}, min_version: TLS13, max_version: TLS13}`],
  ['old versions', `${TLS}, min_version: TLS10, max_version: TLS12}`],
  ['versions without a certificate, which is plain HTTP', 'tls_server_config: {min_version: TLS13}'],
  ['ciphers', `${TLS}, cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]}`],
  ['curves', `${TLS}, curve_preferences: [X25519, CurveP256, CurveP384, CurveP521]}`],
  ['preference in words of YAML 1.1', `${TLS}, prefer_server_cipher_suites: no}`],
  ...['RequestClientCert', 'RequireAnyClientCert', 'RequireClientCert', 'VerifyClientCertIfGiven', 'RequireAndVerifyClientCert'].map(
    (type): [string, string] => [`client certificates: ${type}`, `${TLS}, client_auth_type: ${type}, client_ca_file: ca.crt}`],
  ),
  ['no client certificates', `${TLS}, client_auth_type: NoClientCert}`],
  ['HTTP/2', 'http_server_config: {http2: true}'],
  ['no HTTP/2', 'http_server_config: {http2: off}'],
  [
    'headers',
    'http_server_config: {headers: {X-Frame-Options: deny, X-Content-Type-Options: nosniff, X-XSS-Protection: 0, Strict-Transport-Security: max-age=1}}',
  ],
  ['a header that is folded', "http_server_config:\n  headers:\n    Content-Security-Policy: >\n      default-src\n      'none'\n"],
  ['users', `basic_auth_users: {alice: ${HASH}, bob: ${HASH.replace('$2b$', '$2y$')}}`],
  ['a user called by a number', `basic_auth_users: {42: ${HASH}}`],
];
/** Intervals and bursts as the toolkit reads them; a number is nanoseconds. */
const INTERVALS = ['0', '1s', '"0"', '1m30s', '-1s', '+1h', '.5s', '1.s', '1us', '1µs', '5', '1.5', '1e9', '', 'null'];
const BURSTS = ['0', '20', '-1', '1.5', '1e2', '', 'null'];
/** What newer versions of the toolkit accept, and promtool 2.42 does not know. */
const NEWER: typeof RIGHT = [
  ['a limit of requests', 'rate_limit: {interval: 1s, burst: 20}'],
  ['an empty limit', 'rate_limit:\n'],
  ['a burst alone', 'rate_limit: {burst: 20}'],
  ...INTERVALS.map((one): [string, string] => [`the interval ${one}`, `rate_limit:\n  interval: ${one}\n`]),
  ...BURSTS.map((one): [string, string] => [`the burst ${one}`, `rate_limit:\n  burst: ${one}\n`]),
  ['names of clients', `${TLS}, client_auth_type: RequireAnyClientCert, client_allowed_sans: [prometheus]}`],
  ['certificate and key in the file', 'tls_server_config:\n  cert: {cert}\n  key: {key}\n'],
];
/** What both refuse, and where and how the agent tells it. */
const WRONG: readonly (readonly [what: string, text: string, told: string])[] = [
  ['an unknown section', 'tls: {}', '1:1: unknown key "tls"'],
  ['an unknown key', `${TLS},\n  cert_fle: x}`, '2:3: unknown key "cert_fle" in tls_server_config; did you mean cert_file?'],
  ['a key twice', 'basic_auth_users: {}\nbasic_auth_users: {}', '2:1: the key "basic_auth_users" occurs twice'],
  ['a list', '[]', '1:1: must be a mapping'],
  ['no certificate', 'tls_server_config: {key_file: server.key}', '1:20: tls_server_config needs cert_file or cert'],
  ['no key', 'tls_server_config: {cert_file: server.crt}', '1:20: tls_server_config needs key_file or key'],
  ['only a client CA', 'tls_server_config: {client_ca_file: ca.crt}', 'needs cert_file or cert'],
  [
    'an absent file',
    'tls_server_config:\n  cert_file: absent.crt\n  key_file: server.key',
    '2:14: tls_server_config.cert_file cannot be read:',
  ],
  ['an empty file', 'tls_server_config: {cert_file: empty.crt, key_file: server.key}', 'cert_file has no certificate in PEM form'],
  ['the key of another', 'tls_server_config: {cert_file: server.crt, key_file: other.key}', 'key_file cannot be used: '],
  ['a CA without a type', `${TLS}, client_ca_file: ca.crt}`, 'client_ca_file needs a client_auth_type'],
  ['a wrong type', `${TLS}, client_auth_type: Maybe}`, 'client_auth_type must be one of NoClientCert'],
  ['a wrong version', `${TLS}, min_version: TLS14}`, 'min_version must be one of TLS10, TLS11, TLS12, TLS13'],
  ['a wrong cipher', `${TLS}, cipher_suites: [AES128-SHA]}`, 'cipher_suites[0] must be one of'],
  ['a wrong curve', `${TLS}, curve_preferences: [P-256]}`, 'curve_preferences[0] must be one of CurveP256'],
  ['a wrong header', 'http_server_config: {headers: {Server: x}}', 'unknown key "Server" in http_server_config.headers'],
  [
    'a wrong value of a header',
    'http_server_config: {headers: {X-Frame-Options: allow}}',
    'X-Frame-Options must be one of deny, sameorigin',
  ],
  ['an empty value of a header', 'http_server_config: {headers: {X-Frame-Options: ""}}', 'X-Frame-Options must be one of deny, sameorigin'],
  ['a password that is not hashed', 'basic_auth_users:\n  alice: secret', '2:10: basic_auth_users.alice must be a bcrypt hash'],
  ['a misspelled key', 'basic_auth_user: {}', '1:1: unknown key "basic_auth_user"; did you mean basic_auth_users?'],
  ['a user twice', `basic_auth_users: {alice: ${HASH}, alice: ${HASH}}`, 'occurs twice'],
  ...['1d', '"5"', '1 s', 'true', '[1s]', 's', '300000000h', '1e30'].map((one): [string, string, string] => [
    `the interval ${one}`,
    `rate_limit: {interval: ${one}, burst: 1}`,
    '1:24: rate_limit.interval must be',
  ]),
  ...['"1"', 'true', 'many', '1e30'].map((one): [string, string, string] => [
    `the burst ${one}`,
    `rate_limit: {interval: 1s, burst: ${one}}`,
    '1:35: rate_limit.burst must be',
  ]),
  ['an unknown key of the limit', 'rate_limit: {every: 1s}', '1:14: unknown key "every" in rate_limit'],
  ['a cost that bcrypt has not', `basic_auth_users: {alice: ${HASH.replace('$04$', '$03$')}}`, 'must be a bcrypt hash'],
];
/** What the present toolkit refuses, and promtool 2.42 accepts. */
const SINCE_REFUSED: typeof WRONG = [
  ['a cipher without forward secrecy', `${TLS}, cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]}`, 'cipher_suites[0] must be one of'],
];
/** What a server of the toolkit does not start with, though promtool accepts it. */
const AT_START: typeof WRONG = [
  ['no cipher of HTTP/2', `${TLS}, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]}`, 'or http_server_config.http2: false'],
];
/** What the toolkit accepts, though nobody could connect then, or a comparison would take too long. */
const STRICTER: typeof WRONG = [
  ['a cost that takes days', `basic_auth_users: {alice: ${HASH.replace('$04$', '$31$')}}`, 'alice has cost 31, and'],
  ['a cost that takes seconds', `basic_auth_users: {alice: ${HASH.replace('$04$', '$15$')}}`, '14 is the highest'],
  [
    'a client CA without a certificate',
    `${TLS}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: empty.crt}`,
    'has no certificate',
  ],
  ['no version', `${TLS}, min_version: TLS13, max_version: TLS12}`, 'min_version leaves no version of TLS'],
];

function write(text: string): string {
  const path = certificates.path('web.yml');
  const pem = (name: string): string => JSON.stringify(spawnSync('cat', [certificates.path(name)], { encoding: 'utf8' }).stdout);
  const filled = text.replaceAll('{directory}', certificates.directory);
  writeFileSync(path, filled.includes('{cert}') ? filled.replace('{cert}', pem('server.crt')).replace('{key}', pem('server.key')) : filled);
  return path;
}

const read = (file: string) => new WebConfigFile(file, systemClock).read();

const TOOLKIT = 'github.com/prometheus/exporter-toolkit@v0.20.0';
/** Of files with `bad` in their name, the toolkit takes those two. The hashes of users have cost 18. */
const isRefused = (name: string): boolean =>
  (/\.bad\.|_junk/.test(name) && !/client_san|clientCAs_missing/.test(name)) || name.startsWith('web_config_users');

describe.skipIf(!hasOpenssl)(`the web configuration file${unless(hasOpenssl, 'openssl is not installed')}`, () => {
  it.each([...RIGHT, ...NEWER])('takes %s', async (_what, text) => {
    expect((await read(write(text))).problem?.message).toBeUndefined();
  });

  it.each([...WRONG, ...SINCE_REFUSED, ...AT_START, ...STRICTER])('refuses %s', async (_what, text, told) => {
    const file = write(text);
    const { problem } = await read(file);
    expect(problem).toMatchObject({ code: 'web-config-invalid', exit: 2 });
    expect(problem?.message).toContain(told);
    expect(problem?.message).toContain(`${file}:`);
  });

  it.for(PROMTOOLS)('agrees with $program$skipped', ({ program, isThere }, { skip }) => {
    skip(!isThere);
    const isTaken = (file: string): boolean => spawnSync(program, ['check', 'web-config', file]).status === 0;
    const isPresent = program === PROMTOOLS[1].program;
    const wrongly = (files: readonly (readonly [string, string, string?])[], expected: boolean): string[] =>
      files.filter(([, text]) => isTaken(write(text)) !== expected).map(([what]) => what);
    expect(wrongly([...RIGHT, ...STRICTER, ...AT_START, ...(isPresent ? NEWER : SINCE_REFUSED)], true)).toEqual([]);
    expect(wrongly([...WRONG, ...(isPresent ? SINCE_REFUSED : NEWER)], false)).toEqual([]);
  });

  it('takes and refuses the files of the tests of the toolkit as the toolkit does', async () => {
    const { status, stdout } = spawnSync('go', ['mod', 'download', '-json', TOOLKIT], { encoding: 'utf8', cwd: tmpdir() });
    if (status !== 0) leaveOut('there is no Go, or it cannot get the toolkit');
    const { Dir } = JSON.parse(stdout) as { Dir: string };
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-toolkit-'));
    try {
      cpSync(join(Dir, 'web/testdata'), directory, { recursive: true });
      const names = readdirSync(directory).filter((name) => /\.ya?ml$/.test(name));
      const taken = await Promise.all(names.map(async (name) => (await read(join(directory, name))).problem === undefined));
      expect(names.length).toBeGreaterThan(35);
      expect(names.filter((_name, at) => !taken[at])).toEqual(names.filter(isRefused));
    } finally {
      spawnSync('chmod', ['-R', 'u+w', directory]);
      rmSync(directory, { recursive: true });
    }
  });

  it('tells no secret in a message', async () => {
    const { problem } = await read(write('basic_auth_users: {alice: sesame, bob: 12345678}'));
    expect(problem?.message).not.toMatch(/sesame|12345678/);
  });

  it('tells a file that cannot be read', async () => {
    const { problem } = await read(certificates.path('absent.yml'));
    expect(problem).toMatchObject({ code: 'web-config-unreadable', exit: 2 });
    expect((await read('/dev/zero')).problem?.message).toContain('not a regular file');
  });

  it('has another fingerprint when a file that it names changes, and only then', async () => {
    const file = new WebConfigFile(write(`${TLS}}`), systemClock);
    const first = await file.read();
    expect((await file.read()).fingerprint).toBe(first.fingerprint);
    certificates.issue('server');
    const second = await file.read();
    expect(second.fingerprint).not.toBe(first.fingerprint);
    expect(second.problem).toBeUndefined();
    rmSync(certificates.path('server.key'));
    expect((await file.read()).problem?.message).toContain('key_file cannot be read');
    certificates.issue('server');
  });
});
