import type { Device, VirtualMachine } from '../model/device.ts';
import { pathBetween } from '../model/locality.ts';
import { wayText } from './ways.ts';

/** One fact about the transfers between a GPU and a network device. `stops`: it makes them impossible. `slows`: they work, but not as well as they could. */
export interface DirectReason {
  readonly effect: 'helps' | 'slows' | 'stops' | 'unknown';
  readonly text: string;
  /** The file, or the kind of source, that showed it. */
  readonly from: string;
}

export interface DirectPair {
  readonly gpu: Device;
  readonly nic: Device;
  readonly hasVerbs: boolean;
  /** Absent when no file shows it. */
  readonly virtual?: VirtualMachine | undefined;
}

/** Says what is known about transfers between a GPU and a network device that do not pass the memory of the host (GPUDirect). */
export function directReasons({ gpu, nic, hasVerbs, virtual }: DirectPair): readonly DirectReason[] {
  return [
    verbs(nic, hasVerbs),
    peerMemory(gpu),
    rootComplex(gpu, nic),
    ...translation(gpu, nic, virtual),
    ...redirection(gpu, nic, virtual),
  ];
}

/** Combines all reasons into one answer. An unknown reason never counts as good. */
export function directAnswer(reasons: readonly DirectReason[]): string {
  const has = (effect: DirectReason['effect']): boolean => reasons.some((one) => one.effect === effect);
  if (has('stops')) return 'not possible';
  if (has('unknown')) return has('slows') ? 'not known, and slowed at best' : 'not known';
  return has('slows') ? 'possible, but slowed' : 'possible';
}

const verbs = ({ id, driver = 'no driver' }: Device, hasVerbs: boolean): DirectReason =>
  hasVerbs
    ? { effect: 'helps', text: `${id} has verbs`, from: 'its class of devices in sysfs' }
    : { effect: 'stops', text: `${id} has no verbs (${driver})`, from: 'its PCI function in sysfs' };

function peerMemory({ peerMemory: memory }: Device): DirectReason {
  if (memory === undefined)
    return { effect: 'unknown', text: 'whether the driver of the GPU lets others reach its memory', from: 'nothing could be read' };
  const effect = memory.can === undefined ? 'unknown' : memory.can ? 'helps' : 'stops';
  return { effect, text: memory.why, from: memory.from };
}

function rootComplex(gpu: Device, nic: Device): DirectReason {
  const path = pathBetween(gpu, nic);
  const from = 'the PCI paths below /sys/devices';
  if (path === undefined) return { effect: 'unknown', text: 'whether both are below one root complex', from };
  const isNear = path === 'PIX' || path === 'PXB';
  return { effect: isNear ? 'helps' : 'slows', text: `the way between them is ${wayText(path)}`, from };
}

/** In a virtual machine, the IOMMU of the host decides, and the guest does not see it. */
function translation(gpu: Device, nic: Device, virtual: VirtualMachine | undefined): readonly DirectReason[] {
  if (virtual?.is === true) return [];
  return [gpu, nic].map(({ id, pciAddress = id, direct }): DirectReason => {
    const from = `/sys/bus/pci/devices/${pciAddress}/iommu_group`;
    const type = direct?.iommu;
    if (type === undefined) return { effect: 'helps', text: `no IOMMU group of ${id} is shown`, from };
    if (type === 'identity') return { effect: 'helps', text: `the IOMMU passes ${id} through (${type})`, from: `${from}/type` };
    return { effect: 'slows', text: `the IOMMU translates for ${id} (${type}): iommu=pt would pass it through`, from: `${from}/type` };
  });
}

/**
 * Bridges that send transfers between devices up to the root (ACS). On a real machine they should not. In a virtual machine the advice is
 * the reverse: the host needs ACS and ATS on, and what a guest sees of bridges is emulated. Source: the
 * troubleshooting page of the library for collectives.
 */
function redirection(gpu: Device, nic: Device, virtual: VirtualMachine | undefined): readonly DirectReason[] {
  if (virtual?.is === true) {
    const text = `this is a virtual machine (${virtual.name ?? 'no name'}): the host must have ACS on at the bridges and ATS on at the network device, which a guest cannot see`;
    return [{ effect: 'unknown', text, from: virtual.from }];
  }
  const known = new Map([gpu, nic].flatMap(({ direct }) => (direct?.bridges ?? []).map((one) => [one.address, one.redirects] as const)));
  const between = bridgesBetween(gpu, nic);
  if (between === undefined)
    return [{ effect: 'unknown', text: 'which bridges are between them', from: 'the PCI paths below /sys/devices' }];
  const redirecting = between.filter((bridge) => known.get(bridge) === true);
  const unread = between.filter((bridge) => !known.has(bridge));
  const maybeVirtual = virtual === undefined ? ', if this is no virtual machine' : '';
  const from = (bridges: readonly string[]): string => `/sys/bus/pci/devices/${bridges[0]}/config`;
  return [
    ...(redirecting.length === 0
      ? []
      : [
          {
            effect: 'slows',
            text: `ACS sends transfers up to the root at ${redirecting.join(', ')}: turn it off there${maybeVirtual}`,
            from: from(redirecting),
          } as const,
        ]),
    ...(unread.length === 0
      ? []
      : [
          {
            effect: 'unknown',
            text: `ACS at ${unread.join(', ')}: without CAP_SYS_ADMIN the file ends after 64 bytes`,
            from: from(unread),
          } as const,
        ]),
    ...(redirecting.length + unread.length > 0 || between.length === 0
      ? []
      : [{ effect: 'helps', text: `ACS sends nothing up to the root at ${between.join(', ')}`, from: from(between) } as const]),
  ];
}

/** The bridges on the way, without those above both. Undefined while a path is unknown. */
function bridgesBetween({ pciPath: a }: Device, { pciPath: b }: Device): readonly string[] | undefined {
  if (a === undefined || b === undefined) return undefined;
  const [one, other] = [a.split('/'), b.split('/')];
  const own = (path: readonly string[], than: readonly string[]): readonly string[] =>
    path.slice(0, -1).filter((bridge, at) => bridge !== than[at] && !bridge.startsWith('pci'));
  return [...own(one, other), ...own(other, one)];
}
