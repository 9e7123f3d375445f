import { basename, dirname } from 'node:path';
import { defined } from '../../model/defined.ts';
import type { Tree } from '../fs/tree.ts';
import { isPciAddress } from './pci.ts';

/** State of a function's PCIe link. A field is absent when the kernel reports no value or an invalid one. */
export interface PcieLink {
  /** `D0`, `D3hot`, `unknown`, … from the kernel's memory, so the read wakes no device. */
  readonly powerState?: string;
  /** True in D3hot and D3cold. Nothing else was read then, because a read would wake the function or give invalid values. */
  readonly isAsleep: boolean;
  readonly width?: number;
  readonly widthMax?: number;
  /** 1 for 2.5 GT/s up to 6 for 64 GT/s. */
  readonly generation?: number;
  readonly generationMax?: number;
  /** Maximum of the upstream port: a x16 card in a x8 slot has its full width at x8. */
  readonly upstreamWidthMax?: number;
  readonly upstreamGenerationMax?: number;
}

export type AerSeverity = 'correctable' | 'nonfatal' | 'fatal';

/** Errors that Advanced Error Reporting counted for one function since its enumeration. */
export interface AerCounters {
  /** One entry per line of the kernel's files, in the same order, without the totals. */
  readonly errors: readonly { readonly severity: AerSeverity; readonly kind: string; readonly count: bigint }[];
  /** Messages per severity. A message can carry several errors, so this is not the sum of the lines. */
  readonly totals: Readonly<Partial<Record<AerSeverity, bigint>>>;
  /** Fatal messages that the root port directly above the card received. Absent behind a switch, because others are below that root port. */
  readonly rootPort?: { readonly address: string; readonly fatal: bigint };
}

/** Limit of kinds per file. Kernels print about 20. */
const MAX_AER_KINDS = 64;

/** PCI Express Base Specification, Link Status Register: signalling rate in GT/s of each generation. */
const GENERATIONS: Readonly<Record<string, number>> = { '2.5': 1, '5': 2, '8': 3, '16': 4, '32': 5, '64': 6 };

/** Widths of the specification. A dead device reports 63, some bridges report 255, and a function without a link reports 0. */
const WIDTHS: ReadonlySet<number> = new Set([1, 2, 4, 8, 12, 16, 32]);

/** Lanes of `current_link_width` or `max_link_width`; undefined for an invalid value. */
export function parseLinkWidth(text: string | undefined): number | undefined {
  if (text === undefined || !/^[1-9]\d*$/.test(text.trim())) return undefined;
  const width = Number(text);
  return WIDTHS.has(width) ? width : undefined;
}

/** Generation of `16.0 GT/s PCIe`, `8 GT/s` and similar text; undefined for `Unknown` and invalid text. */
export function parseLinkGeneration(text: string | undefined): number | undefined {
  const match = /^(\d+(?:\.\d+)?) GT\/s(?: PCIe)?$/.exec(text?.trim() ?? '');
  return match === null ? undefined : GENERATIONS[String(Number(match[1]))];
}

/** Parses one AER file. In each line the last word is the count and the text before it is the name, which is kept unchanged. */
export function parseAer(text: string): { readonly kinds: readonly (readonly [string, bigint])[]; readonly total?: bigint } {
  const kinds: [string, bigint][] = [];
  let total: bigint | undefined;
  for (const line of text.split('\n')) {
    const match = /^(\S(?:.*\S)?)\s+(\d{1,20})$/.exec(line.trim());
    if (match === null) continue;
    const [, name = '', count = ''] = match;
    if (name.startsWith('TOTAL_ERR')) total = BigInt(count);
    else if (kinds.length < MAX_AER_KINDS) kinds.push([name, BigInt(count)]);
  }
  return total === undefined ? { kinds } : { kinds, total };
}

/** True for a function whose link, configuration and driver files must not be read, because a read would wake it. */
export function isAsleepState(powerState: string | undefined): boolean {
  return powerState === 'D3hot' || powerState === 'D3cold';
}

/**
 * True for text of `power/runtime_status` of a device that sleeps. A device on its way to sleep or back is not touched either. A read of the
 * file wakes nothing. Source: Linux Documentation/ABI/testing/sysfs-devices-power.
 */
export function isSuspended(runtimeStatus: string | undefined): boolean {
  return /^(?:suspended|suspending|resuming)\s*(?:\0|$)/.test(runtimeStatus ?? '');
}

/** `address`: result of {@link normalizePciAddress}. Reads the power state first, and nothing else when the function sleeps. */
export function readPcieLink(sys: Tree, address: string): PcieLink {
  const directory = `bus/pci/devices/${address}`;
  const powerState = sys.text(`${directory}/power_state`);
  if (powerState !== undefined && isAsleepState(powerState)) return { powerState, isAsleep: true };
  const upstream = upstreamPortOf(sys, address);
  const above = (file: string): string | undefined => (upstream === undefined ? undefined : sys.text(`${upstream}/${file}`));
  return defined({
    powerState,
    isAsleep: false,
    width: parseLinkWidth(sys.text(`${directory}/current_link_width`)),
    widthMax: parseLinkWidth(sys.text(`${directory}/max_link_width`)),
    generation: parseLinkGeneration(sys.text(`${directory}/current_link_speed`)),
    generationMax: parseLinkGeneration(sys.text(`${directory}/max_link_speed`)),
    upstreamWidthMax: parseLinkWidth(above('max_link_width')),
    upstreamGenerationMax: parseLinkGeneration(above('max_link_speed')),
  });
}

/**
 * Reads the AER counters of one function. Empty when the kernel has none: no AER capability, most VFs, or firmware that handles AER.
 * The files come from the kernel's memory and wake no device. `slot`: the function whose link leads to the slot, for a card with a switch.
 *
 * The kernel reads no error register below a link that failed. Before 6.16 it then counts a fatal error of an endpoint at the root port
 * only; later it counts a message without a kind (Linux drivers/pci/pcie/aer.c, aer_get_device_error_info and aer_print_error).
 */
export function readAer(sys: Tree, address: string, slot = address): AerCounters {
  const errors: { severity: AerSeverity; kind: string; count: bigint }[] = [];
  const totals: Partial<Record<AerSeverity, bigint>> = {};
  for (const severity of ['correctable', 'nonfatal', 'fatal'] as const) {
    const text = sys.text(`bus/pci/devices/${address}/aer_dev_${severity}`);
    if (text === undefined) continue;
    const { kinds, total } = parseAer(text);
    for (const [kind, count] of kinds) errors.push({ severity, kind, count });
    if (total !== undefined) totals[severity] = total;
  }
  const rootPort = readRootPort(sys, address, slot);
  return { errors, totals, ...(rootPort !== undefined && { rootPort }) };
}

/** The card of a virtual function is its physical function, so the port above is read for that one only. */
function readRootPort(sys: Tree, address: string, slot: string): AerCounters['rootPort'] {
  const port = sys.link(`bus/pci/devices/${address}/physfn`) === undefined ? upstreamPortOf(sys, slot) : undefined;
  const text = port === undefined ? undefined : sys.text(`${port}/aer_rootport_total_err_fatal`);
  if (port === undefined || text === undefined || !/^\d{1,20}$/.test(text)) return undefined;
  return { address: basename(port), fatal: BigInt(text) };
}

/** Largest width that both ends of the link support; undefined when both are unknown. */
export function attainableWidth(link: PcieLink): number | undefined {
  return smaller(link.widthMax, link.upstreamWidthMax);
}

/** Highest generation that both ends of the link support; undefined when both are unknown. */
export function attainableGeneration(link: PcieLink): number | undefined {
  return smaller(link.generationMax, link.upstreamGenerationMax);
}

/**
 * Whether a function still answers. False when all 64 bytes of its configuration header are 0xff, as for a card that fell off the bus.
 * Undefined when the function sleeps or the header cannot be read.
 */
export function doesPciFunctionAnswer(sys: Tree, address: string): boolean | undefined {
  const directory = `bus/pci/devices/${address}`;
  if (isAsleepState(sys.text(`${directory}/power_state`))) return undefined;
  const header = sys.bytes(`${directory}/config`, 64);
  if (header === undefined || header.length < 64) return undefined;
  return !header.every((byte) => byte === 0xff);
}

/** Path of the bridge or root port above a function; undefined directly below the host bridge. */
function upstreamPortOf(sys: Tree, address: string): string | undefined {
  const real = sys.realpath(`bus/pci/devices/${address}`);
  if (real === undefined) return undefined;
  const parent = dirname(real);
  return isPciAddress(basename(parent)) ? parent : undefined;
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}
