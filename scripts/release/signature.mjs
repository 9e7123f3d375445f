// A detached signature of a file: the one that `openssl dgst -verify` and `cosign verify-blob` read, in base64.
import { spawnSync } from 'node:child_process';
import { createPrivateKey, sign } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** The curve of cosign's own keys. */
const CURVE = 'prime256v1';

/** `key` is a PEM file with a key of the curve P-256, or what only cosign reads: its own encrypted file, or the address of a key in hardware. */
export function signFile(file, key) {
  const signature = `${file}.sig`;
  const pem = existsSync(key) ? readFileSync(key, 'utf8') : undefined;
  if (pem === undefined || /ENCRYPTED (?:COSIGN|SIGSTORE) PRIVATE KEY/.test(pem)) return signByCosign(file, key, signature);
  const privateKey = createPrivateKey({ key: pem, passphrase: process.env.KEY_PASSWORD ?? '' });
  if (privateKey.asymmetricKeyDetails?.namedCurve !== CURVE) throw new Error(`${key} is no key of the curve P-256`);
  writeFileSync(signature, `${sign('sha256', readFileSync(file), privateKey).toString('base64')}\n`);
}

/** cosign asks for the password, or takes it from COSIGN_PASSWORD. Nothing is published to a log. */
function signByCosign(file, key, signature) {
  const words = ['sign-blob', '--yes', '--tlog-upload=false', '--key', key, '--output-signature', signature, file];
  const { error, status } = spawnSync('cosign', words, { stdio: ['inherit', 'ignore', 'inherit'] });
  if (error?.code === 'ENOENT') throw new Error(`${key} is no PEM file, and there is no cosign to sign with it`);
  if (error !== undefined || status !== 0) throw error ?? new Error(`cosign ended with ${status}`);
}
