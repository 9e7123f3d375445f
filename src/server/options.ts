import { booleanOption, constant, integerOption, listOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const webOptions = {
  'listen-address': stringOption(
    ':9835',
    'Where to serve metrics, API and page: `:port`, `host:port`, `[ipv6]:port`, or the path of a unix socket.',
  ),
  'telemetry-path': stringOption('/metrics', 'Path of the metrics page.'),
  page: booleanOption(true, 'Serve the HTML pages.'),
  api: booleanOption(true, 'Serve the JSON API below `/api`.'),
  /** At most half of them from one address; further requests get 503. */
  'max-requests': constant(integerOption(40, 'Maximum number of concurrent requests. 0: no limit.')),
  'allowed-hosts': listOption(
    [],
    'Further host names by which clients may address the agent, as in the URL. IP addresses, localhost, and the names of the node and the pod are always allowed. `*`: any name.',
  ),
  'external-url': stringOption(
    '',
    'Address at which people reach this agent, such as `https://{node}.devices.example.com`; `{node}` is the name of the node. Alerts, records, events, boards and the page of the fleet link to it. Empty: they have no link to the agent.',
  ),
  'grafana-url': stringOption('', 'Address of Grafana with the boards of device-agent. The page of a device links to its board there.'),
  'enable-lifecycle': booleanOption(
    false,
    'Let every client of this address change the agent: `POST /-/reload` reads the configuration file again, `POST /-/release` closes a driver for a time.',
  ),
} as const satisfies OptionSpecs;

/** Options `--web.config.<name>`. The flag has the same name as in other exporters. */
export const webConfigOptions = {
  file: stringOption(
    '',
    "File with TLS, passwords and headers, in the format of Prometheus' exporter toolkit. Empty: plain HTTP without a password.",
  ),
} as const satisfies OptionSpecs;

/** Options `--health-feed.<name>`. */
export const healthFeedOptions = {
  socket: stringOption(
    '',
    'Unix socket on which device plugins and DRA drivers can follow the health of devices by gRPC (`DRAResourceHealth`). Empty: no socket.',
  ),
  'nvhcd-socket': stringOption(
    '',
    'Unix socket on which a launcher of training jobs can ask whether the node is well (`HealthCheckService/RunHealthCheck` of nvhcd). Empty: no socket.',
  ),
  'metricssvc-socket': stringOption(
    '',
    'Unix socket on which a GPU device plugin can ask for the health of devices (`MetricsService/List` of metricssvc). Empty: no socket.',
  ),
  'xpumd-socket': stringOption(
    '',
    'Unix socket on which a GPU device plugin can follow the health of devices (`DeviceInfo/WatchDeviceHealth` of xpumd). Empty: no socket.',
  ),
  'socket-mode': stringOption(
    '0600',
    'Mode of these sockets, octal: who may connect. `0600`: only the user of the agent. `0666`: every process that sees the directory.',
  ),
  pool: stringOption('', 'Pool under which the feed names devices that no claim names. Empty: the name of the node.'),
} as const satisfies OptionSpecs;
export type HealthFeedOptions = OptionValues<typeof healthFeedOptions>;

/** True when a metrics page at this path would hide the API, an HTML page or its files, or a health check. */
export const isTakenPath = (path: string): boolean =>
  /^\/(?:(?:api|assets|devices|pods|incidents|-)\/|(?:incidents|agent|conditions|healthz|readyz)$)/.test(path);

export type WebOptions = OptionValues<typeof webOptions>;

/** The address of the agent's pages for people, without a slash at its end; undefined when none is configured. */
export const pagesUrl = ({ 'external-url': template }: Pick<WebOptions, 'external-url'>, node: string): string | undefined =>
  template === '' ? undefined : withoutSlash(template.replaceAll('{node}', encodeURIComponent(node)));

export const withoutSlash = (address: string): string => address.replace(/\/+$/, '');

/** Says why no link can begin with the address; undefined when one can. The pages have absolute paths, so that no path may be in front of them. */
export function externalUrlProblem(template: string): string | undefined {
  const address = template.replaceAll('{node}', 'node');
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    return 'must be an address such as https://{node}.devices.example.com';
  const { pathname, search, hash, username } = new URL(address);
  return pathname === '/' && search + hash + username === '' ? undefined : 'must be an address without path, query and user';
}
