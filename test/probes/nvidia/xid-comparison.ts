import { XID_TABLE, type XidRow } from '../../../src/probes/nvidia/xid-table.ts';

/** How one project treats Xids, by the lists that it documents. */
export interface XidPolicy {
  readonly project: string;
  /** What it does with the numbers of each list. */
  readonly lists: Readonly<Record<string, readonly number[]>>;
  /** What it does with every number that is in no list; absent: nothing. */
  readonly others?: string;
  readonly source: string;
}

const range = (first: number, last: number): readonly number[] => Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** Lists as documented or shipped by default; what is configured on top differs by site. */
export const XID_POLICIES: readonly XidPolicy[] = [
  {
    project: 'k8s-device-plugin',
    lists: { ignored: [13, 31, 43, 45, 68, 109] },
    others: 'out for good',
    source: 'NVIDIA/k8s-device-plugin 0.20, internal/rm/health.go; DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS change it',
  },
  {
    project: 'GKE',
    lists: { out: [48], 'node condition': [63, 64, 79, 119, 120, 123, 140] },
    source: 'GoogleCloudPlatform/container-engine-accelerators: health checker and node condition XidCriticalError; 48 is in both',
  },
  {
    project: 'DCGM',
    lists: {
      fail: [48, 64, 74, 79, 95, 119, 120, 140],
      warn: [31, 32, 38, 39, 42, 43, 54, ...range(56, 58), ...range(60, 63), 67, 73, 78, 93, 94, 121, 137],
    },
    source: 'NVIDIA/DCGM 4.6, health watches; 93 on Volta only',
  },
  {
    project: 'Azure NHC',
    lists: { fail: [48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 119, 120] },
    source: 'Azure/azurehpc-health-checks, Xids of the last two hours',
  },
  {
    project: 'GCM',
    lists: { ignored: [13, 31, 43, 45, 63, 68, 92, 109] },
    others: 'fail',
    source: 'facebookresearch/gcm, health checks',
  },
];

/** Xids about which those projects disagree most. Check these first if the defaults do not fit. */
export const XID_DISPUTED: readonly number[] = [31, 45, 63, 68, 69, 92, 94, 109, 121];

/** First steps of NVIDIA's catalogue. `none-stated`: it names none. */
const CATALOGUE: Readonly<Record<string, readonly number[]>> = {
  'contact-support': [
    ...range(1, 7),
    9,
    10,
    12,
    ...range(15, 24),
    ...range(26, 30),
    ...range(33, 36),
    42,
    47,
    ...range(49, 53),
    ...range(55, 59),
    61,
    65,
    73,
    81,
    87,
    90,
    91,
    ...range(111, 118),
    ...range(122, 125),
    138,
    142,
  ],
  'restart-app': [
    8,
    11,
    13,
    25,
    31,
    32,
    39,
    40,
    41,
    60,
    ...range(68, 72),
    75,
    76,
    77,
    80,
    ...range(82, 86),
    88,
    89,
    94,
    ...range(96, 105),
    ...range(126, 135),
    139,
  ],
  ignore: [14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152, 153, 157, 160, 161],
  'follow-cause': [45],
  reset: [46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158],
  'check-mechanicals': [54],
  'nvlink-workflow': [74, ...range(144, 150)],
  'update-software': [78],
  'restart-machine': [79],
  'restart-vm': [151],
  'follow-text': [154],
  'check-uvm': [159],
  'none-stated': [...range(162, 176)],
};
/** Actions of GPUd's catalogue (leptonai/gpud, components/accelerator/nvidia/xid). It has no entry for the other numbers. */
const GPUD: Readonly<Record<string, readonly number[]>> = {
  none: [8, 45],
  'check-app': [13, 31, 43, 94],
  reboot: [32, 38, 44, 48, 63, 64, 68, 69, 74, 79, 95, 119, 120],
  warning: [109],
  fatal: [121, 123],
  'hardware-inspection': [143],
  info: [154],
};
const actionIn = (catalogue: typeof GPUD, xid: number): string | undefined =>
  Object.entries(catalogue).find(([, xids]) => xids.includes(xid))?.[0];

/** What a project does with one Xid. `–`: nothing, or nothing that is documented. */
export function policyOn(policy: XidPolicy, xid: number): string {
  const list = Object.entries(policy.lists).find(([, xids]) => xids.includes(xid));
  return list?.[0] ?? policy.others ?? '–';
}

/** NVSentinel cordons for every action of NVIDIA's catalogue but "ignore". */
function sentinelOn(action: string): string {
  return action === 'ignore' ? '–' : action === 'none-stated' ? 'not listed' : 'fatal';
}

const LASTS: Readonly<Record<XidRow['lasts'], string>> = { quiet: 'is quiet', reset: 'reset', boot: 'boot' };
const HEAD = [
  'Xid',
  'Meaning',
  'Condition',
  'Severity',
  'Until',
  'Remedy',
  'NVIDIA',
  'NVSentinel',
  'GPUd',
  ...XID_POLICIES.map(({ project }) => project),
];

/** Markdown table of every Xid: what it means to this agent and to others, with the sources below. */
export function renderXidComparison(): string {
  const rows = XID_TABLE.flatMap(groupsOf).sort((a, b) => (a.xids[0] ?? 0) - (b.xids[0] ?? 0));
  const lines = rows.map(({ row, xids }) => cellsOf(row, xids));
  const table = [HEAD, HEAD.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`);
  const sources = XID_POLICIES.map(({ project, source }) => `- ${project}: ${source}.`);
  return `${[...table, '', ...sources].join('\n')}\n`;
}

/** Numbers of one row that all projects treat alike share a line. */
function groupsOf(row: XidRow): readonly { readonly row: XidRow; readonly xids: readonly number[] }[] {
  const groups = new Map<string, number[]>();
  for (const xid of row.xids) {
    const key = `${XID_POLICIES.map((policy) => policyOn(policy, xid)).join('|')}|${XID_DISPUTED.includes(xid)}`;
    groups.set(key, [...(groups.get(key) ?? []), xid]);
  }
  return [...groups.values()].map((xids) => ({ row, xids }));
}

function cellsOf(row: XidRow, xids: readonly number[]): readonly string[] {
  const [first = 0] = xids;
  const action = actionIn(CATALOGUE, first);
  if (action === undefined) throw new Error(`no step of the catalogue for Xid ${first}`);
  const number = XID_DISPUTED.includes(first) ? `**${first}**` : joined(xids);
  return [
    number,
    row.meaning,
    row.lasts === 'quiet' ? 'XidPassing' : 'Xid',
    row.xids.some((xid) => xid >= 144 && xid <= 150) ? 'fatal or degraded, as the line says' : row.severity,
    LASTS[row.lasts],
    row.remedy,
    action.replaceAll('-', ' '),
    sentinelOn(action),
    actionIn(GPUD, first)?.replaceAll('-', ' ') ?? '–',
    ...XID_POLICIES.map((policy) => policyOn(policy, first)),
  ];
}

/** `70–72, 75`. */
function joined(xids: readonly number[]): string {
  const runs: number[][] = [];
  for (const xid of [...xids].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last?.at(-1) === xid - 1) last.push(xid);
    else runs.push([xid]);
  }
  return runs.map((run) => (run.length > 2 ? `${run[0]}–${run.at(-1)}` : run.join(', '))).join(', ');
}
