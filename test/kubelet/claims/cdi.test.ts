import { describe, expect, it } from 'vitest';
import { ClaimTree, claimOf } from './claim-tree.ts';

const NAME = 'example.com/gpu=a';
const claim = claimOf({ cdiDevices: [NAME] });
const spec = (nodes: readonly object[], name = 'a'): string =>
  JSON.stringify({ cdiVersion: '0.6.0', kind: 'example.com/gpu', devices: [{ name, containerEdits: { deviceNodes: nodes } }] });

const YAML = `cdiVersion: 0.6.0
kind: example.com/gpu
containerEdits:
  deviceNodes:
    - path: /dev/shared
devices:
  - name: a
    containerEdits:
      deviceNodes:
        - path: /dev/gpu0
          hostPath: /run/driver/dev/gpu7
  - name: b
    containerEdits:
      deviceNodes:
        - path: /dev/gpu1
`;

describe('CDI specs', () => {
  it('name the nodes of a device on the host, in JSON and YAML', async () => {
    const tree = new ClaimTree();
    tree.write('etc-cdi/x.yaml', YAML);
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu7'] }]);
    tree.write('run-cdi/x.json', spec([{ path: '/dev/gpu3' }]));
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu3'] }]);
  });

  it('lead to the PCI address by the numbers of a node, by its class and by its VFIO group', async () => {
    const tree = new ClaimTree();
    const place = 'sys/devices/pci0000:00/0000:3b:00.0';
    tree.link('sys/dev/char/511:3', `${place}/accel/accel0`);
    tree.link('sys/class/drm/renderD128', `${place}/drm/renderD128`);
    tree.link('sys/kernel/iommu_groups/12/devices/0000:3b:00.0', place);
    const nodes = [{ path: '/dev/x', type: 'c', major: 511, minor: 3 }, { path: '/dev/dri/renderD128' }, { path: '/dev/vfio/12' }];
    for (const node of nodes) {
      tree.write('run-cdi/x.json', spec([node, { path: '/dev/unknown' }]));
      expect(await tree.of(claim)).toMatchObject([{ pciAddress: '0000:3b:00.0' }]);
    }
    tree.link('sys/dev/char/511:4', 'sys/devices/pci0000:00/0000:4b:00.0/accel/accel1');
    tree.write('run-cdi/x.json', spec([nodes[0] as object, { path: '/dev/y', type: 'c', major: 511, minor: 4 }]));
    expect((await tree.of(claim))[0]).not.toHaveProperty('pciAddress');
  });

  it('say nothing about a name that two specs of a directory define', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/x.json', spec([{ path: '/dev/gpu3' }]));
    tree.write('run-cdi/y.json', spec([{ path: '/dev/gpu4' }]));
    expect(await tree.of(claim)).toEqual([]);
  });

  it('say nothing while they are written, and nothing in another form', async () => {
    const tree = new ClaimTree();
    const texts = [spec([{ path: '/dev/gpu3' }]).slice(0, -1), YAML.slice(0, -1), YAML.slice(0, 150), '{}', '[]', '- 1\n', 'a: [\n', ''];
    for (const text of texts) {
      tree.write('run-cdi/x.yaml', text);
      expect(await tree.of(claim)).toEqual([]);
    }
    tree.write('run-cdi/x.yaml', YAML);
    expect(await tree.of(claim)).toHaveLength(1);
  });

  it('are read beside one that is too large, too complex, or a link, and each of these is told by its name', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/good.yaml', YAML);
    tree.write('run-cdi/keys.yaml', Array.from({ length: 156_644 }, (_, at) => `k${at}: 1\n`).join(''));
    tree.write('run-cdi/deep.json', `{"a":${'['.repeat(1_000)}`);
    tree.write('run-cdi/large.json', ' '.repeat(4 * 1_048_576));
    tree.link('run-cdi/link.json', 'etc-cdi');
    expect(await tree.of(claim)).toHaveLength(1);
    const problems = Object.fromEntries(
      tree.reader.problems().map(({ code, message }) => [message.split(/[/:]/).at(-2), { code, message }]),
    );
    expect(problems['keys.yaml']).toMatchObject({ code: 'too-complex', message: expect.stringContaining('more than 50000 entries') });
    expect(problems['deep.json']).toMatchObject({ code: 'too-complex', message: expect.stringContaining('32 levels deep') });
    expect(problems['large.json']).toMatchObject({ code: 'too-large' });
    expect(problems['link.json']).toMatchObject({ code: 'not-a-file', message: expect.stringContaining('symbolic link') });
    expect(tree.reader.problems()).toHaveLength(4);
  });

  it('leave out the largest files when all of them are too large together', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/z.json', spec([{ path: '/dev/gpu3' }]));
    for (let n = 0; n < 9; n += 1) tree.write(`run-cdi/${n}.json`, ' '.repeat(2_000_000));
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu3'] }]);
    expect(tree.reader.problems()).toEqual([{ code: 'too-large', message: expect.stringContaining('8.json: with the smaller files') }]);
  });

  it('are read again for a name that another claim adds', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/x.yaml', YAML);
    await expect.poll(() => tree.of(claim)).toHaveLength(1);
    expect(await tree.of(claimOf({ device: 'gpu-1', cdiDevices: ['example.com/gpu=b'] }))).toEqual([
      { by: 'cdi', deviceNodes: ['/dev/gpu1'] },
    ]);
  });
});
