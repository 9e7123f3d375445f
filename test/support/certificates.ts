import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled } from './installed.ts';
import { leaveOut } from './skipped.ts';

/** Why no certificate can be made here; undefined when one can. */
export const noOpenssl = isInstalled('openssl', 'version') ? undefined : 'openssl is not installed';

/** Certificates made by `openssl`, in a directory of their own. */
export class Certificates {
  readonly directory = mkdtempSync(join(tmpdir(), 'device-agent-certificates-'));
  #serial = 0;

  constructor() {
    this.authority('ca');
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Makes `<name>.crt` and `<name>.key` that sign others. */
  authority(name: string): void {
    this.#openssl(['req', '-x509', ...this.#newKey(name), '-subj', `/CN=${name}`, '-days', '2', '-out', this.path(`${name}.crt`)]);
  }

  /** Makes `<name>.crt` and `<name>.key`, signed by an authority. An expired one ended yesterday. */
  issue(name: string, { ca = 'ca', san = `DNS:${name},IP:127.0.0.1`, isExpired = false } = {}): void {
    const request = this.path(`${name}.csr`);
    const extensions = this.path(`${name}.ext`);
    writeFileSync(extensions, `subjectAltName=${san}\n`);
    this.#openssl(['req', '-new', ...this.#newKey(name), '-subj', `/CN=${name}`, '-out', request]);
    this.#serial += 1;
    const signing = ['-CA', this.path(`${ca}.crt`), '-CAkey', this.path(`${ca}.key`), '-set_serial', String(this.#serial)];
    // Negative days put the end before the begin, which every verifier takes for expired.
    const days = ['-days', isExpired ? '-1' : '2'];
    this.#openssl(['x509', '-req', '-in', request, ...signing, ...days, '-extfile', extensions, '-out', this.path(`${name}.crt`)]);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #newKey(name: string): string[] {
    return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', this.path(`${name}.key`)];
  }

  #openssl(words: readonly string[]): void {
    if (noOpenssl !== undefined) leaveOut(noOpenssl);
    execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  }
}
