import { CLIENT_AUTH_TYPES, type ClientAuthType } from '../../server/access/access.ts';
import type { JsonSchema } from '../structured.ts';
import { CURVES, TLS_VERSIONS, TLS12_CIPHERS, TLS13_CIPHERS } from './tls-names.ts';

/** The file as plain data. Its keys and their meaning are those of Prometheus' exporter toolkit. Null counts as absent. */
export interface WebConfigData {
  readonly tls_server_config?: TlsData | null;
  readonly http_server_config?: HttpData | null;
  readonly rate_limit?: { readonly interval?: string | number | null; readonly burst?: number | null } | null;
  /** Hashes, once they are checked. */
  readonly basic_auth_users?: Readonly<Record<string, string>> | null;
}

export interface TlsData {
  readonly cert?: string | null;
  readonly key?: string | null;
  readonly client_ca?: string | null;
  readonly cert_file?: string | null;
  readonly key_file?: string | null;
  readonly client_ca_file?: string | null;
  readonly client_auth_type?: ClientAuthType | 'RequireClientCert' | '' | null;
  readonly client_allowed_sans?: readonly string[] | null;
  readonly min_version?: string | null;
  readonly max_version?: string | null;
  readonly cipher_suites?: readonly string[] | null;
  readonly curve_preferences?: readonly string[] | null;
  readonly prefer_server_cipher_suites?: YamlBoolean | null;
}

interface HttpData {
  readonly http2?: YamlBoolean | null;
  readonly headers?: Readonly<Record<string, string | number | boolean>> | null;
}

/** The toolkit reads YAML 1.1, which has more words for true and false. */
const TRUE_WORDS = ['true', 'True', 'TRUE', 'yes', 'Yes', 'YES', 'on', 'On', 'ON', 'y', 'Y'];
const FALSE_WORDS = ['false', 'False', 'FALSE', 'no', 'No', 'NO', 'off', 'Off', 'OFF', 'n', 'N'];
type YamlBoolean = boolean | string;
export const isTrue = (value: YamlBoolean): boolean => value === true || TRUE_WORDS.includes(String(value));

const text: JsonSchema = { type: ['string', 'null'] };
const boolean: JsonSchema = { enum: [true, false, ...TRUE_WORDS, ...FALSE_WORDS, null] };
const version: JsonSchema = { enum: [...Object.keys(TLS_VERSIONS), null] };
const header: JsonSchema = { type: ['string', 'number', 'boolean', 'null'] };
const listOf = (items: JsonSchema): JsonSchema => ({ type: ['array', 'null'], items });
const mapping = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: false,
  properties,
});

export const webConfigSchema: JsonSchema = mapping({
  tls_server_config: mapping({
    cert: text,
    key: text,
    client_ca: text,
    cert_file: text,
    key_file: text,
    client_ca_file: text,
    client_auth_type: { enum: [...CLIENT_AUTH_TYPES, 'RequireClientCert', '', null] },
    client_allowed_sans: listOf({ type: 'string' }),
    min_version: version,
    max_version: version,
    cipher_suites: listOf({ enum: [...TLS13_CIPHERS, ...Object.keys(TLS12_CIPHERS)] }),
    curve_preferences: listOf({ enum: Object.keys(CURVES) }),
    prefer_server_cipher_suites: boolean,
  }),
  http_server_config: mapping({
    http2: boolean,
    headers: mapping({
      'Strict-Transport-Security': header,
      'X-Content-Type-Options': { enum: ['nosniff'] },
      'X-Frame-Options': { enum: ['deny', 'sameorigin'] },
      'X-XSS-Protection': header,
      'Content-Security-Policy': header,
    }),
  }),
  // `limitProblems` checks the interval.
  rate_limit: mapping({ interval: { type: ['string', 'number', 'null'] }, burst: { type: ['number', 'null'], exclusiveMaximum: 2 ** 63 } }),
  // A message of the schema would show a wrong value, which may be a password. `userProblems` checks the values.
  basic_auth_users: { type: ['object', 'null'] },
});
