import { farthestTexts } from '../../board/farthest.ts';
import { nameOf } from '../../board/name.ts';
import { sharedReading } from '../../board/readings.ts';
import type { Allocation } from '../../model/allocation.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';
import type { Device } from '../../model/device.ts';
import type { ActiveCondition, PendingCondition } from '../../model/health.ts';
import { pendingTrouble, phasesOf } from '../../model/health.ts';
import type { AllocationState, DeviceState } from '../../model/snapshot.ts';
import { widthOf } from '../terminal/frame.ts';
import { textTable } from '../text-table.ts';
import { fittedTable } from './fitted-table.ts';

/** The part of a snapshot that the table shows. */
export interface TableData {
  readonly devices: readonly TableDevice[];
  readonly allocations: readonly TableAllocation[];
  readonly localities?: readonly ContainerLocality[];
}
type TableDevice = Omit<DeviceState, 'processes' | 'readAtMs'>;
type TableAllocation = Pick<AllocationState, 'allocation' | 'devices' | 'unresolved'>;

/** What the table has beside the usual columns. */
export interface TableForm {
  /** All holders, and where the device is. */
  readonly isWide: boolean;
  readonly by: 'device' | 'pod';
  /** Cells of the terminal; absent where the output is no terminal. */
  readonly columns?: number | undefined;
}

const USUAL: TableForm = { isWide: false, by: 'device' };

/**
 * Formats one line per device, and below them the allocations without a device. On a terminal that is too narrow for all, a device has its
 * short name, and long cells are cut.
 */
export function snapshotTable(snapshot: TableData, form: TableForm = USUAL): string {
  const heads = [...(form.by === 'pod' ? POD_HEADS : []), 'DEVICE', ...HEADS, ...(form.by === 'pod' ? [] : ['HOLDER'])];
  const all = form.isWide ? [...heads, ...WIDE_HEADS] : heads;
  const devices = fitting(
    all,
    (nameOf) => (form.by === 'pod' ? podRows(snapshot, form, nameOf) : deviceRows(snapshot, form, nameOf)),
    form,
  );
  const unresolved = snapshot.allocations.filter(({ unresolved }) => unresolved !== undefined);
  if (unresolved.length === 0) return devices;
  return `${devices}\n${textTable([['HOLDER', 'RESOURCE', 'DEVICE ID', 'WHY IT HAS NO DEVICE'], ...unresolved.map(unresolvedRow)])}`;
}

type NameOf = (device: Device) => string;
type Rows = readonly (readonly string[])[];

function fitting(heads: readonly string[], rowsOf: (nameOf: NameOf) => Rows, { columns, isWide }: TableForm): string {
  const full = textTable([heads, ...rowsOf(({ id }) => id)]);
  if (columns === undefined || full.split('\n').every((line) => widthOf(line) <= columns)) return full;
  const ranked = heads.map((head) => ({ head, ...(ROOM[head] ?? { rank: heads.length }) }));
  const idAt = heads.indexOf('DEVICE');
  const ids = rowsOf(({ id }) => id).map((row) => row[idAt] ?? '');
  // The id follows where the short name is another one.
  const rows = rowsOf(nameOf).map((row, at) => [...row, row[idAt] === ids[at] ? '' : (ids[at] ?? '')]);
  return fittedTable([...ranked, { head: 'ID', rank: heads.length + 1 }], rows, columns, isWide);
}

/** The least cells of columns that may be cut, and what gives way first: the highest rank. */
const ROOM: Readonly<Record<string, { readonly rank: number; readonly least?: number }>> = {
  DEVICE: { rank: 0 },
  POD: { rank: 1, least: 16 },
  HEALTH: { rank: 1, least: 20 },
  HOLDER: { rank: 2, least: 16 },
  RESOURCE: { rank: 4, least: 12 },
  UTIL: { rank: 3 },
  MEM: { rank: 3 },
  TEMP: { rank: 3 },
  POWER: { rank: 3 },
  KIND: { rank: 5 },
  MODEL: { rank: 6, least: 12 },
};

const POD_HEADS = ['POD', 'CONTAINER', 'RESOURCE'];
const HEADS = ['KIND', 'MODEL', 'HEALTH', 'UTIL', 'MEM', 'TEMP', 'POWER'];
const WIDE_HEADS = ['PARENT', 'NUMA', 'PCI', 'DRIVER', 'FIRMWARE', 'FARTHEST'];

/** For each device, the farthest one that its container holds too. */
function farthestOf({ devices, localities = [] }: TableData): ReadonlyMap<string, string> {
  const names = new Map(devices.map(({ key, device }) => [key, nameOf(device)]));
  return farthestTexts(localities, (key) => names.get(key) ?? key);
}

function deviceRows(data: TableData, { isWide }: TableForm, nameOf: NameOf): Rows {
  const { devices } = data;
  const farthest = farthestOf(data);
  return devices.map((state) => {
    const names = [...new Set(state.holders.map(holderName))];
    const holders = isWide ? names.join(' ') : holderCell(names);
    return [nameOf(state.device), ...deviceCells(state), holders, ...(isWide ? wideCells(state, farthest) : [])];
  });
}

/** One row for each container and device of it, in the order of the pods' names. */
function podRows(data: TableData, { isWide }: TableForm, nameOf: NameOf): Rows {
  const { devices, allocations } = data;
  const farthest = farthestOf(data);
  const states = new Map(devices.map((state) => [state.key, state]));
  const rows = allocations.flatMap(({ allocation, devices: keys }) =>
    keys.map((key) => ({ allocation, state: states.get(key) })).filter((row): row is HeldRow => row.state !== undefined),
  );
  const order = ({ allocation, state }: HeldRow): string => [holderName(allocation), allocation.resource, state.key].join('\u0000');
  const sorted = rows.map((row) => ({ row, at: order(row) })).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return sorted.map(({ row: { allocation, state } }) => [
    `${allocation.namespace}/${allocation.pod}`,
    allocation.container,
    allocation.resource,
    nameOf(state.device),
    ...deviceCells(state),
    ...(isWide ? wideCells(state, farthest) : []),
  ]);
}

interface HeldRow {
  readonly allocation: Allocation;
  readonly state: TableDevice;
}

function deviceCells(state: TableDevice): string[] {
  const { device } = state;
  return [
    device.kind,
    device.model ?? '',
    healthCell(state),
    show(sharedReading(state, 'busy')?.value, (ratio) => `${Math.round(ratio * 100)}%`),
    memoryCell(state),
    show(sharedReading(state, 'temperature')?.value, (celsius) => `${Math.round(celsius)}°C`),
    powerCell(state),
  ];
}

function wideCells({ key, device }: TableDevice, farthest: ReadonlyMap<string, string>): string[] {
  const { parent = '', numaNode, pciAddress = '', driver = '', firmware = '' } = device;
  return [parent, numaNode === undefined ? '' : String(numaNode), pciAddress, driver, firmware, farthest.get(key) ?? ''];
}

function unresolvedRow({ allocation, unresolved }: TableAllocation): string[] {
  return [holderName(allocation), allocation.resource, allocation.deviceId, unresolved ?? ''];
}

function healthCell(state: TableDevice): string {
  const { verdict } = state;
  const [first, ...others] = pendingTrouble(verdict);
  const waiting = first === undefined ? [] : [`${withStanding(first)}${others.length === 0 ? '' : ` +${others.length}`}`];
  const unchecked = verdict.unchecked === undefined ? [] : [`not checked: ${verdict.unchecked.join(' ')}`];
  const probation = verdict.probation === undefined ? [] : ['on probation'];
  const reasons = [...leadingReason(state), ...waiting, ...unchecked, ...probation];
  return reasons.length === 0 ? verdict.state : `${verdict.state} (${reasons.join(', ')})`;
}

function leadingReason({ verdict, missingSinceMs, stale }: TableDevice): readonly string[] {
  if (missingSinceMs !== undefined) return ['missing'];
  if (stale) return ['stale'];
  const [first] = verdict.conditions;
  return verdict.state === 'healthy' || first === undefined ? [] : [withStanding(first)];
}

/** Returns `PortDown` or, for example, `PortDown pending`. */
function withStanding(condition: ActiveCondition | PendingCondition): string {
  return [condition.type, ...phasesOf(condition)].join(' ');
}

function memoryCell(state: TableDevice): string {
  const { value: used, limit: total } = sharedReading(state, 'memory') ?? {};
  return show(used, (bytes) => (total === undefined ? `${gibibytes(bytes)} GiB` : `${gibibytes(bytes)}/${gibibytes(total)} GiB`));
}

function powerCell(state: TableDevice): string {
  const { value: drawn, limit } = sharedReading(state, 'power') ?? {};
  return show(drawn, (watts) => (limit === undefined ? `${Math.round(watts)}W` : `${Math.round(watts)}/${Math.round(limit)}W`));
}

function holderCell(names: readonly string[]): string {
  const [first, ...others] = names;
  if (first === undefined) return '';
  return others.length === 0 ? first : `${first} +${others.length}`;
}

function holderName({ namespace, pod, container }: Allocation): string {
  return `${namespace}/${pod}/${container}`;
}

function show(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '' : format(value);
}

function gibibytes(bytes: number): string {
  const amount = bytes / 2 ** 30;
  return amount !== 0 && amount < 10 ? amount.toFixed(1) : String(Math.round(amount));
}
