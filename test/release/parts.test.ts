import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { unless } from '../support/skipped.ts';

const part = async <T>(file: string): Promise<T> => (await import(pathToFileURL(`scripts/release/${file}`).href)) as T;
const { signFile } = await part<{ signFile(file: string, key: string): void }>('signature.mjs');
const { debianPackage, npmPackage } = await part<{
  debianPackage(of: Readonly<Record<string, string>>, hex: string, distribution: string): { purl: string; licenseNames: string[] };
  npmPackage(name: string, entry: Readonly<Record<string, string>>): { purl: string; digest: { hex: string } };
}>('packages.mjs');

const directory = mkdtempSync(join(tmpdir(), 'device-agent-signature-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('a package of a release', () => {
  it('has the name that scanners know', () => {
    const integrity = `sha512-${Buffer.alloc(64, 1).toString('base64')}`;
    const npm = npmPackage('@grpc/grpc-js', { version: '1.2.3', integrity, license: 'Apache-2.0' });
    expect([npm.purl, npm.digest.hex]).toEqual(['pkg:npm/%40grpc/grpc-js@1.2.3', '01'.repeat(64)]);
    const libstdc = { name: 'libstdc++6', version: '1:12.2-14+deb12u1', architecture: 'arm64', copyright: '' };
    expect(debianPackage(libstdc, 'ab', '12').purl).toBe('pkg:deb/debian/libstdc%2B%2B6@1%3A12.2-14%2Bdeb12u1?arch=arm64&distro=debian-12');
  });

  it('has the licences that its copyright file names, in either form of such a file', () => {
    const copyright = [
      'License: Expat',
      'License:   GPL-2+',
      "can be found in `/usr/share/common-licenses/LGPL-2.1'.",
      'in /usr/share/common-licenses/GPL. See also /usr/share/common-licenses/GPL-3,',
      'License for redistribution is by either',
      'License:',
    ].join('\n');
    const { licenseNames } = debianPackage({ name: 'a', version: '1', architecture: 'amd64', copyright }, 'ab', '12');
    expect(licenseNames).toEqual(['Expat', 'GPL', 'GPL-2+', 'GPL-3', 'LGPL-2.1']);
  });
});

describe('the signature', () => {
  const file = join(directory, 'SHA256SUMS');
  const key = join(directory, 'key');
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;
  beforeEach(() => {
    writeFileSync(file, 'a list\n');
    rmSync(`${file}.sig`, { force: true });
  });

  it.skipIf(!hasOpenssl)(`is the one that openssl reads${unless(hasOpenssl, 'openssl is not installed')}`, () => {
    writeFileSync(join(directory, 'pub'), pair.publicKey.export({ type: 'spki', format: 'pem' }));
    const password = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const;
    for (const [pem, given] of [
      [pair.privateKey.export({ type: 'sec1', format: 'pem' }), undefined],
      [pair.privateKey.export(password), 'secret'],
    ]) {
      writeFileSync(key, pem as string);
      if (given !== undefined) process.env.KEY_PASSWORD = given as string;
      signFile(file, key);
      delete process.env.KEY_PASSWORD;
      writeFileSync(join(directory, 'raw'), Buffer.from(readFileSync(`${file}.sig`, 'utf8'), 'base64'));
      const words = ['dgst', '-sha256', '-verify', join(directory, 'pub'), '-signature', join(directory, 'raw'), file];
      expect(execFileSync('openssl', words, { encoding: 'utf8' })).toBe('Verified OK\n');
    }
  });

  it('is not made with a key of another kind', () => {
    for (const { privateKey } of [generateKeyPairSync('ed25519'), generateKeyPairSync('ec', { namedCurve: 'P-384' })]) {
      writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
      expect(() => signFile(file, key)).toThrow(`${key} is no key of the curve P-256`);
    }
    expect(existsSync(`${file}.sig`)).toBe(false);
  });

  it('is made by cosign with a key that only cosign reads', () => {
    const before = process.env.PATH;
    process.env.PATH = directory;
    try {
      expect(() => signFile(file, 'awskms:///alias/release')).toThrow('there is no cosign to sign with it');
      // Stands for cosign: it writes what it was called with.
      writeFileSync(join(directory, 'cosign'), `#!/bin/sh\nfor last; do :; done\necho "$@" > "$last.sig"\n`);
      chmodSync(join(directory, 'cosign'), 0o755);
      writeFileSync(key, '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n');
      for (const each of [key, 'awskms:///alias/release']) {
        signFile(file, each);
        expect(readFileSync(`${file}.sig`, 'utf8')).toContain(`--key ${each} --output-signature ${file}.sig ${file}\n`);
      }
      writeFileSync(join(directory, 'cosign'), '#!/bin/sh\nexit 3\n');
      expect(() => signFile(file, key)).toThrow('cosign ended with 3');
    } finally {
      process.env.PATH = before;
    }
  });
});
