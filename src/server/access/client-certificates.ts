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

/** Splits `DNS:a.example, IP Address:10.0.0.1`. Names with special characters are quoted as in JSON. */
export function namesIn(subjectAltName: PeerCertificate['subjectaltname'] & string): string[] {
  const entries = subjectAltName.matchAll(/(DNS|IP Address|URI|email):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/g);
  return [...entries].map(([, kind, value = '']) => {
    const name = value.startsWith('"') ? (JSON.parse(value) as string) : value;
    // OpenSSL writes each group of an IPv6 address, Go the short form.
    return kind === 'IP Address' && name.includes(':') ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;
  });
}
