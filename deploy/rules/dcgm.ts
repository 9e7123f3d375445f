import { by, DEVICE, series, withHolder } from './promql.ts';

interface Recording {
  readonly record: string;
  readonly expr: string;
}

/** One series for each GPU and MIG instance, with the labels that dcgm-exporter gives its series. */
const LABELS = 'dcgm:device_info:max';
const OWN = ['Hostname', 'gpu', 'UUID', 'modelName'];
const HOLDER = ['namespace', 'pod', 'container'];

/** One series of those that two devices of one name have, as on nodes without the label `node`: they must not make a whole rule fail. */
const one = (labels: string, expr: string): string => `topk by (${labels}) (1, ${expr})`;
const copied = (expr: string, to: string, from: string): string => `label_replace(${expr}, "${to}", "$1", "${from}", "(.+)")`;

const held = by(
  `${DEVICE}, ${HOLDER.map((label) => `holder_${label}`).join(', ')}`,
  withHolder(series('container_device_allocation'), HOLDER),
);
/** A device that several containers hold is that of none: its numbers are those of all of them. */
const holders = HOLDER.reduce(
  (expr, label) => copied(expr, label, `holder_${label}`),
  `${held} and on (${DEVICE}) (count by (${DEVICE}) (${held}) == 1)`,
);

const identity = (kind: string): string => by(`${DEVICE}, model, parent`, series('device_info', `family="nvidia",kind="${kind}"`));
const index = copied(one(DEVICE, by(`${DEVICE}, index`, series('device_nvidia_info'))), 'gpu', 'index');
/** A MIG instance has the index and the UUID of its GPU, as dcgm-exporter gives them; the label `device` tells instances of one GPU apart. */
const identities = [
  copied(`${identity('gpu')} * on (${DEVICE}) group_left (gpu) ${index}`, 'UUID', 'device'),
  `${copied(identity('mig'), 'UUID', 'parent')} * on (cluster, node, UUID) group_left (gpu) ${by('cluster, node, UUID, gpu', copied(index, 'UUID', 'device'))}`,
].join(' or ');
const named = one(DEVICE, by(`${DEVICE}, ${OWN.join(', ')}`, copied(copied(`(${identities})`, 'modelName', 'model'), 'Hostname', 'node')));

const labels: Recording = {
  record: LABELS,
  expr: `${named} * on (${DEVICE}) group_left (${HOLDER.join(', ')}) (${holders})\nor on (${DEVICE})\n${named}`,
};

const of = (metric: string, matchers = ''): string => by(DEVICE, series(metric, matchers));
const MEBIBYTE = ' / 1048576';
const TOTAL = of('device_memory_total_bytes');

/** DCGM's fields by the series that have their values, in DCGM's units. */
const FIELDS: readonly (readonly [field: string, expr: string])[] = [
  ['DEV_SM_CLOCK', `${of('device_clock_hertz', 'clock="sm"')} / 1e6`],
  ['DEV_MEM_CLOCK', `${of('device_clock_hertz', 'clock="memory"')} / 1e6`],
  ['DEV_GPU_TEMP', of('device_temperature_celsius', 'sensor="gpu"')],
  ['DEV_MEMORY_TEMP', of('device_temperature_celsius', 'sensor="memory"')],
  ['DEV_POWER_USAGE', of('device_power_watts', 'sensor="gpu"')],
  ['DEV_POWER_MGMT_LIMIT', of('device_power_limit_watts', 'limit="enforced"')],
  ['DEV_TOTAL_ENERGY_CONSUMPTION', `${of('device_energy_joules_total')} * 1e3`],
  ['DEV_GPU_UTIL', `${of('device_utilization_ratio', 'engine="gpu"')} * 100`],
  ['DEV_MEM_COPY_UTIL', `${of('device_utilization_ratio', 'engine="memory"')} * 100`],
  ['DEV_ENC_UTIL', `${of('device_utilization_ratio', 'engine="encoder"')} * 100`],
  ['DEV_DEC_UTIL', `${of('device_utilization_ratio', 'engine="decoder"')} * 100`],
  ['DEV_FB_TOTAL', TOTAL + MEBIBYTE],
  ['DEV_FB_USED', of('device_memory_used_bytes') + MEBIBYTE],
  ['DEV_FB_FREE', `(${TOTAL} - ${of('device_memory_used_bytes')} - (${of('device_memory_reserved_bytes')} or ${TOTAL} * 0))${MEBIBYTE}`],
  ['DEV_PCIE_REPLAY_COUNTER', of('device_pcie_replays_total')],
  ['DEV_ECC_SBE_VOL_TOTAL', of('device_errors_total', 'kind="ecc_correctable"')],
  ['DEV_ECC_DBE_VOL_TOTAL', of('device_errors_total', 'kind="ecc_uncorrectable"')],
  ['DEV_CORRECTABLE_REMAPPED_ROWS', of('device_nvidia_remapped_rows_total', 'cause="correctable"')],
  ['DEV_UNCORRECTABLE_REMAPPED_ROWS', of('device_nvidia_remapped_rows_total', 'cause="uncorrectable"')],
  ['DEV_ROW_REMAP_FAILURE', of('device_nvidia_row_remap_failure')],
  ['PROF_GR_ENGINE_ACTIVE', of('device_nvidia_activity_ratio', 'unit="graphics"')],
  ['PROF_SM_ACTIVE', of('device_nvidia_activity_ratio', 'unit="sm"')],
  ['PROF_PIPE_TENSOR_ACTIVE', of('device_nvidia_activity_ratio', 'unit="tensor"')],
  ['PROF_SM_OCCUPANCY', of('device_nvidia_sm_occupancy_ratio')],
  ['PROF_DRAM_ACTIVE', of('device_nvidia_memory_bandwidth_ratio')],
  ...(['pcie', 'nvlink'] as const).flatMap((link) =>
    (['transmit', 'receive'] as const).map(
      (direction) =>
        [
          `PROF_${link.toUpperCase()}_${direction === 'transmit' ? 'TX' : 'RX'}_BYTES`,
          of('device_nvidia_traffic_bytes_per_second', `link="${link}",direction="${direction}"`),
        ] as const,
    ),
  ),
];

/**
 * Names of dcgm-exporter for boards, autoscalers and alerts that ask for them. The last Xid as a value is absent, because PromQL cannot make a value of a
 * label; DCGM_EXP_XID_ERRORS_COUNT has the label `xid` there, too.
 */
export const dcgmGroup = {
  name: 'device-dcgm-names',
  interval: '30s',
  rules: [
    labels,
    ...FIELDS.map(([field, expr]): Recording => ({ record: `DCGM_FI_${field}`, expr: withLabels(`(${expr})`) })),
    {
      record: 'DCGM_EXP_XID_ERRORS_COUNT',
      expr: withLabels(by(`${DEVICE}, xid`, `increase(${series('device_nvidia_xid_errors_total')}[5m])`)),
    },
  ],
};

function withLabels(expr: string): string {
  return `${expr} * on (${DEVICE}) group_left (${[...OWN, ...HOLDER].join(', ')}) ${LABELS}`;
}
