import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { ACME_WITH_LINES, acmeFiles, declaredFamily } from '../probes/declared/support.ts';
import { hardwareOf } from '../support/hardware.ts';
import { readMachine } from '../support/machine.ts';
import type { OracleFamily } from './family.ts';
import { FIRST_RECORD, LOG, ofDevice } from './kernel-log.ts';

/** A line of a driver, with what the kernel adds. */
export interface DriverLine {
  readonly text: string;
  readonly properties: string;
}

/** What the driver of one device prints. */
export interface Printer {
  /** Addresses of the functions, or ids of the devices, that such lines are about. Parts of a function have its faults. */
  readonly about: string;
  /** The condition holds, and does not hold any more. */
  readonly begins: DriverLine;
  readonly ends: DriverLine;
  /** A line that is counted. */
  readonly counts: DriverLine;
}

/** A family with its lines in the histories of the log. */
export interface LogSubject {
  readonly oracle: OracleFamily;
  readonly printers: readonly Printer[];
  /** The fatal condition that a line begins and another one ends. Absent where no line of the family does. */
  readonly condition?: string;
  /** `event` of the counter. */
  readonly event: string;
}

const NONE: DriverLine = { text: 'nothing of a driver', properties: '' };

type Machine = ReturnType<OracleFamily['machine']> & Partial<Pick<OracleFamily, 'options'>>;

function subject(
  family: DeviceFamily,
  { files, links, options = {} }: Machine,
  printers: readonly Printer[],
  event: string,
  condition?: string,
): LogSubject {
  const machine = (): Machine => ({ files: { ...files, [LOG]: FIRST_RECORD }, links });
  const oracle: OracleFamily = { family, machine, options, devices: [], faults: [], blindings: [] };
  return { oracle, printers, event, ...(condition !== undefined && { condition }) };
}

const familyOf = (name: string): Promise<DeviceFamily> => (familyLoaders[name] as () => Promise<DeviceFamily>)();

/** `sizes`: counts by the names of the simulation. */
async function simulated(name: string, sizes: Readonly<Record<string, number>>, ...more: readonly [Printer[], string, string]) {
  const family = await familyOf(name);
  return subject(family, hardwareOf(family, sizes, 30_000), ...more);
}

async function captured(
  name: string,
  machine: string,
  links: Readonly<Record<string, string>>,
  ...more: readonly [Printer[], string, string?]
) {
  const own = readMachine(`test/probes/${name}/${machine}/machine.yaml`);
  return subject(await familyOf(name), { files: own.files ?? {}, links: { ...own.links, ...links } }, ...more);
}

const onBus = (driver: string, address: string) => (text: string) => ({
  text: `${driver} ${address}: ${text}`,
  properties: ofDevice(`+pci:${address}`),
});

function mlx5(address: string): Printer {
  const line = onBus('mlx5_core', address);
  return {
    about: address,
    begins: line("poll_health:801:(pid 0): device's health compromised - reached miss count"),
    ends: line('mlx5_health_try_recover:374:(pid 77): health recovery succeeded'),
    counts: line('wait_func:1132:(pid 141181): CREATE_DCT(0x710) timeout. Will cause a leak of a command resource'),
  };
}

function ice(address: string): Printer {
  const line = onBus('ice', address);
  return {
    about: address,
    begins: line('tx_timeout recovery unsuccessful, device is in unrecoverable state.'),
    ends: line('The DDP package was successfully loaded: ICE OS Default Package version 1.3.30.0'),
    counts: line('abnormal ae_id = 0x401 bool qp=1 qp_id = 1, ae_src=5'),
  };
}

/** The driver names a drive by its controller. */
function nvme(address: string, index: number): Printer {
  const line = (text: string) => ({ text: `nvme nvme${index}: ${text}`, properties: ofDevice(`c242:${index}`, 'nvme') });
  return {
    about: address,
    begins: line('Disabling device after reset failure: -19'),
    ends: line('8/0/0 default/read/poll queues'),
    counts: line('I/O 912 QID 4 timeout, aborting'),
  };
}

function amdgpu(address: string): Printer {
  const line = onBus('amdgpu', address);
  return {
    about: address,
    begins: line('amdgpu: GPU reset end with ret = -62'),
    ends: line('amdgpu: GPU reset(1) succeeded!'),
    counts: line('amdgpu: ring gfx timeout, signaled seq=5131, emitted seq=5132'),
  };
}

function intelgpu(address: string): Printer {
  const line = onBus('xe', address);
  return {
    about: address,
    begins: line(`[drm] *ERROR* CRITICAL: Xe has declared device ${address} as wedged. IOCTLs and executions are blocked.`),
    ends: { text: `[drm] Initialized xe 1.1.0 for ${address} on minor 200`, properties: '' },
    counts: line('[drm] GT0: Timedout job: seqno=24496, lrc_seqno=24496, guc_id=0, flags=0x13 in no process [-1]'),
  };
}

/** The driver of the management function prints about the board, which is known by its user function. */
function alveo(slot: string): Printer {
  const line = onBus('xclmgmt', `${slot}.0`);
  return {
    about: `${slot}.1`,
    begins: line('health_check_cb: Card requires pci hot reset'),
    ends: line(`xclmgmt_hot_reset: Trying to reset card 0 in slot ${slot}`),
    counts: line('firewall.m.9437184 ffff8d5a0bd2e400 check_firewall: AXI Firewall 1 tripped, status: 0x80000'),
  };
}

/** The driver names a card by its function, and when it works by its node. */
function gaudi(address: string, index: number): Printer {
  const node = (text: string) => ({ text: `accel accel${index}: ${text}`, properties: ofDevice(`c261:${index}`, 'accel') });
  return {
    about: address,
    begins: onBus('habanalabs', address)('Failed to reset! Device is NOT usable'),
    ends: node(`Successfully finished resetting the ${address} device`),
    counts: node(`${address} Device heartbeat failed! PCI link is healthy`),
  };
}

/** The runtime of a program says it by the driver, which adds no device. */
const neuron = (id: string, index: number): Printer => ({
  about: id,
  begins: NONE,
  ends: NONE,
  counts: {
    text: `NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-05 hostname=ip nd-id=${index} nc-id=1 serial-num=1 action=TERMINATE_INSTANCE`,
    properties: '',
  },
});

function qat(address: string): Printer {
  const line = onBus('4xxx', address);
  return {
    about: address,
    begins: line('Heartbeat ERROR: QAT is not responding.'),
    ends: line('qat_dev0 started 8 acceleration engines'),
    counts: line('Fatal error, reset required'),
  };
}

const npu = (address: string): Printer => ({
  about: address,
  begins: NONE,
  ends: NONE,
  counts: onBus('intel_vpu', address)('[drm] *ERROR* ivpu_pm_trigger_recovery(): Recovering the NPU (reset #3)'),
});

function acme(id: string, index: number): Printer {
  const line = (text: string) => ({ text: `acme acme${index}: ${text}`, properties: ofDevice(`+acme:acme${index}`, 'acme') });
  return {
    about: id,
    begins: line('firmware dead, code 0x7: halted'),
    ends: line('ready, version 1.2'),
    counts: { text: `acme_drv warns: acme${index} queue 3 timed out (pid 77)`, properties: '' },
  };
}

const CARDS = ['0000:b3:00.0', '0000:b4:00.0'];
const cardNodes = Object.fromEntries(CARDS.map((card, at) => [`sys/dev/char/261:${at}`, `../../bus/pci/devices/${card}/accel/accel${at}`]));

/**
 * Each family with rows and its lines. The faults of NVIDIA's driver end by what a read tells, and not by a line: fault-histories.test.ts and
 * the oracle of the family have them.
 */
export const subjects: readonly LogSubject[] = [
  await simulated('amdgpu', { amdgpu: 2 }, ['0020:10:00.0', '0020:11:00.0'].map(amdgpu), 'ring-timeout', 'ResetFailed'),
  await simulated('fpga', { fpga: 2 }, ['0010:22:00'].map(alveo), 'firewall-tripped', 'HotResetNeeded'),
  await captured('gaudi', 'gaudi3-two-cards', cardNodes, CARDS.map(gaudi), 'heartbeat-lost', 'ResetFailed'),
  await simulated(
    'infiniband',
    { infiniband: 2, 'infiniband.vf': 2 },
    ['0000:10:00.0', '0000:20:00.0'].map(mlx5),
    'mlx5-command-timeout',
    'FirmwareDead',
  ),
  await captured('intelnpu', 'awake-and-asleep', {}, [npu('0000:00:0b.0')], 'recovery'),
  await captured('qat', '4xxx-with-functions', {}, [qat('0000:6b:00.0')], 'fatal-error', 'HeartbeatLost'),
  await simulated('intelgpu', { intelgpu: 2 }, ['0030:10:00.0', '0030:11:00.0'].map(intelgpu), 'job-timeout', 'Wedged'),
  await simulated('netdev', { netdev: 2 }, ['0040:10:00.0', '0040:11:00.0'].map(ice), 'irdma-queue-error', 'FirmwareDead'),
  await captured('neuron', 'trn2n-two-devices', {}, [neuron('neuron0', 0)], 'sram-reported'),
  await simulated('nvme', { nvme: 2 }, ['0050:10:00.0', '0050:11:00.0'].map(nvme), 'timeout-abort', 'ControllerFailed'),
  subject(await declaredFamily(ACME_WITH_LINES), acmeFiles(2), ['X1A0', 'X1A1'].map(acme), 'queue-timeout', 'FirmwareDead'),
];
