/** Series of `/metrics` that no replay can repeat. A capture and a replay leave them out. `*` matches the rest of a name. */
export const NOT_REPEATED: readonly { readonly series: readonly string[]; readonly why: string }[] = [
  { series: ['process_*', 'nodejs_*'], why: 'CPU, memory and files of the process that reads' },
  { series: ['device_agent_build_info'], why: 'the version that plays is another one than the version that captured' },
  {
    series: [
      'device_agent_probe_duration_seconds',
      'device_agent_probe_run_duration_seconds*',
      'device_agent_podresources_request_duration_seconds*',
    ],
    why: 'how long a read lasts depends on the machine that reads',
  },
  { series: ['device_agent_host_*'], why: 'a library reads them, past what a capture keeps' },
  { series: ['device_agent_config_*', 'device_agent_web_config_*'], why: 'files of the agent, which are not in the archive' },
  { series: ['device_agent_podsapi_up'], why: 'answers of the Pods API are not in the archive, because they contain complete pods' },
  {
    series: [
      'device_agent_plugin_registered',
      'device_agent_plugin_streams',
      'device_agent_plugin_last_update_timestamp_seconds',
      'device_agent_plugin_registrations_total',
      'device_agent_plugin_allocations_total',
      'device_agent_plugin_call_duration_seconds*',
    ],
    why: 'a capture runs beside the agent and offers nothing to the kubelet',
  },
];

/** The list for the help text. */
export const notRepeatedText = (): string => NOT_REPEATED.map(({ series, why }) => `  ${series.join('\n  ')}\n      ${why}`).join('\n');

const NAME = /^(?:# (?:HELP|TYPE|UNIT) )?([a-zA-Z_:][\w:]*)/;
const PATTERNS = NOT_REPEATED.flatMap(({ series }) => series).map((text) => text.replace('*', '.*'));
const LEFT_OUT = new RegExp(`^(?:${PATTERNS.join('|')})$`);

/** The part of a metrics page that a replay repeats. */
export function capturedPage(page: string): string {
  const lines = page.split('\n').filter((line) => !LEFT_OUT.test(NAME.exec(line)?.[1] ?? ''));
  return lines.join('\n').replaceAll(/\n{3,}/g, '\n\n');
}
