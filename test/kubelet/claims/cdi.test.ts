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
    tree.link('sys/dev/char/511:0', `${place}/accel/accel0`);
    tree.link('sys/class/drm/renderD128', `${place}/drm/renderD128`);
    tree.link('sys/kernel/iommu_groups/12/devices/0000:3b:00.0', place);
    const nodes = [
      { path: '/dev/x', type: 'c', major: 511, minor: 3 },
      // The library leaves a minor number out that is 0.
      { path: '/dev/x', type: 'c', major: 511 },
      { path: '/dev/x', major: 511 },
      { path: '/dev/dri/renderD128' },
      { path: '/dev/dri/renderD128', minor: 7 },
      { path: '/dev/vfio/12' },
    ];
    for (const node of nodes) {
      tree.write('run-cdi/x.json', spec([node, { path: '/dev/unknown' }]));
      expect(await tree.of(claim)).toMatchObject([{ pciAddress: '0000:3b:00.0' }]);
    }
    tree.link('sys/dev/char/511:4', 'sys/devices/pci0000:00/0000:4b:00.0/accel/accel1');
    tree.write('run-cdi/x.json', spec([nodes[0] as object, { path: '/dev/y', type: 'c', major: 511, minor: 4 }]));
    expect((await tree.of(claim))[0]).not.toHaveProperty('pciAddress');
  });

  it('give no address of a pipe, and of two nodes at one path only that of the last', async () => {
    const tree = new ClaimTree();
    tree.link('sys/dev/char/511:0', 'sys/devices/pci0000:00/0000:3b:00.0');
    tree.link('sys/dev/char/511:1', 'sys/devices/pci0000:00/0000:4b:00.0');
    tree.write('run-cdi/x.json', spec([{ path: '/dev/p', type: 'p', major: 511 }]));
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/p'] }]);
    const node = { path: '/dev/x', type: 'c', major: 511 };
    tree.write(
      'run-cdi/x.json',
      spec([
        { ...node, hostPath: '/dev/a' },
        { ...node, hostPath: '/dev/b', minor: 1 },
      ]),
    );
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/b'], pciAddress: '0000:4b:00.0' }]);
  });

  it('say nothing about a name that two specs of a directory define, and name the second one', async () => {
    const tree = new ClaimTree();
    tree.write('etc-cdi/x.json', spec([{ path: '/dev/gpu3' }]));
    tree.write('etc-cdi/y.json', spec([{ path: '/dev/gpu4' }]));
    expect(await tree.of(claim)).toEqual([]);
    const problem = { code: 'invalid', message: `${tree.root}/etc-cdi/y.json: another spec beside it has ${NAME} too` };
    expect(tree.reader.problems()).toEqual([problem]);
    // A directory before it does not help: the library refuses the name.
    tree.write('run-cdi/x.json', spec([{ path: '/dev/gpu5' }]));
    expect(await tree.of(claim)).toEqual([]);
    tree.write('etc-cdi/y.json', spec([{ path: '/dev/gpu4' }], 'b'));
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu5'] }]);
  });

  it('count beside files that runtimes leave out, of which those that they look at are told', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/good.yaml', YAML);
    const other = spec([{ path: '/dev/gpu9' }]);
    for (const name of ['a.yml', 'a.JSON', 'a.yaml.tmp', 'inner/a.json', 'folder.json/a.json']) tree.write(`run-cdi/${name}`, other);
    const faults: Readonly<Record<string, readonly [text: string, why: string]>> = {
      'newer.json': [other.replace('0.6.0', '9.0.0'), 'its version "9.0.0" is not known'],
      'older.json': [spec([{ path: '/dev/a', hostPath: '/dev/b' }]).replace('0.6.0', '0.4.0'), 'what it has needs version 0.5.0'],
      'field.json': [
        other.replace('"path"', '"place":1,"path"'),
        'the spec.devices[0].containerEdits.deviceNodes[0] has the unknown field place',
      ],
      'number.json': [
        spec([{ path: '/dev/a', major: '5' }]),
        'the spec.devices[0].containerEdits.deviceNodes[0].major is no whole number in its range',
      ],
      'name.json': [spec([{ path: '/dev/a' }], 'a/b'), '"a/b" is no name of a device'],
      'nothing.json': [spec([]), 'its device "a" changes nothing'],
      'empty.yaml': ['', 'it is empty'],
    };
    for (const [name, [text]] of Object.entries(faults)) tree.write(`run-cdi/${name}`, text);
    expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu7'] }]);
    const told = Object.entries(faults).map(([name, [, why]]) => ({ code: 'invalid', message: `${tree.root}/run-cdi/${name}: ${why}` }));
    expect(tree.reader.problems()).toEqual(told.sort((a, b) => (a.message < b.message ? -1 : 1)));
  });

  it.each(['007', '0x10', '1e3', '1.0', 'yes', '1_000'])('have a name as it stands: %s', async (name) => {
    const tree = new ClaimTree();
    tree.write('run-cdi/x.yaml', YAML.replace('name: a', `name: ${name}`));
    expect(await tree.of(claimOf({ cdiDevices: [`example.com/gpu=${name}`] }))).toHaveLength(1);
  });

  it('are the first document of a file, whatever follows, with and without an end of the last line, and with merge keys', async () => {
    const tree = new ClaimTree();
    const merged = YAML.replace('name: a', '<<: {name: a}');
    const json = spec([{ path: '/dev/gpu7' }]);
    for (const text of [YAML.slice(0, -1), `---\n${YAML}---\n[`, `${YAML}...\n]`, merged, `${json}"}]}`]) {
      tree.write('run-cdi/x.yaml', text);
      expect(await tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu7'] }]);
      expect(tree.reader.problems()).toEqual([]);
    }
  });

  it('say nothing in another form, and are told by their name', async () => {
    const tree = new ClaimTree();
    const texts = [
      spec([{ path: '/dev/gpu3' }]).slice(0, -1),
      YAML.slice(0, 150),
      '{}',
      '[]',
      '- 1\n',
      'a: [\n',
      '',
      'a: !!int 5',
      '"\\/"',
    ];
    for (const text of texts) {
      tree.write('run-cdi/x.yaml', text);
      expect(await tree.of(claim)).toEqual([]);
      expect(tree.reader.problems()).toMatchObject([{ code: 'invalid', message: expect.stringContaining('/x.yaml: ') }]);
    }
    tree.write('run-cdi/x.yaml', YAML);
    expect(await tree.of(claim)).toHaveLength(1);
    expect(tree.reader.problems()).toEqual([]);
  });

  it('say nothing, and are no problem, while they are written', async () => {
    const tree = new ClaimTree();
    let text = YAML.slice(0, 150);
    const write = (): void => {
      text += '#';
      tree.write('run-cdi/x.yaml', text);
    };
    write();
    const writer = setInterval(write, 1);
    expect(await tree.of(claim).finally(() => clearInterval(writer))).toEqual([]);
    expect(tree.reader.problems()).toEqual([]);
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
    await expect.poll(() => tree.of(claim)).toEqual([{ by: 'cdi', deviceNodes: ['/dev/gpu3'] }]);
    const told = { code: 'too-large', message: expect.stringContaining('8.json: with the smaller files') };
    expect(tree.reader.problems().filter(({ code }) => code !== 'invalid')).toEqual([told]);
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
