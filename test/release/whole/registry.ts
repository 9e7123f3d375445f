import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isInstalled } from '../../support/installed.ts';
import { freePort } from '../../support/prometheus.ts';

/** Why no image can be pushed and signed here; undefined when one can. The first is built from source, Debian has the others. */
export function whyNoRegistry(): string | undefined {
  const words: Readonly<Record<string, string>> = { cosign: 'version', skopeo: '--version', 'docker-registry': '--version' };
  const missing = Object.entries(words).filter(([program, word]) => !isInstalled(program, word));
  return missing.length === 0 ? undefined : `${missing.map(([program]) => program).join(', ')} not installed`;
}

export interface Registry {
  /** `host:port` */
  readonly address: string;
  /** What a client needs to talk to it without TLS. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** A real registry that keeps its images in a directory. */
export async function startRegistry(directory: string): Promise<Registry> {
  const address = `127.0.0.1:${await freePort()}`;
  const [file, home] = [join(directory, 'registry.yaml'), join(directory, 'home')];
  const storage = { filesystem: { rootdirectory: join(directory, 'registry') } };
  writeFileSync(file, JSON.stringify({ version: 0.1, storage, http: { addr: address } }));
  mkdirSync(join(home, '.config/containers'), { recursive: true });
  writeFileSync(join(home, '.config/containers/registries.conf'), `[[registry]]\nlocation = "${address}"\ninsecure = true\n`);
  const child = spawn('docker-registry', ['serve', file], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  while ((await fetch(`http://${address}/v2/`).catch(() => undefined))?.ok !== true) {
    if (child.exitCode !== null) throw new Error(`docker-registry ended with ${child.exitCode}`);
    await sleep(50);
  }
  const stop = async (): Promise<void> => {
    child.kill();
    await ended;
  };
  return { address, environment: { REGISTRY: address, HOME: home }, stop };
}
