import { pciAddressIn } from '../../host/pci/pci.ts';
import type { ProblemCode } from './problems.ts';

/**
 * A fault of one GPU that a text of the driver tells. `lost`: the driver cannot reach it. `closed`: the reader has no permission to open it.
 * `inforom`: its infoROM is damaged.
 */
export interface SurplusFault {
  /** Normalized PCI address; absent when the text does not have it. */
  readonly pciAddress?: string;
  /** Number of the GPU in the order of the driver, which is that of the addresses. */
  readonly index?: number;
  readonly fault: 'lost' | 'inforom' | 'closed';
  readonly line: string;
  /** Problem code of the GPU. */
  readonly problem: ProblemCode;
}

interface Wording {
  readonly text: RegExp;
  readonly code: ProblemCode;
  /** Present when the text is about one GPU. */
  readonly fault?: SurplusFault['fault'];
}

/** Finds words in this order, whatever the blanks between them: drivers print some without. */
const words = (text: string): RegExp => new RegExp(text.replaceAll(' ', '\\s*'), 'i');

/** Every text of `nvidia-smi` in place of a document, or around it, in search order. A cut line must not be taken for another one. */
export const WORDINGS: readonly Wording[] = [
  { text: words("couldn't communicate with the NVIDIA driver"), code: 'driver-not-loaded' },
  { text: words('Driver/library version mismatch'), code: 'driver-library-mismatch' },
  { text: words('Failed to initialize NVML: Insufficient Permissions'), code: 'no-permission' },
  { text: words('Failed to initialize NVML: GPU access blocked'), code: 'no-permission' },
  { text: words('Failed to initialize NVML: Driver Not Loaded'), code: 'driver-not-loaded' },
  { text: words('Failed to initialize NVML'), code: 'driver-unreachable' },
  { text: words("couldn't find libnvidia-ml"), code: 'library-not-found' },
  { text: words('No devices were found'), code: 'no-devices' },
  { text: words('Unable to determine the device.*Insufficient Permissions'), code: 'no-permission', fault: 'closed' },
  { text: words('Unable to determine the device.*Insufficient External Power'), code: 'insufficient-power', fault: 'lost' },
  { text: words('Unable to determine the device'), code: 'gpu-unreadable', fault: 'lost' },
  { text: words('infoROM is corrupted'), code: 'inforom-corrupted', fault: 'inforom' },
];

/** The wording of a text; undefined for a text that tells no fault. */
export const wordingOf = (text: string): Wording | undefined => WORDINGS.find((wording) => wording.text.test(text));

/** `GPU3: Unknown Error`. A number with more digits is the begin of an address. */
const INDEX = /GPU ?#?(\d{1,2})(?![\da-f]|:[\da-f]{2}:)/i;

/** Faults of single GPUs in the lines around a document. */
export function surplusFaults(surplus: string): readonly SurplusFault[] {
  return surplus.split('\n').flatMap((text): SurplusFault[] => {
    const line = text.trim();
    const { fault, code } = wordingOf(line) ?? {};
    if (fault === undefined || code === undefined) return [];
    const pciAddress = pciAddressIn(line);
    const index = INDEX.exec(line)?.[1];
    // Without an address, the exit status still tells that some infoROM is damaged.
    if (pciAddress === undefined && fault === 'inforom') return [];
    const named = pciAddress !== undefined ? { pciAddress } : index === undefined ? {} : { index: Number(index) };
    return [{ ...named, fault, line, problem: code }];
  });
}
