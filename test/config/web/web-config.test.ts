import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebConfigFile } from '../../../src/config/web/web-config-file.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { Certificates } from '../../support/certificates.ts';
import { isInstalled } from '../../support/installed.ts';
import { unless } from '../../support/skipped.ts';

const HASH = '$2b$04$Y0LI3kIj94UG8d8ePCe3Y.wD1UxAXxOPt0ypzyjlB1DLEYvgvxmV2';
const hasOpenssl = isInstalled('openssl', 'version');
const hasPromtool = isInstalled('promtool');
let certificates: Certificates;
beforeAll(() => {
  if (!hasOpenssl) return;
  certificates = new Certificates();
  certificates.issue('server');
  certificates.issue('other');
  writeFileSync(certificates.path('empty.crt'), '');
});
afterAll(() => certificates?.remove());

const bound = (entries: string): string => `basic_auth_users: {alice: ${HASH}}\nbasic_auth_namespaces: {${entries}}`;
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
  ['an old cipher', `${TLS}, cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]}`],
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
/** What newer versions of the toolkit accept, and promtool 2.42 does not know. */
const NEWER: typeof RIGHT = [
  ['names of clients', `${TLS}, client_auth_type: RequireAnyClientCert, client_allowed_sans: [prometheus]}`],
  ['certificate and key in the file', 'tls_server_config:\n  cert: {cert}\n  key: {key}\n'],
];
/** What only the agent knows. */
const OWN: typeof RIGHT = [
  ['users of namespaces', `basic_auth_users: {alice: ${HASH}, bob: ${HASH}}\nbasic_auth_namespaces: {alice: [team-a, team-b]}`],
  ['a user called by a number and its namespace', `basic_auth_users: {42: ${HASH}}\nbasic_auth_namespaces: {42: ["1"]}`],
  ['nobody bound', 'basic_auth_namespaces: {}'],
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
  [
    'namespaces of nobody',
    'basic_auth_namespaces: {alice: [team-a]}',
    '1:32: basic_auth_namespaces.alice names no user of basic_auth_users',
  ],
  ['namespaces of an inherited name', bound('constructor: [team-a]'), '2:38: basic_auth_namespaces.constructor names no user'],
  ['namespaces without a value', `basic_auth_users: {alice: ${HASH}}\nbasic_auth_namespaces:`, 'basic_auth_namespaces must be a mapping'],
  [
    'namespaces as a list',
    `basic_auth_users: {alice: ${HASH}}\nbasic_auth_namespaces: [team-a]`,
    'basic_auth_namespaces must be a mapping',
  ],
  ['a user without a value', bound('alice:'), '2:25: basic_auth_namespaces.alice must be a list of one namespace or more'],
  ['a user with no namespace', bound('alice: []'), '2:32: basic_auth_namespaces.alice must be a list of one namespace or more'],
  ['a namespace that is no list', bound('alice: team-a'), '2:32: basic_auth_namespaces.alice must be a list of one namespace or more'],
  ['a wrong namespace', bound('alice: [team-a, "*"]'), '2:41: basic_auth_namespaces.alice.1 must be the name of a namespace'],
  ['a namespace that is a number', bound('alice: [1]'), 'basic_auth_namespaces.alice.0 must be the name of a namespace'],
  ['a misspelled key', 'basic_auth_namespace: {}', '1:1: unknown key "basic_auth_namespace"; did you mean basic_auth_namespaces?'],
  ['a user bound twice', bound('alice: [team-a], alice: [team-b]'), 'occurs twice'],
  ['a cost that bcrypt has not', `basic_auth_users: {alice: ${HASH.replace('$04$', '$03$')}}`, 'must be a bcrypt hash'],
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

const isTaken = (file: string): boolean => spawnSync('promtool', ['check', 'web-config', file]).status === 0;
const read = (file: string) => new WebConfigFile(file, systemClock).read();

describe.skipIf(!hasOpenssl)(`the web configuration file${unless(hasOpenssl, 'openssl is not installed')}`, () => {
  it.each([...RIGHT, ...NEWER, ...OWN])('takes %s', async (_what, text) => {
    expect((await read(write(text))).problem?.message).toBeUndefined();
  });

  it.each([...WRONG, ...STRICTER])('refuses %s', async (_what, text, told) => {
    const file = write(text);
    const { problem } = await read(file);
    expect(problem).toMatchObject({ code: 'web-config-invalid', exit: 2 });
    expect(problem?.message).toContain(told);
    expect(problem?.message).toContain(`${file}:`);
  });

  it.skipIf(!hasPromtool)(`agrees with promtool${unless(hasPromtool, 'promtool is not installed')}`, () => {
    const wrongly = (files: readonly (readonly [string, string, string?])[], expected: boolean): string[] =>
      files.filter(([, text]) => isTaken(write(text)) !== expected).map(([what]) => what);
    expect(wrongly([...RIGHT, ...STRICTER], true)).toEqual([]);
    expect(wrongly([...WRONG, ...OWN], false)).toEqual([]);
  });

  it('tells no secret in a message', async () => {
    const { problem } = await read(
      write('basic_auth_users: {alice: sesame, bob: 12345678}\nbasic_auth_namespaces: {alice: sesame, bob: [sesame]}'),
    );
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
