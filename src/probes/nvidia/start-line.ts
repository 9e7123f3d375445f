import type { KmsgRecord } from '../../host/kernel-log/record.ts';
import { normalizePciAddress, pciAddressIn } from '../../host/pci/pci.ts';

/** What a line tells about the cause of a failed start. */
export type StartHint = 'firmware-locked' | 'needs-reset' | 'no-power';

/**
 * Lines of the driver about GPUs that it could not start, and about work that it refuses:
 * `failed`: the driver could not initialise the GPU. Old drivers name only the number of its device node.
 * `hint`: tells why. It comes before the line with the address, which it does not have itself.
 * `not-bound`: the driver refused the PCI function. `probe-failed`: the same, with a count in place of addresses.
 * `reset-required`: the driver refuses new work on some GPU until that GPU is reset.
 */
export type StartLine =
  | { readonly kind: 'failed' | 'not-bound'; readonly pciAddress?: string; readonly minor?: number; readonly text: string }
  | { readonly kind: 'hint'; readonly hint: StartHint; readonly pciAddress?: string }
  | { readonly kind: 'probe-failed'; readonly text: string }
  | { readonly kind: 'reset-required'; readonly text: string }
  | { readonly kind: 'driver-loaded' };

const FAILED = /^NVRM: .*\brm_?init_?adapter failed\b/i;
const HINTS: readonly (readonly [RegExp, StartHint])[] = [
  [/^NVRM: .*\bunexpected WPR2 already up\b/i, 'firmware-locked'],
  [/^NVRM: .*\b(?:may need|needs) to be reset\b/i, 'needs-reset'],
  [/^NVRM: .*\bdoes not have the necessary power cables connected\b/i, 'no-power'],
];
const PROBE_FAILED = /^NVRM: The NVIDIA probe routine failed for \d+ device/i;
/** The first form is that of the driver core before Linux 6.10. The second one is a record of the device. */
const NOT_BOUND = /^nvidia: probe of ([0-9a-f:.]+) failed with error -?\d+/i;
const NOT_BOUND_ON_DEVICE = /^nvidia ([0-9a-f:.]+): probe with driver nvidia failed with error -?\d+/i;
const RESET_REQUIRED = /^NVRM: .*(?:\[NV_ERR_RESET_REQUIRED\]|\bGspRmAlloc failed:.* status=0x0*62\b)/;
const LOADED = /^NVRM: loading NVIDIA UNIX /;

/** Longest text that a message repeats. */
const MAX_TEXT_LENGTH = 200;

/** Undefined for a record of another origin, and for lines about something else. */
export function parseStartLine({ origin, device, text }: Pick<KmsgRecord, 'origin' | 'device' | 'text'>): StartLine | undefined {
  if (origin !== 'kernel') return undefined;
  if (device !== undefined) return lineOfDevice(device, text);
  if (text.startsWith('nvidia: ')) return notBound(NOT_BOUND.exec(text), text);
  if (!text.startsWith('NVRM: ')) return undefined;
  if (FAILED.test(text)) return failedLine(text);
  const hint = HINTS.find(([form]) => form.test(text))?.[1];
  if (hint !== undefined) return { kind: 'hint', hint, ...addressOf(text) };
  if (PROBE_FAILED.test(text)) return { kind: 'probe-failed', text: told(text) };
  if (RESET_REQUIRED.test(text)) return { kind: 'reset-required', text: told(text) };
  return LOADED.test(text) ? { kind: 'driver-loaded' } : undefined;
}

function lineOfDevice(device: string, text: string): StartLine | undefined {
  const line = notBound(NOT_BOUND_ON_DEVICE.exec(text), text);
  return line !== undefined && 'pciAddress' in line && device === `+pci:${line.pciAddress}` ? line : undefined;
}

function notBound(match: RegExpExecArray | null, text: string): StartLine | undefined {
  const pciAddress = normalizePciAddress(match?.[1] ?? '');
  return pciAddress === undefined ? undefined : { kind: 'not-bound', pciAddress, text: told(text) };
}

/** `NVRM: GPU 0000:a1:00.0: RmInitAdapter failed! (0x62:0x40:2168)`, `NVRM: rm_init_adapter failed, device minor number 7`. */
function failedLine(text: string): StartLine | undefined {
  const minor = /\bminor number (\d{1,5})\b/i.exec(text)?.[1];
  const place = { ...addressOf(text), ...(minor !== undefined && { minor: Number(minor) }) };
  // The line of old drivers without any name comes together with one that has a number.
  return Object.keys(place).length === 0 ? undefined : { kind: 'failed', ...place, text: told(text) };
}

function addressOf(text: string): { readonly pciAddress?: string } {
  const pciAddress = pciAddressIn(text);
  return pciAddress === undefined ? {} : { pciAddress };
}

/** The text without the name of the driver and of the GPU: what follows is in the message of a device. */
const told = (text: string): string =>
  text
    .replace(/^NVRM: (?:GPU ?(?:at )?(?:PCI:)?[0-9a-f:.]*: )?/i, '')
    .trim()
    .slice(0, MAX_TEXT_LENGTH);
