import type { NvlinkDetail } from './xid-line.ts';

/**
 * What an NVLink error (Xids 144 to 150) is by its unit, its subcode and its error status.
 *
 * - `own`: fault of this GPU. It needs a reset, and no other GPU is the source.
 * - `link`: the link failed. It needs a reset.
 * - `solo`: a link failed, and another error is the source if there is one.
 * - `peer`: a link failed, and the other end of it is the source.
 * - `flow`: a transfer failed, and the recovery action of the driver (Xid 154) says what is needed. It can be the consequence of another GPU.
 * - `report`: nothing is needed now; the vendor wants to hear of it.
 * - `cable`: nothing is needed now; signal and cables of the link are poor.
 * - `host`: the link is down because software or the host took it down. Nothing is needed.
 * - `ignored`: nothing is needed.
 */
export type LinkErrorKind = 'own' | 'link' | 'solo' | 'peer' | 'flow' | 'report' | 'cable' | 'host' | 'ignored';

/** The first kind of an error with several bits counts. */
const WORST: readonly LinkErrorKind[] = ['own', 'flow', 'report', 'ignored'];

interface UnitRow {
  /** Names in lines; the vendor renamed some. */
  readonly units: readonly string[];
  /** Kind by bit of the error status. An error can have several. */
  readonly bits?: Readonly<Partial<Record<LinkErrorKind, number>>>;
  /** Kind by the whole error status, for units that number their errors. */
  readonly values?: Readonly<Record<number, LinkErrorKind>>;
  /** Kind by subcode, for units whose status is always 0. */
  readonly subcodes?: Readonly<Record<number, LinkErrorKind>>;
}

/** A bit that software sets in the status of each unit. */
const BY_SOFTWARE = 0x8000_0000;

const TLW_PIPE = { ignored: 0x1, report: 0x2 + BY_SOFTWARE, own: 0x4 } as const;

/** Source: NVIDIA's catalogue of Xids, sheet of NVLink 5 errors (2025-10-29): resolution, investigation, severity, local and remote effect. */
const UNITS: readonly UnitRow[] = [
  { units: ['SAW_MVB'], bits: { report: 0x9, own: 0x12, ignored: 0x24 } },
  { units: ['RLW_CTRL'], bits: { report: BY_SOFTWARE } },
  { units: ['RLW_REMAP'], bits: { flow: 0x3f, own: 0xc0, ignored: 0x300, report: BY_SOFTWARE } },
  { units: ['RLW_RSPCOL'], bits: { ignored: 0x1, own: 0x2, report: BY_SOFTWARE } },
  { units: ['RLW_RXPIPE'], bits: { report: 0x8 + BY_SOFTWARE } },
  { units: ['RLW_SRC_TRACK'], bits: { own: 0x11, ignored: 0x2, flow: 0xc, report: BY_SOFTWARE } },
  { units: ['RLW_TAGSTATE'], bits: { ignored: 0x1_0001, own: 0x12_0002, report: BY_SOFTWARE } },
  { units: ['TLW_CTRL'], bits: TLW_PIPE },
  { units: ['TLW_RX', 'TLW_RX_PIPE0', 'TLW_RX_PIPE1', 'TLW_TX', 'TLW_TX_PIPE0', 'TLW_TX_PIPE1'], bits: TLW_PIPE },
  { units: ['TREX'], bits: { report: 0x1 + BY_SOFTWARE } },
  { units: ['NVLPW_CTRL', 'NVLPW'], bits: { report: BY_SOFTWARE } },
  { units: ['NETIR', 'NETIR_INT'], values: { 0: 'solo' } },
  { units: ['NETIR_BER_EVENT'], values: { 0: 'cable', 1: 'cable', 2: 'cable', 3: 'cable' } },
  { units: ['NETIR_MFDE_EVENT'], values: { 1: 'own', 3: 'ignored', 4: 'own', 5: 'own', 7: 'own' } },
  {
    units: ['NETIR_LINK_EVT', 'NETIR_LINK_DOWN'],
    subcodes: {
      0: 'solo',
      ...kinds('link', [1, 2, 4, 10, 15, 16, 17, 18, 22, 42, 43]),
      ...kinds('peer', [21, 32, 33, 34, 35, 36, 37]),
      ...kinds('host', [38, 40]),
    },
  },
  { units: ['MSE_WATCHDOG'], values: { 0: 'own' } },
];

function kinds(kind: LinkErrorKind, subcodes: readonly number[]): Readonly<Record<number, LinkErrorKind>> {
  return Object.fromEntries(subcodes.map((subcode) => [subcode, kind]));
}

const FATAL: ReadonlySet<LinkErrorKind | undefined> = new Set(['own', 'link', 'solo', 'peer']);

/** Undefined for what the catalogue does not have, and where the line contradicts it: the driver knows its own error best. */
export function linkErrorKind({ unit, isFatal, subcode, status }: NvlinkDetail): LinkErrorKind | undefined {
  const row = UNITS.find(({ units }) => units.includes(unit.toUpperCase()));
  if (row === undefined || subcode === undefined || status === undefined) return undefined;
  const { bits = {}, values, subcodes } = row;
  const kind = subcodes?.[subcode] ?? values?.[status] ?? WORST.find((one) => ((bits[one] ?? 0) & status) !== 0);
  return kind === 'host' || FATAL.has(kind) === isFatal ? kind : undefined;
}
