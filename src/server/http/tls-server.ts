import { constants } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { PeerCertificate, SecureContextOptions, TLSSocket } from 'node:tls';
import type { Access, TlsRules } from '../access/access.ts';

/** Creates a server for HTTPS. Each change of the rules counts for the next connections, and for the open ones, which are judged anew. */
export function createTlsServer(
  timeouts: ServerOptions,
  app: RequestListener,
  initial: TlsRules,
  access: { subscribe(apply: (access: Access) => void): void },
): Server {
  let rules = initial;
  const server = createServer(
    {
      ...timeouts,
      ...contextOf(rules),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: timeouts.headersTimeout ?? 0,
      requestCert: asksForCertificate(rules),
      // `isAdmitted` decides by the current rules.
      rejectUnauthorized: false,
    },
    app,
  );
  // HTTP begins on a connection with its `secureConnection` event: only admitted connections may reach the original listeners.
  const listeners = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  const transports = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    transports.add(socket);
    socket.once('close', () => transports.delete(socket));
  });
  const admitted = new Set<TLSSocket>();
  server.on('secureConnection', (socket: TLSSocket) => {
    if (!isAdmitted(socket, rules)) return void socket.destroy();
    admitted.add(socket);
    socket.once('close', () => admitted.delete(socket));
    for (const listener of listeners) listener.call(server, socket);
  });
  access.subscribe(({ tls }) => {
    if (tls === undefined) return;
    // Node verifies a certificate only during the handshake, so another authority needs another handshake.
    const isOtherAuthority = tls.context.ca !== rules.context.ca;
    rules = tls;
    server.setSecureContext(contextOf(tls));
    // Node has no method for this property. If it were ignored, certificates would be missing and `isAdmitted` would refuse.
    Object.assign(server, { requestCert: asksForCertificate(tls) });
    if (isOtherAuthority) for (const socket of transports) socket.destroy();
    for (const socket of admitted) if (!isAdmitted(socket, rules)) socket.destroy();
    server.closeIdleConnections();
  });
  return server;
}

const asksForCertificate = ({ clientAuth }: TlsRules): boolean => clientAuth !== 'NoClientCert';

/** Without tickets no connection resumes a session, so that each one shows a certificate that is valid now. */
const contextOf = ({ context }: TlsRules): SecureContextOptions => ({ ...context, secureOptions: constants.SSL_OP_NO_TICKET });

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
