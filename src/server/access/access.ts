import type { SecureContextOptions } from 'node:tls';
import type { UserError } from '../../errors.ts';

/** What the server asks of a client's certificate. Names as in Go's `tls.ClientAuthType`. */
export const CLIENT_AUTH_TYPES = [
  'NoClientCert',
  'RequestClientCert',
  'RequireAnyClientCert',
  'VerifyClientCertIfGiven',
  'RequireAndVerifyClientCert',
] as const;
export type ClientAuthType = (typeof CLIENT_AUTH_TYPES)[number];

export interface TlsRules {
  /** Certificate, key, CA, versions, ciphers and curves, with contents in place of paths. */
  readonly context: SecureContextOptions;
  readonly clientAuth: ClientAuthType;
  /** Without a list, each subject alternative name is allowed. */
  readonly allowedSans?: readonly string[];
}

/** A bucket that holds `burst` requests, and gets one in each interval. */
export interface RateLimit {
  readonly intervalMs: number;
  readonly burst: number;
}

/** Who may read what the server serves, and how. */
export interface Access {
  /** Absent: plain HTTP. */
  readonly tls?: TlsRules;
  /** Headers of each answer. */
  readonly headers: Readonly<Record<string, string>>;
  /** bcrypt hashes by user name. Empty: no password is needed. */
  readonly users: ReadonlyMap<string, string>;
  /** Absent: as many requests as arrive. */
  readonly rateLimit?: RateLimit;
}

export const OPEN_ACCESS: Access = { headers: {}, users: new Map() };

/** The access, or why it cannot be used. */
export type AccessReading = {
  /** Changes when any content that was read changes. */
  readonly fingerprint: string;
} & ({ readonly access: Access; readonly problem?: undefined } | { readonly access?: undefined; readonly problem: UserError });

/** Reads the files that define the access. Never rejects, and resolves within a limit of time. */
export interface AccessSource {
  /** Name of the file, for the log. */
  readonly file: string;
  read(): Promise<AccessReading>;
}
