import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ClaimTree, claimOf, DRIVER, objectText, PCI, type Written } from './claim-tree.ts';

const at = (address: string, name = 'gpu-0'): Written['devices'][number] => ({ name, attributes: { [PCI]: address } });
const is = (pciAddress: string): object[] => [{ by: 'metadata', pciAddress }];

async function read(...texts: readonly string[]): Promise<readonly object[]> {
  const tree = new ClaimTree();
  texts.forEach((text, index) => void writeFileSync(tree.metadataPath(claimOf(), `r${index}`), text));
  return await tree.of(claimOf());
}

describe('a metadata file of a DRA driver', () => {
  it('names the PCI address, in any spelling', async () => {
    expect(await read(objectText({ devices: [at('0000:3B:00.0')] }))).toEqual(is('0000:3b:00.0'));
  });

  it("names the UUID by an attribute of the driver's domain, and tells a part from the whole", async () => {
    const attributes = { [`${DRIVER}/uuid`]: 'MIG-a', parentUUID: 'GPU-a', [PCI]: '0000:3b:00.0' };
    expect(await read(objectText({ devices: [{ name: 'gpu-0', attributes }] }))).toEqual([
      { by: 'metadata', pciAddress: '0000:3b:00.0', uuid: 'MIG-a', isPartition: true },
    ]);
  });

  it('tells a part by a type that a family declares', async () => {
    const attributes = (type: string): Readonly<Record<string, string>> => ({ type, [PCI]: '0000:3b:00.0' });
    expect(await read(objectText({ devices: [{ name: 'gpu-0', attributes: attributes('mig') }] }))).toEqual([
      { by: 'metadata', pciAddress: '0000:3b:00.0', isPartition: true },
    ]);
    expect(await read(objectText({ devices: [{ name: 'gpu-0', attributes: attributes('gpu') }] }))).toEqual(is('0000:3b:00.0'));
  });

  it('is a stream of versions: unknown ones are skipped, and their order has no meaning', async () => {
    const known = objectText({ devices: [at('0000:3b:00.0')] });
    const beta = objectText({ version: 'v1beta1', devices: [at('0000:3b:00.0')] });
    const unknown = objectText({ version: 'v9', devices: [at('0000:99:00.0')] });
    for (const text of [unknown + known, `${known}\n${unknown}\n`, beta + known, known + beta]) {
      expect(await read(text)).toEqual(is('0000:3b:00.0'));
    }
  });

  it('counts with its highest generation', async () => {
    const old = objectText({ version: 'v1', generation: 1, devices: [at('0000:3b:00.0')] });
    const now = objectText({ generation: 2, devices: [at('0000:4b:00.0')] });
    expect(await read(old + now)).toEqual(is('0000:4b:00.0'));
    expect(await read(now + old)).toEqual(is('0000:4b:00.0'));
  });

  it('counts as far as it is complete', async () => {
    const one = objectText({ devices: [at('0000:3b:00.0')] });
    expect(await read(one + one.slice(0, -20))).toEqual(is('0000:3b:00.0'));
    expect(await read(one.slice(0, -1))).toEqual([]);
    expect(await read('')).toEqual([]);
  });

  it('does not count when it speaks of another claim, another driver, or two claims', async () => {
    const devices = [at('0000:3b:00.0')];
    expect(await read(objectText({ claim: 'other', devices }))).toEqual([]);
    expect(await read(objectText({ namespace: 'other', devices }))).toEqual([]);
    expect(await read(objectText({ devices: [{ ...at('0000:3b:00.0'), driver: 'other.example.com' }] }))).toEqual([]);
    expect(await read(objectText({ devices }) + objectText({ uid: 'uid-2', devices }))).toEqual([]);
  });

  it('has a sibling for each request of the claim', async () => {
    const first = objectText({ devices: [at('0000:4b:00.0', 'gpu-1')] });
    expect(await read(first, objectText({ devices: [at('0000:3b:00.0')] }))).toEqual(is('0000:3b:00.0'));
  });

  it('does not count when a sibling contradicts it, or belongs to an ended claim of the same name', async () => {
    const one = objectText({ devices: [at('0000:3b:00.0')] });
    expect(await read(one, objectText({ devices: [at('0000:4b:00.0')] }))).toEqual([]);
    expect(await read(one, objectText({ uid: 'uid-0', devices: [at('0000:5b:00.0', 'gpu-7')] }))).toEqual([]);
  });

  it('gives the interface only where the host has one of this name and hardware address', async () => {
    const tree = new ClaimTree();
    tree.write('sys/class/net/eth1/address', 'AA:00:00:00:00:01\n');
    const networkData = { interfaceName: 'eth1', hardwareAddress: 'aa:00:00:00:00:01' };
    const write = (data: object): void =>
      writeFileSync(tree.metadataPath(claimOf()), objectText({ devices: [{ name: 'gpu-0', networkData: data }] }));
    write(networkData);
    expect(await tree.of(claimOf())).toEqual([{ by: 'metadata', interfaceName: 'eth1' }]);
    write({ ...networkData, hardwareAddress: 'aa:00:00:00:00:0222' });
    expect(await tree.of(claimOf())).toEqual([{ by: 'metadata' }]);
  });

  it('may come late, change and go', async () => {
    const tree = new ClaimTree();
    expect(await tree.of(claimOf())).toEqual([]);
    const path = tree.metadataPath(claimOf());
    writeFileSync(path, objectText({ devices: [at('0000:3b:00.0')] }));
    expect(await tree.of(claimOf())).toEqual(is('0000:3b:00.0'));
    writeFileSync(path, objectText({ generation: 2, devices: [at('0000:4b:00.0')] }));
    expect(await tree.of(claimOf())).toEqual(is('0000:4b:00.0'));
    writeFileSync(path, '');
    expect(await tree.of(claimOf())).toEqual([]);
  });

  it('is found only below the directory, whatever names the kubelet tells', async () => {
    const tree = new ClaimTree();
    tree.write('outside/dra-device-metadata/ml_c/r/metadata.json', objectText({ devices: [at('0000:3b:00.0')] }));
    expect(await tree.of(claimOf({ driver: '../outside' }))).toEqual([]);
    expect(await tree.of(claimOf({ name: '../c' }))).toEqual([]);
  });

  it('is no link to another file, and none of its directories is a link', async () => {
    const tree = new ClaimTree();
    const path = tree.metadataPath(claimOf());
    const other = join(tree.root, 'secret');
    writeFileSync(other, objectText({ devices: [at('0000:3b:00.0')] }));
    symlinkSync(other, path);
    expect(await tree.of(claimOf())).toEqual([]);
    expect(tree.reader.problems()).toEqual([
      { code: 'not-a-file', message: `${path}: it is a symbolic link, and links are not followed here` },
    ]);
    const directory = dirname(path);
    renameSync(directory, `${tree.root}/moved`);
    symlinkSync(`${tree.root}/moved`, directory);
    expect(await tree.of(claimOf())).toEqual([]);
    expect(tree.reader.problems()).toMatchObject([{ code: 'not-a-file', message: expect.stringMatching(/^.*\/r: it is a symbolic link/) }]);
  });
});
