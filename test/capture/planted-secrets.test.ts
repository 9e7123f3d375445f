import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { packCapture } from '../../src/capture/archive.ts';
import { type CapturedCommand, type CapturedRead, CHECKPOINT, type Entry, fileEntry } from '../../src/capture/format.ts';
import { Pseudonyms } from '../../src/capture/redaction/pseudonyms.ts';
import { redactCapture } from '../../src/capture/redaction/redact.ts';
import { AllocatableResourcesResponse, ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { captureOf } from '../support/one-capture.ts';

const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
const known = families.flatMap((family) => family.known ?? []);

const digest = (name: string): string => createHash('sha256').update(name).digest('hex');
const many = (kind: string, count: number, make: (hex: string) => string): string[] =>
  Array.from({ length: count }, (_, index) => make(digest(`${kind} ${index}`)));
const pairs = (hex: string, separator: string): string => (hex.match(/../g) ?? []).join(separator);
const upper = (hex: string): string => hex.toUpperCase();
const decimal = (hex: string): string =>
  String(BigInt(`0x${hex}`))
    .padStart(20, '1')
    .slice(0, 19);
const uuid = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');

const digits = (hex: string): string => hex.replaceAll(/\D/g, '');

const SERIALS = [
  ...many('serial', 3, (hex) => `S${upper(hex.slice(0, 4))}NX0R${upper(hex.slice(4, 10))}`),
  ...many('decimal serial', 3, (hex) => decimal(hex.slice(0, 16)).slice(0, 13)),
  ...many('64-bit serial', 2, (hex) => decimal(`0${hex.slice(0, 15)}`)),
  ...many('hexadecimal serial', 2, (hex) => `d${hex.slice(0, 14)}7`),
  // They have the form of names of the kernel.
  ...many('serial like a name', 3, (hex) => `sn12ab34cd${digits(hex).slice(0, 4)}`),
  ...many('serial like an interface', 3, (hex) => `en${digits(hex).slice(0, 4)}sn${digits(hex).slice(4, 8)}`),
  ...many('serial of a word and a number', 2, (hex) => `wd${digits(hex).slice(0, 6)}`),
  ...many('serial between letters', 2, (hex) => `wd${digits(hex).slice(0, 3)}ezrz${digits(hex).slice(3, 5)}`),
  ...many('serial in parts', 2, (hex) => `01P4-HL${digits(hex).slice(0, 4)}A0-18-U4V${digits(hex).slice(4, 7)}`),
];
/** A serial number in the name of an NVMe drive: ASCII in hexadecimal. */
const IN_WWID = many('drive', 3, (hex) => `PHLJ${upper(hex.slice(0, 8))}P4`);
const EUIS = [...many('eui', 2, (hex) => pairs(hex.slice(0, 16), ' ')), ...many('nguid', 2, (hex) => hex.slice(0, 32))];
const GUIDS = many('guid', 3, (hex) => (hex.slice(0, 16).match(/..../g) ?? []).join(':'));
const MACS = many('mac', 4, (hex) => pairs(`02${hex.slice(0, 10)}`, ':'));
const UUIDS = many('uuid', 4, uuid);
const IPS = [
  ...many('ipv4', 3, (hex) =>
    [172, 16, 0, 2].map((part, at) => part + (Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16) % 80)).join('.'),
  ),
  ...many('ipv6', 2, (hex) => `2001:db8:${hex.slice(0, 4)}:${hex.slice(4, 8)}::${hex.slice(8, 12)}`),
];
const HOSTS = many('host', 4, (hex) => `train-${hex.slice(0, 6)}.corp.acme-${hex.slice(6, 10)}.example`);
const TOKENS = [
  ...many('github', 3, (hex) => `ghp_${hex.slice(0, 18)}${upper(hex.slice(18, 36))}`),
  ...many('aws', 2, (hex) => `AKIA${upper(hex.slice(0, 16))}`),
  ...many('jwt', 2, (hex) => `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(hex).toString('base64url').slice(0, 40)}`),
  ...many('huggingface', 2, (hex) => `hf_${hex.slice(0, 34)}`),
];
const KEYS = many('key', 4, (hex) =>
  Buffer.from(hex + hex, 'hex')
    .toString('base64')
    .slice(0, 60),
);
const PASSWORDS = many('password', 4, (hex) => `Xq7!${hex.slice(0, 5)}#Zt${upper(hex.slice(5, 9))}`);
const NAMES = many('name', 8, (hex) => `llm-${hex.slice(0, 6)}-prod`);
const SECRETS = [
  ...SERIALS,
  ...IN_WWID,
  ...EUIS,
  ...GUIDS,
  ...MACS,
  ...UUIDS,
  ...IPS,
  ...HOSTS,
  ...TOKENS,
  ...KEYS,
  ...PASSWORDS,
  ...NAMES,
];

/** All texts in which a secret could still be read. */
function forms(secret: string): readonly string[] {
  const plain = secret.replaceAll(/[:\-. ]/g, '');
  const isHex = /^[0-9a-f]+$/i.test(plain) && plain.length % 2 === 0;
  const separated = isHex ? [':', '-', ' ', '.'].map((separator) => pairs(plain, separator)) : [];
  const reversed = isHex ? [(plain.match(/../g) ?? []).reverse().join(''), pairs(plain.replaceAll(/(..)(..)/g, '$2$1'), '')] : [];
  const texts = [secret, plain, ...separated, ...reversed].flatMap((text) => [text, text.toLowerCase(), text.toUpperCase()]);
  const bytes = [Buffer.from(secret), Buffer.from(plain), ...(isHex ? [Buffer.from(plain, 'hex')] : [])];
  const encoded = bytes.flatMap((one) => {
    const swapped = Buffer.from(one.subarray(0, one.length - (one.length % 2))).swap16();
    const hex = [one.toString('hex'), swapped.toString('hex'), Buffer.from(one).reverse().toString('hex')];
    // In base64 a text has another form at each of three positions. The characters at its ends depend on its neighbours.
    const base64 = [0, 1, 2].map((shift) => {
      const text = Buffer.concat([Buffer.alloc(shift), one])
        .toString('base64')
        .replace(/=+$/, '');
      return text.slice(shift === 0 ? 0 : shift + 1, text.length - 1);
    });
    return [...hex, ...hex.map(upper), ...base64];
  });
  return [...new Set([...texts, ...encoded])].filter((text) => text.length >= 8);
}

const text = (value: string): Uint8Array => Buffer.from(value);
const base64 = (value: Uint8Array | string): string => Buffer.from(value).toString('base64');

/** One value of each kind, `at` its position. */
const pick = (values: readonly string[], at: number): string => values[at % values.length] as string;

/** Files of one machine: each secret stands wherever a value of its kind can stand. */
function files(): Record<string, Entry> {
  const found: Record<string, Entry> = {};
  const put = (path: string, content: string): void => {
    found[path] = fileEntry(text(content));
  };
  for (const [at, serial] of SERIALS.entries()) {
    const board = `sys/devices/pci0000:00/0000:${String(10 + at)}:00.0`;
    for (const name of ['serial', 'serial_number', 'board_serial', 'serial_num', 'unique_id', 'node_desc', 'vpd', 'of_unknown', 'info'])
      put(`${board}/${name}`, `${serial}\n`);
    put(`${board}/ve/ve0/serial`, serial);
    put(`${board}/kfd/properties`, `cpu_cores_count 0\nunique_id ${decimal('0123456789abcdef')}\nserial_number ${serial}\n`);
  }
  for (const [at, serial] of IN_WWID.entries()) {
    const drive = `sys/devices/pci0000:00/0000:5${at}:00.0/nvme/nvme${at}`;
    const hex = Buffer.from(serial.padEnd(20)).toString('hex');
    put(`${drive}/serial`, serial.padEnd(20));
    put(`${drive}/subsysnqn`, `nqn.2014-08.org.nvmexpress:144d144d${serial}SAMSUNG MZ\n`);
    put(`${drive}/nvme${at}n1/wwid`, `nvme.144d-${hex}-${Buffer.from('SAMSUNG MZ').toString('hex')}-00000001\n`);
    put(`${drive}/nvme${at}n1/eui`, `${pick(EUIS, at)}\n`);
    put(`${drive}/nvme${at}n1/nguid`, `${uuid(EUIS[2 + (at % 2)] as string)}\n`);
    put(`${drive}/nvme${at}c${at}n2/wwid`, `eui.${(EUIS[at % 2] as string).replaceAll(' ', '')}\n`);
    put(`${drive}/nvme${at}n3/uuid`, `${pick(UUIDS, at)}\n`);
    put(`${drive}/address`, `traddr=${pick(IPS, at)},trsvcid=4420,host_traddr=${pick(IPS, at + 3)}\n`);
    put(`${drive}/hostnqn`, `nqn.2014-08.org.nvmexpress:uuid:${pick(UUIDS, at + 1)}\n`);
    put(`dev/disk/by-id/nvme-SAMSUNG_MZ_${serial}`, '');
    put(`dev/disk/by-id/wwn-0x${pick(GUIDS, at).replaceAll(':', '')}`, '');
  }
  for (const [at, guid] of GUIDS.entries()) {
    const hca = `sys/devices/pci0000:00/0000:6${at}:00.0/infiniband/mlx5_${at}`;
    put(`${hca}/node_guid`, guid);
    put(`${hca}/sys_image_guid`, guid);
    put(`${hca}/node_desc`, `${pick(HOSTS, at)} mlx5_${at}\n`);
    put(`${hca}/ports/1/gids/0`, `fe80:0000:0000:0000:${guid}\n`);
    put(
      `${hca}/ports/1/gids/1`,
      `0000:0000:0000:0000:0000:ffff:${Buffer.from(GUIDS[0] as string)
        .toString('hex')
        .slice(0, 4)}:0a14\n`,
    );
  }
  for (const [at, mac] of MACS.entries()) {
    const name = pick(NAMES, at).slice(0, 15);
    put(`sys/devices/pci0000:00/0000:7${at}:00.0/net/${name}/address`, `${mac}\n`);
    put(`sys/devices/pci0000:00/0000:7${at}:00.0/net/${name}/ifalias`, `to ${pick(HOSTS, at)} ${pick(PASSWORDS, at)}\n`);
    put(`sys/devices/pci0000:00/0000:7${at}:00.0/net/enx${mac.replaceAll(':', '')}/phys_switch_id`, `${mac.replaceAll(':', '')}\n`);
    put(`sys/devices/pci0000:00/0000:7${at}:00.0/net/${name}/uevent`, `INTERFACE=${name}\nIFINDEX=${at}\n`);
  }
  for (const [at, secret] of [...TOKENS, ...KEYS, ...PASSWORDS, ...NAMES, ...HOSTS].entries()) {
    const pid = 4_000 + at;
    put(`proc/${pid}/comm`, `${secret.slice(0, 15)}\n`);
    put(`proc/${pid}/stat`, `${pid} (${secret.slice(0, 15)}) S 1 1 1 0 -1 4194560 1 0\n`);
    put(`proc/${pid}/status`, `Name:\t${secret.slice(0, 15)}\nTgid:\t${pid}\nGroups:\t${secret}\n`);
    put(`proc/${pid}/cmdline`, `python\0train.py\0--token=${secret}\0--host\0${pick(HOSTS, at)}\0`);
    put(`proc/${pid}/environ`, `HF_TOKEN=${secret}\0DB=postgres://u:${secret}@${pick(IPS, at)}/x\0`);
    put(`proc/${pid}/cgroup`, `0::/system.slice/${secret.replaceAll('/', '')}.service/pod${pick(UUIDS, at)}\n`);
    put(`proc/${pid}/fdinfo/3`, `pos:\t0\ndrm-driver:\txe\ndrm-client-name:\t${secret}\ndrm-total-vram0:\t4 KiB\n`);
    put(`sys/class/other/thing${at}/vendor_data`, secret);
  }
  put('proc/driver/nvidia/gpus/0000:3b:00.0/information', `Model: \t NVIDIA A100\nGPU UUID: \t GPU-${UUIDS[0]}\n`);
  const everything = SECRETS.map((secret, at) => [`KEY${at}`, secret] as const);
  const response = base64(JSON.stringify(Object.fromEntries(everything)));
  put(
    CHECKPOINT,
    JSON.stringify({
      Data: {
        PodDeviceEntries: [
          {
            PodUID: UUIDS[0],
            ContainerName: NAMES[0],
            ResourceName: 'a.b/c',
            DeviceIDs: { '0': [`GPU-${UUIDS[1]}`, ...SERIALS] },
            AllocResp: response,
          },
        ],
        RegisteredDevices: { 'a.b/c': SECRETS },
      },
      Checksum: 1_234_567_890_123,
    }),
  );
  const edits = { env: everything.map((pair) => pair.join('=')), mounts: [{ hostPath: `/srv/${NAMES[1]}` }], hooks: [{ args: SECRETS }] };
  const spec = {
    cdiVersion: '0.6.0',
    kind: 'k8s.gpu.nvidia.com/claim',
    annotations: Object.fromEntries(everything),
    containerEdits: edits,
  };
  put(
    `cdi0/k8s.gpu.nvidia.com-claim_${UUIDS[2]}-${NAMES[2]}.json`,
    JSON.stringify({ ...spec, devices: [{ name: `${UUIDS[2]}-gpu-0`, containerEdits: edits }] }),
  );
  const device = {
    ...{ driver: 'gpu.nvidia.com', pool: HOSTS[0], name: `gpu-${SERIALS[0]}` },
    attributes: {
      uuid: { string: `GPU-${UUIDS[3]}` },
      'acme.example/owner': { string: NAMES[3] },
      serial: { string: SERIALS[1] },
      type: { string: 'gpu' },
    },
    networkData: { interfaceName: 'net1', hardwareAddress: MACS[0], ips: IPS },
  };
  const metadata = { namespace: NAMES[4], name: NAMES[5], uid: UUIDS[1], generation: 1, annotations: Object.fromEntries(everything) };
  const object = {
    apiVersion: 'metadata.resource.k8s.io/v1alpha1',
    kind: 'DeviceMetadata',
    metadata,
    requests: [{ name: NAMES[6], devices: [device] }],
  };
  put(`claims/gpu.nvidia.com/dra-device-metadata/${NAMES[4]}_${NAMES[5]}/${NAMES[6]}/metadata.json`, JSON.stringify(object));
  // What a symbolic link can lead to.
  const pem = `-----BEGIN PRIVATE KEY-----\n${KEYS.join('\n')}\n-----END PRIVATE KEY-----\n`;
  put('claims/gpu.nvidia.com/dra-device-metadata/ns_key/r/metadata.json', pem);
  put(
    'claims/gpu.nvidia.com/dra-device-metadata/ns_shadow/r/metadata.json',
    PASSWORDS.map((word) => `root:$6$${word}:19000:0:::\n`).join(''),
  );
  put('claims/gpu.nvidia.com/dra-device-metadata/ns_json/r/metadata.json', JSON.stringify({ token: TOKENS, key: KEYS }));
  put('cdi0/other.json', pem);
  return found;
}

function kernelLog(): string[] {
  const line = (at: number, words: string): string =>
    `4,${at},${at}000,-,caller=T${at};${words}\n SUBSYSTEM=${SERIALS[0]}\n DEVICE=+usb:${SERIALS[1]}`;
  return SECRETS.flatMap((secret, at) => [
    line(10 * at, `usb 1-1: SerialNumber: ${secret}`),
    line(10 * at + 1, `nfs: server ${secret} not responding`),
    line(10 * at + 2, `mlx5_core 0000:3b:00.0: infiniband rdma ${secret}`),
    line(10 * at + 3, `NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=${secret.slice(0, 15)}, Ch 8`),
    line(10 * at + 4, `${secret.slice(0, 15)}[12]: segfault at 0 ip 0 sp 0 error 4 in libnccl.so.2[7f+1]`),
    line(10 * at + 5, `pcieport 0000:00:01.0: AER: nvidia fpga ${secret}`),
    line(10 * at + 6, `NVRM: GPU at PCI:0000:3b:00: GPU-${pick(UUIDS, at)}`),
    line(10 * at + 7, `NVRM: some new sentence about ${secret}`),
    line(10 * at + 8, `audit: type=1400 comm="${secret}" exe="/srv/${secret}"`),
  ]);
}

function read(): Partial<CapturedRead> {
  const podResources = NAMES.map((name, at) => ({
    ...{ namespace: pick(NAMES, at + 1), name: `${name}-0` },
    containers: [
      {
        name: pick(NAMES, at + 2),
        devices: [
          { resourceName: 'a.b/c', deviceIds: [`GPU-${pick(UUIDS, at)}`, pick(SERIALS, at), `eui.${pick(EUIS, at).replaceAll(' ', '')}`] },
        ],
        dynamicResources: [
          {
            ...{ claimName: pick(NAMES, at + 3), claimNamespace: pick(NAMES, at + 1) },
            claimResources: [
              {
                driverName: 'gpu.nvidia.com',
                poolName: pick(HOSTS, at),
                deviceName: pick(SERIALS, at),
                cdiDevices: [{ name: `a.b/c=${pick(UUIDS, at)}` }],
              },
            ],
          },
        ],
      },
    ],
  }));
  const list = ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources })).finish();
  const allocatable = AllocatableResourcesResponse.fromPartial({
    devices: [{ resourceName: 'a.b/c', deviceIds: [...SERIALS, ...GUIDS, ...MACS] }],
  });
  const gpu = (at: number): string =>
    `<gpu id="00000000:3B:00.0"><product_name>NVIDIA H100</product_name><serial>${pick(SERIALS, at)}</serial><uuid>GPU-${pick(UUIDS, at)}</uuid>` +
    `<!-- ${pick(SECRETS, at)} --><${pick(TOKENS, at)}>${pick(SECRETS, at)}</${pick(TOKENS, at)}><a ${pick(TOKENS, at)} <b>1 < ${pick(SECRETS, at)}</b>` +
    `<board_id>${pick(SERIALS, at + 1)}</board_id><fabric><cluster_uuid>${pick(UUIDS, at + 1)}</cluster_uuid></fabric><platform_info>` +
    `<chassis_serial_number>${pick(SERIALS, at + 2)}</chassis_serial_number><gpu_fabric_guid>0x${pick(GUIDS, at).replaceAll(':', '')}</gpu_fabric_guid>` +
    `</platform_info><new_element>${pick(SECRETS, at)}</new_element><processes><process_info><pid>7</pid><process_name>/srv/${pick(NAMES, at)}/python ` +
    `--token=${pick(TOKENS, at)}</process_name></process_info></processes></gpu>`;
  const command = (program: string, stdout: string, args: readonly string[] = []): CapturedCommand => ({
    program,
    args,
    stdout,
    stderr: `${program}: ${SECRETS.join(' ')}`,
    exitCode: 0,
  });
  const memory = (value: string): CapturedRead['library'][number]['memory'] => [
    { at: 1, before: base64(Buffer.alloc(64)), after: base64(Buffer.concat([text(value), Buffer.alloc(8)])) },
  ];
  const pathed = [...SERIALS, ...UUIDS, ...MACS.map((mac) => mac.replaceAll(':', '')), ...TOKENS, ...HOSTS].map(
    (secret) => `sys/class/any/${secret}`,
  );
  const named = pathed.flatMap((path): [string, Entry][] => [
    [path, { directory: true }],
    [`${path}-link`, { link: `../${path.split('/').at(-1)}` }],
    [`${path}.error`, { error: 'EIO' }],
  ]);
  return {
    tree: { ...files(), ...Object.fromEntries(named) },
    kernelLog: kernelLog(),
    commands: [
      command(
        `/srv/${NAMES[0]}/nvidia-smi`,
        `<?xml version="1.0" ?>\n<nvidia_smi_log>${SECRETS.map((_, at) => gpu(at)).join('')}</nvidia_smi_log>\n${SECRETS.join('\n')}`,
      ),
      command('nvidia-smi', `GPU 0: NVIDIA A100 (UUID: GPU-${UUIDS[0]})\n${SECRETS.join('\n')}`, ['-L']),
      command(
        'hl-smi',
        SERIALS.map((serial) => `0000:b3:00.0, ${serial}, HL-325L, 1.22.1, 131072 MiB, 672 MiB, 226 W, 850 W, 36 C, 0 %`).join('\n'),
      ),
      command(
        'neuron-ls',
        JSON.stringify(SECRETS.map((secret) => ({ neuron_device: 0, bdf: '00:1e.0', nc_count: 2, owner: secret, [secret]: 1 }))),
      ),
      command(
        'ip',
        MACS.map(
          (mac, at) =>
            `5: ${pick(NAMES, at).slice(0, 15)}: <UP> mtu 1500\n    link/ether ${mac} brd ff:ff:ff:ff:ff:ff\n    alias ${pick(HOSTS, at)}\n    altname enx${mac.replaceAll(':', '')}\n    inet6 ${IPS[3]}/64`,
        ).join('\n'),
        ['link', 'show', 'dev', (NAMES[0] as string).slice(0, 15)],
      ),
      command('vendor-tool', SECRETS.join('\n'), SECRETS),
    ],
    library: [
      ...SECRETS.map((secret) => ({
        symbol: 'nvmlDeviceGetSerial',
        types: 'hpu',
        values: ['1', '', '30'],
        code: 0,
        memory: memory(secret),
      })),
      ...UUIDS.map((one) => ({
        symbol: 'nvmlDeviceGetUUID',
        types: 'hpu',
        values: ['1', '', '96'],
        code: 0,
        memory: memory(`GPU-${one}`),
      })),
      ...UUIDS.map((one) => ({
        ...{ symbol: 'nvmlDeviceGetGpuFabricInfoV', types: 'hp', values: ['1', ''], code: 0 },
        memory: [
          {
            at: 1,
            before: base64(Buffer.alloc(40)),
            after: base64(Buffer.concat([Buffer.alloc(4), Buffer.from(one.replaceAll('-', ''), 'hex'), Buffer.alloc(20)])),
          },
        ],
      })),
    ],
    requests: [
      { method: '/v1.PodResourcesLister/List', answer: base64(list) },
      {
        method: '/v1.PodResourcesLister/GetAllocatableResources',
        answer: base64(AllocatableResourcesResponse.encode(allocatable).finish()),
      },
      { method: '/v1.Unknown/Get', answer: base64(SECRETS.join('\n')) },
      { method: '/v1.Unknown/List', error: { code: 2, details: `dial ${HOSTS[0]}: ${SECRETS.join(' ')}` } },
    ],
  };
}

const PAGE = [
  ...SERIALS.map((serial) => `device_info{device="nvme0",serial="${serial}",uuid="${pick(UUIDS, 0)}",node_guid="${pick(GUIDS, 1)}"} 1`),
  ...NAMES.map((name) => `container_x{namespace="${name}",pod="${name}-0",container="${name}",device="GPU-${pick(UUIDS, 1)}"} 1`),
  ...EUIS.map((eui) => `device_x{device="eui.${eui.replaceAll(' ', '')}"} 1`),
  ...IN_WWID.map((serial) => `device_x{device="nqn.2014-08.org.nvmexpress:144d144d${serial}SAMSUNG:1"} 1`),
].join('\n');

function archived(): string {
  const options = {
    ...{ 'usage.allowed-processes': NAMES.join(','), 'dra.metadata-dir': `/srv/${NAMES[0]}`, 'labels.extra': SECRETS.join(',') },
    ...{ 'probe.nvidia.smi-path': `/home/${NAMES[1]}/nvidia-smi`, 'probe.nvidia.include': SERIALS.join(',') },
  };
  const parts = {
    'join.rules': [{ resource: 'a.b/c', devices: Object.fromEntries(SERIALS.map((serial) => [serial, `GPU-${pick(UUIDS, 0)}`])) }],
    'web.users': SECRETS,
    'plugin.resources': [{ name: 'a.b/c', select: { serial: SERIALS } }],
  };
  const capture = captureOf(read(), {}, { node: HOSTS[0] as string, options, parts, page: PAGE });
  const redacted = redactCapture(capture, [HOSTS[0] as string], known, new Pseudonyms(Buffer.alloc(32, 7)));
  return gunzipSync(packCapture(redacted)).toString('latin1');
}

/** Bytes in base64 inside of the archive, decoded, as someone who searches the archive would do. */
const decoded = (all: string): string =>
  [...all.matchAll(/"([A-Za-z0-9+/]{8,}={0,2})"/g)].map(([, value = '']) => Buffer.from(value, 'base64').toString('latin1')).join('\n');

describe('an archive with names replaced', () => {
  const all = archived();
  const searched = `${all}\n${decoded(all)}`;

  it('has all sources, and at least 60 secrets were planted', () => {
    expect(SECRETS.length).toBeGreaterThanOrEqual(60);
    expect(new Set(SECRETS).size).toBe(SECRETS.length);
    expect(Object.keys(JSON.parse(all).reads[0].tree).length).toBeGreaterThan(200);
  });

  it.each(SECRETS.map((secret) => [secret]))('has nothing of %s in any form, neither in names nor in contents', (secret) => {
    expect(forms(secret).filter((form) => searched.includes(form))).toEqual([]);
  });
});
