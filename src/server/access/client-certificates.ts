import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { TlsRules } from './access.ts';

/** Decides about a connection by its client's certificate, as Go's `tls.ClientAuthType` does. */
export function isAdmitted(socket: TLSSocket, { clientAuth, allowedSans }: TlsRules): boolean {
  if (clientAuth === 'NoClientCert' || clientAuth === 'RequestClientCert') return true;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return clientAuth === 'VerifyClientCertIfGiven';
  if (clientAuth !== 'RequireAnyClientCert' && !socket.authorized) return false;
  return allowedSans === undefined || namesIn(certificate.subjectAltName ?? '').some((name) => allowedSans.includes(name));
}

/** An entry of Node's text: the type, and a name that is quoted as in JSON when it has special characters. */
const ENTRY = /([^:",]+):("(?:[^"\\\p{Cc}]|\\["\\]|\\u[0-9a-f]{4})*"|[^",]*)(?:, |$)/guy;
const NAME_TYPES = ['DNS', 'IP Address', 'URI', 'email'];

/**
 * Returns the names of the types that Go compares, of a text such as `DNS:a.example, IP Address:10.0.0.1, DirName:CN=a`. A text that is not of
 * this form has no names: a part of another type must never count as a name.
 */
export function namesIn(subjectAltName: PeerCertificate['subjectaltname'] & string): string[] {
  const entries = [...subjectAltName.matchAll(ENTRY)];
  if (entries.map(([text]) => text).join('') !== subjectAltName) return [];
  return entries
    .filter(([, type = '']) => NAME_TYPES.includes(type))
    .map(([, type, value = '']) => {
      const name = value.startsWith('"') ? (JSON.parse(value) as string) : value;
      // OpenSSL writes each group of an IPv6 address, Go the short form.
      return type === 'IP Address' && name.includes(':') ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;
    });
}
