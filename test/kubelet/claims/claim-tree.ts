import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadFamilies } from '../../../src/config/sections.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { ClaimReader } from '../../../src/kubelet/claims/claims.ts';
import type { Allocation, Claim } from '../../../src/model/allocation.ts';
import { type ClaimHardware, claimDeviceKey } from '../../../src/model/claim-hardware.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import { builtDocumentThread } from '../../support/documents.ts';
import { allocation } from '../../support/snapshots.ts';

const families = await loadFamilies(familyLoaders);
const thread = builtDocumentThread();

/** What a driver writes into a metadata file, in the form of the first versions of the API. */
export interface Written {
  readonly version?: string;
  readonly namespace?: string;
  readonly claim?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly devices: readonly {
    readonly driver?: string;
    readonly pool?: string;
    readonly name: string;
    readonly attributes?: Readonly<Record<string, string>>;
    readonly networkData?: object;
  }[];
}

export const DRIVER = 'gpu.example.com';
export const PCI = 'resource.kubernetes.io/pciBusID';

export function objectText(written: Written): string {
  const { version = 'v1alpha1', namespace = 'ml', claim = 'c', uid = 'uid-1', generation = 1, devices } = written;
  return JSON.stringify({
    kind: 'DeviceMetadata',
    apiVersion: `metadata.resource.k8s.io/${version}`,
    metadata: { name: claim, namespace, uid, generation, creationTimestamp: null },
    podClaimName: 'gpu',
    requests: [
      {
        name: 'r',
        devices: devices.map(({ driver = DRIVER, pool = 'node', attributes = {}, ...rest }) => ({
          driver,
          pool,
          attributes: Object.fromEntries(Object.entries(attributes).map(([name, string]) => [name, { string }])),
          ...rest,
        })),
      },
    ],
  });
}

/** Ends with its test. */
function folderOfTest(): string {
  const root = mkdtempSync(join(tmpdir(), 'claims-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

/** A node's files: the kubelet's plugins directory, two directories of CDI specs, and sysfs. */
export class ClaimTree {
  readonly root = folderOfTest();
  readonly reader = new ClaimReader({
    metadataDirectory: join(this.root, 'plugins'),
    cdiDirectories: [join(this.root, 'run-cdi'), join(this.root, 'etc-cdi')],
    sysfs: join(this.root, 'sys'),
    forms: families.flatMap(({ claimForms }) => claimForms ?? []),
    thread,
    clock: systemClock,
  });

  /** Path of the metadata file of one request; its directory exists. */
  metadataPath(claim: Pick<Claim, 'namespace' | 'name' | 'driver'>, request = 'r'): string {
    const directory = join(this.root, 'plugins', claim.driver, 'dra-device-metadata', `${claim.namespace}_${claim.name}`, request);
    mkdirSync(directory, { recursive: true });
    return join(directory, 'metadata.json');
  }

  write(path: string, text: string): void {
    mkdirSync(join(this.root, path, '..'), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  link(path: string, target: string): void {
    mkdirSync(join(this.root, path, '..'), { recursive: true });
    mkdirSync(join(this.root, target), { recursive: true });
    symlinkSync(join(this.root, target), join(this.root, path));
  }

  async of(claim: Claim): Promise<readonly ClaimHardware[]> {
    await this.reader.read([held(claim)]);
    return this.reader.current().get(claimDeviceKey(claim)) ?? [];
  }
}

export const claimOf = (part: Partial<Claim> = {}): Claim => ({
  name: 'c',
  namespace: 'ml',
  driver: DRIVER,
  pool: 'node',
  device: 'gpu-0',
  ...part,
});

export const held = (claim: Claim): Allocation => allocation({ resource: claim.driver, deviceId: `${claim.pool}/${claim.device}`, claim });
