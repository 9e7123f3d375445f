import { describe, expect, it } from 'vitest';
import { type CapturedRead, CHECKPOINT, fileEntry } from '../../src/capture/format.ts';
import { Pseudonyms } from '../../src/capture/redaction/pseudonyms.ts';
import { redactCapture } from '../../src/capture/redaction/redact.ts';
import { redactIdentifiers } from '../../src/capture/redaction/shapes.ts';
import { loadFamilies } from '../../src/config/sections.ts';
import { ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { captureOf } from '../support/one-capture.ts';

const pseudonyms = new Pseudonyms(Buffer.alloc(32));
const identified = (text: string): string =>
  redactIdentifiers(
    text,
    (value) => pseudonyms.hex(value),
    (value) => pseudonyms.token(value),
  );

describe('identifiers', () => {
  it.each([
    'GPU-5e1f0000-0000-4000-8000-000000000001',
    'kubepods-burstable-pod5e1f0000_0000_4000_8000_000000000001.slice',
    'cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope',
    'pod0123456789abcdef0123456789abcdef',
    'a088:c203:00aa:b000',
    'fe80:0000:0000:0000:a088:c203:00aa:b000',
    '0c:42:a1:12:34:56',
    'GPU Fabric GUID : 0xa088c20300aab000',
  ])('%s are replaced, in the same form', (text) => {
    const other = identified(text);
    expect(other).not.toBe(text);
    expect(other).toHaveLength(text.length);
    expect(other.replaceAll(/[0-9a-f]/gi, 'x')).toBe(text.replaceAll(/[0-9a-f]/gi, 'x'));
  });

  it.each([
    ['PCI addresses', '0000:3b:00.0 and 00000000:3B:00.0'],
    ['values that are not set', '0000:0000:0000:0000 00:00:00:00:00:00 ff:ff:ff:ff:ff:ff'],
    ['masks and counters', '0x0000000000000004 18446744073709551615'],
    ['models and firmware', 'NVIDIA H100 80GB HBM3 96.00.89.00.01 MT_0000000838'],
  ])('%s stay', (_, text) => {
    expect(identified(text)).toBe(text);
  });

  it('are equal with other separators, and in a GID of the GUID', () => {
    const digits = (text: string): string => identified(text).replaceAll(/[^0-9a-f]/g, '');
    expect(digits('5e1f0000_0000_4000_8000_000000000001')).toBe(digits('5e1f0000-0000-4000-8000-000000000001'));
    expect(identified('fe80:0000:0000:0000:a088:c203:00aa:b000')).toBe(`fe80:0000:0000:0000:${identified('a088:c203:00aa:b000')}`);
    expect(digits('a088:c203:00aa:b000')).toBe(identified('guid 0xa088c20300aab000').slice(-16));
  });
});

const known = (await loadFamilies(familyLoaders)).flatMap((family) => family.known ?? []);
const LIST = '/v1.PodResourcesLister/List';

type Redacted = Pick<CapturedRead, 'kernelLog' | 'commands'> & { readonly files: Readonly<Record<string, string>>; readonly page: string };

function redacted(
  { files = {}, page = '', ...read }: Partial<Redacted>,
  pods: readonly (readonly [namespace: string, name: string, container: string])[] = [],
): Redacted {
  const podResources = pods.map(([namespace, name, container]) => ({ namespace, name, containers: [{ name: container }] }));
  const list = ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources })).finish();
  const tree = Object.fromEntries(Object.entries(files).map(([path, text]) => [path, fileEntry(Buffer.from(text))]));
  const requests = [{ method: LIST, answer: Buffer.from(list).toString('base64') }];
  const capture = captureOf({ ...read, tree, requests }, {}, { node: 'host-of-acme', page });
  const other = redactCapture(capture, ['host-of-acme'], known);
  const texts = Object.entries(other.reads[0].tree).flatMap(([path, entry]) => ('file' in entry ? [[path, entry.file] as const] : []));
  return { ...other.reads[0], files: Object.fromEntries(texts), page: other.page };
}

describe('a redacted read', () => {
  it('has other names wherever a name of the kubelet stands, and the same for equal names', () => {
    const checkpoint = {
      Data: {
        PodDeviceEntries: [
          {
            PodUID: '5e1f0000-0000-4000-8000-000000000001',
            ContainerName: 'web',
            ResourceName: 'a.b/c',
            DeviceIDs: { '0': ['mlx5_0'] },
            AllocResp: 'U0VDUkVU',
          },
        ],
        RegisteredDevices: { 'a.b/c': ['mlx5_0'] },
      },
    };
    const page = 'x{namespace="acme",pod="acme-llm-0",container="web",device="mlx5_0"} 1\nload{kind="web"} 2\n';
    const frame = redacted({ files: { [CHECKPOINT]: JSON.stringify(checkpoint) }, page }, [['acme', 'acme-llm-0', 'web']]);
    const [, container] = /container="(ctr-[0-9a-f]{10})"/.exec(frame.page) ?? [];
    expect(frame.files[CHECKPOINT]).toContain(`"ContainerName":"${container}"`);
    expect(frame.files[CHECKPOINT]).not.toMatch(/U0VDUkVU|5e1f0000|RegisteredDevices/);
    expect(frame.page).toContain('load{kind="web"} 2');
    expect(JSON.stringify(frame)).not.toContain('acme');
  });

  it('keeps the names of programs that a family declares, as the kernel cuts them, and no other names', () => {
    const frame = redacted({
      files: { 'proc/7/comm': 'nvidia-persiste\n', 'proc/8/comm': 'nvidia-of-acme\n' },
    });
    expect(frame.files['proc/7/comm']).toBe('nvidia-persiste\n');
    expect(frame.files['proc/8/comm']).toMatch(/^p-\w+\n$/);
  });

  it('has nothing of kernel records that no probe reads, and keeps their numbers', () => {
    const { kernelLog } = redacted({
      kernelLog: [
        '6,1,10,-;usb 1-1: SerialNumber: S3CR3T',
        '4,2,20,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=secret-model, Ch 8',
        '6,3,30,-;secret-model[12]: segfault at 0 ip 0 sp 0 error 4 in libnccl.so.2[7f+1]',
      ],
    });
    expect(kernelLog[0]).toBe('6,1,10,-;-');
    expect(kernelLog[1]).toMatch(/^4,2,20,-;NVRM: Xid \(PCI:0000:3b:00\): 31, pid=7, name=p-[0-9a-f]{10}, Ch 8$/);
    expect(kernelLog[2]).toMatch(/^6,3,30,-;p-[0-9a-f]{10}\[12\]: segfault .* in libnccl\.so\.2\[7f\+1\]$/);
  });

  it('has what NVIDIA asks for of an Xid: class, channel, registers and the address of the fault', () => {
    const lines = [
      'Xid (PCI:0000:00:06): 31, pid=7, name=python, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x7fb8_589e1000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE',
      'Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x519730=0x500000f 0x519734=0x0 0x519728=0x1f81fb60 0x51972c=0x1174',
      'Xid (PCI:0000:00:06): 13, pid=7, name=python, Graphics Exception: channel 0x0000000a, Class 0000cbc0, Offset 00000510, Data 0017e2ac',
      'Xid (PCI:0000:3b:00): 31, pid=7, name=python, Ch 0000001b, engmask 00000101, intr 10000000',
    ].map((line, at) => `4,${at},10,-;NVRM: ${line}`);
    expect(redacted({ kernelLog: lines }).kernelLog).toEqual(lines);
    const named = redacted({ kernelLog: ['4,1,1,-;NVRM: Xid (PCI:0000:00:06): 45, pid=7, name=python, of sn12ab34cd56'] }).kernelLog[0];
    expect(named).toMatch(/^4,1,1,-;NVRM: Xid \(PCI:0000:00:06\): 45, pid=7, name=python, of (?!sn12ab34cd56)\w{12}$/);
  });

  it('has the records that a family understands, without names of programs', () => {
    const { kernelLog } = redacted({
      kernelLog: [
        '3,1,10,-;xe 0000:4d:00.0: [drm] device wedged, needs recovery\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4d:00.0',
        '3,2,20,-;i915 0000:03:00.0: [drm] *ERROR* GT0: Failed to initialize GPU, declaring it wedged!\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0',
        '6,3,30,-,caller=T7;[drm] Initialized xe 1.1.0 for 0000:4d:00.0 on minor 0\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4d:00.0\n NAME=S3CR3T',
        '12,4,40,-;xe 0000:4d:00.0: [drm] device wedged, needs recovery\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4d:00.0',
      ],
    });
    expect(kernelLog).toEqual([
      '3,1,10,-;xe 0000:4d:00.0: [drm] device wedged, needs recovery\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4d:00.0',
      '3,2,20,-;i915 0000:03:00.0: [drm] *ERROR* GT0: Failed to initialize GPU, declaring it wedged!\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0',
      '6,3,30,-;[drm] Initialized xe 1.1.0 for 0000:4d:00.0 on minor 0\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4d:00.0',
      '12,4,40,-;-',
    ]);
  });

  it('has only the size of a file that is not the document of its place', () => {
    const key = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n';
    const claim = 'claims/gpu.example.com/dra-device-metadata/acme_llm/r/metadata.json';
    const frame = redacted({ files: { [claim]: key, [CHECKPOINT]: key, 'cdi0/x.yaml': key } });
    expect(Object.values(frame.files)).toEqual(Array(3).fill(`not a known document, ${key.length} bytes\n`));
    expect(JSON.stringify(Object.keys(frame.files))).not.toMatch(/acme|llm|x\.yaml/);
  });

  it('has other serial numbers wherever they stand, other program names, and no host name', () => {
    const serial = '1654922000421';
    const frame = redacted({
      files: {
        'sys/devices/x/board_serial': '21320733V010\n',
        'proc/7/stat': '7 (secret model) S 1 1',
        'sys/x/motd': 'host-of-acme 21320733V010',
      },
      commands: [
        {
          program: 'nvidia-smi',
          args: [],
          stdout: `<serial>${serial}</serial><process_name>/opt/secret/model</process_name>`,
          stderr: serial,
          exitCode: 0,
        },
      ],
      page: `device_info{device="a",serial="${serial}"} 1\n`,
    });
    const all = JSON.stringify({ ...frame, files: Object.keys(frame.files).map((path) => frame.files[path]) });
    expect(all).not.toMatch(/1654922000421|21320733V010|secret|host-of-acme/);
    expect(frame.files['sys/devices/x/board_serial']).toMatch(/^\d{8}[A-Z]\d{3}\n$/);
    expect(frame.files['proc/7/stat']).toMatch(/^7 \(p-[0-9a-f]{10}\) S 1 1\n$/);
    const [, inPage] = /serial="(\d{13})"/.exec(frame.page) ?? [];
    expect(frame.commands[0]?.stderr).toBe(inPage);
  });

  it('has only the device nodes of a CDI spec', () => {
    const spec = {
      cdiVersion: '0.6.0',
      kind: 'a.b/c',
      devices: [
        {
          name: 'd',
          containerEdits: {
            env: ['TOKEN=secret'],
            deviceNodes: [{ path: '/dev/x', major: 1, minor: 3 }],
            mounts: [{ hostPath: '/secret', containerPath: '/b' }],
          },
        },
        { name: '007', containerEdits: { env: ['TOKEN=secret'] } },
      ],
    };
    const frame = redacted({ files: { 'cdi0/x.json': JSON.stringify(spec) } });
    const [path = ''] = Object.keys(frame.files);
    expect(path).toMatch(/^cdi0\/cdi-[0-9a-f]{10}\.json$/);
    expect(JSON.parse(frame.files[path] ?? '')).toEqual({
      cdiVersion: '0.6.0',
      kind: 'a.b/c',
      devices: [
        { name: 'd', containerEdits: { deviceNodes: [{ path: '/dev/x', major: 1, minor: 3 }] } },
        { name: '007', containerEdits: { env: ['CDI=redacted'] } },
      ],
    });
  });
});
