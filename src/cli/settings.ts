import { hostname } from 'node:os';
import { usageOptions } from '../accounting/options.ts';
import { deviceOptions, refreshOptions, stateOptions } from '../agent/options.ts';
import type { AgentSettings } from '../agent/settings.ts';
import { type Configuration, describeOrigin } from '../config/configuration.ts';
import { nearestHint } from '../config/nearest.ts';
import { expectedDevices, healthPart, idleThresholds, pluginResources, poolRules, prices } from '../config/structured.ts';
import { WebConfigFile } from '../config/web/web-config-file.ts';
import { UserError } from '../errors.ts';
import { systemClock } from '../host/clock.ts';
import { LONGEST_SOCKET_PATH } from '../host/fs/socket-file.ts';
import { pathOptions } from '../host/options.ts';
import { incidentOptions } from '../incidents/options.ts';
import { cdiOptions, draOptions, podResourcesOptions, podsApiOptions } from '../kubelet/options.ts';
import type { LogSettings } from '../log/logger.ts';
import { type LogFormat, type LogLevel, logOptions } from '../log/options.ts';
import { attributionProblem, containerMetricOptions, labelOptions } from '../metrics/options.ts';
import { defined } from '../model/defined.ts';
import { excludeOption } from '../model/options.ts';
import { overlapProblems } from '../model/plugin-overlap.ts';
import { type DeviceSelector, type PluginResource, pluginResourceProblems, selectorsOf } from '../model/plugin-resource.ts';
import { pluginOptions } from '../plugin/options.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { listenAddressProblem } from '../server/http/listen.ts';
import { externalUrlProblem, healthFeedOptions, isTakenPath, webConfigOptions, webOptions } from '../server/options.ts';
import { stallOptions } from '../waiting/options.ts';

/** Converts the configuration to the agent's settings. */
export function agentSettings(configuration: Configuration, families: readonly DeviceFamily[]): AgentSettings {
  const access = webConfigOf(configuration);
  return {
    roots: configuration.section('path', pathOptions),
    refresh: configuration.section('refresh', refreshOptions),
    device: configuration.section('device', deviceOptions),
    podResources: configuration.section('podresources', podResourcesOptions),
    ...(configuration.isOn('podsapi') ? { podsApi: configuration.section('podsapi', podsApiOptions) } : {}),
    dra: configuration.section('dra', draOptions),
    cdi: configuration.section('cdi', cdiOptions),
    families: families
      .filter(({ name }) => configuration.isOn(`probe.${name}`))
      .map((family) => ({ family, options: familyOptions(configuration, family) })),
    pools: configuration.part(poolRules),
    health: configuration.part(healthPart),
    plugin: { options: configuration.section('plugin', pluginOptions), resources: configuration.part(pluginResources) },
    state: configuration.section('state', stateOptions),
    usage: configuration.section('usage', usageOptions),
    stall: configuration.section('stall', stallOptions),
    incidents: configuration.section('incidents', incidentOptions),
    expect: configuration.part(expectedDevices),
    idle: configuration.part(idleThresholds),
    prices: configuration.part(prices),
    labels: configuration.section('labels', labelOptions),
    containerMetrics: configuration.section('container-metrics', containerMetricOptions),
    web: configuration.section('web', webOptions),
    healthFeed: configuration.section('health-feed', healthFeedOptions),
    ...defined({ access }),
    node: nodeName(),
  };
}

/** The options of a probe. Every thread gets the devices that it leaves out. */
export const familyOptions = (configuration: Configuration, { name, options }: DeviceFamily): Readonly<Record<string, unknown>> =>
  configuration.section(`probe.${name}`, { ...options, exclude: excludeOption });

/** In a pod the host name is the pod's name, so the manifest sets NODE_NAME. */
export const nodeName = (): string => process.env.NODE_NAME ?? hostname();

/** Returns the web configuration file; undefined when none is configured. */
export function webConfigOf(configuration: Configuration): WebConfigFile | undefined {
  const { file } = configuration.section('web.config', webConfigOptions);
  return file === '' ? undefined : new WebConfigFile(file, systemClock);
}

export function logSettings(configuration: Configuration): LogSettings {
  const { level, format } = configuration.section('log', logOptions);
  return { level: level as LogLevel, format: format as LogFormat };
}

/** Checks values beyond their kind. Throws {@link UserError}. */
export function checkMeaning(configuration: Configuration, families: readonly DeviceFamily[]): void {
  const address = configuration.setting('web.listen-address');
  const problem = listenAddressProblem(String(address.value));
  if (problem !== undefined) throw invalid(address, `must ${problem}`);
  const path = configuration.setting('web.telemetry-path');
  if (!/^\/[^\s?#]+$/.test(String(path.value))) throw invalid(path, 'must be a path below / without ? and #');
  if (isTakenPath(String(path.value))) throw invalid(path, 'must not be a path of the API, of a device or of the health of the agent');
  const external = configuration.setting('web.external-url');
  const externalProblem = external.value === '' ? undefined : externalUrlProblem(String(external.value));
  if (externalProblem !== undefined) throw invalid(external, externalProblem);
  const grafana = configuration.setting('web.grafana-url');
  if (grafana.value !== '' && !/^https?:\/\/[^\s/?#]+[^\s?#]*$/.test(String(grafana.value)))
    throw invalid(grafana, 'must be an address such as https://grafana.example.com');
  const attribution = configuration.setting('labels.attribution');
  const prefixProblem = attributionProblem(String(attribution.value));
  if (prefixProblem !== undefined) throw invalid(attribution, prefixProblem);
  const feeds = configuration.settings.filter(({ entry }) => /^health-feed\.(?:.+-)?socket$/.test(entry.key));
  for (const socket of [...feeds, configuration.setting('podresources.socket'), configuration.setting('podsapi.socket')]) {
    if (socket.value === '' && feeds.includes(socket)) continue;
    if (!String(socket.value).startsWith('/')) throw invalid(socket, 'must be an absolute path');
    if (Buffer.byteLength(String(socket.value)) > LONGEST_SOCKET_PATH)
      throw invalid(socket, `must have ${LONGEST_SOCKET_PATH} bytes at most`);
  }
  const mode = configuration.setting('health-feed.socket-mode');
  if (!/^0?[0-6][0-6]{2}$/.test(String(mode.value))) throw invalid(mode, 'must be an octal mode without execution, such as 0600');
  checkResources(configuration, families);
}

function checkResources(configuration: Configuration, families: readonly DeviceFamily[]): void {
  const resources = configuration.part(pluginResources);
  const problems = [...pluginResourceProblems(resources), ...overlapProblems(resources), ...selectorProblems(resources, families)];
  if (problems.length === 0) return;
  const origin = configuration.structured.find(({ part }) => part.path === pluginResources.path)?.origin ?? { from: 'default' };
  throw new UserError('setting-invalid', {
    option: pluginResources.path,
    origin: describeOrigin(origin),
    problem: `cannot be served: ${problems.join('; ')}`,
  });
}

function invalid({ entry, value, origin }: ReturnType<Configuration['setting']>, problem: string): UserError {
  return new UserError('setting-invalid', {
    option: entry.key,
    origin: describeOrigin(origin),
    problem: `${problem}, not ${JSON.stringify(value)}`,
  });
}

type Declared = Pick<DeviceFamily, 'name' | 'kinds'>;

/** Finds families and kinds in selectors that no device can have, one sentence each: a typing error would offer no device, silently. */
function selectorProblems(resources: readonly PluginResource[], families: readonly Declared[]): string[] {
  return resources.flatMap(({ resource, select }) =>
    selectorsOf(select).flatMap((selector) => problemsOf(selector, families).map((problem) => `resource "${resource}": ${problem}`)),
  );
}

function problemsOf({ family, kind }: DeviceSelector, families: readonly Declared[]): string[] {
  const names = families.map(({ name }) => name);
  if (family !== undefined && !names.includes(family))
    return [`there is no family "${family}", only ${names.join(', ')}${nearestHint(family, names)}`];
  const declared = families.filter(({ name }) => family === undefined || name === family).flatMap((one) => one.kinds ?? []);
  // Several families may have a kind of the same name.
  const kinds = [...new Set(declared)];
  const place = family === undefined ? '' : ` in ${family}`;
  const wanted = kind === undefined ? [] : [kind].flat();
  return wanted
    .filter((one) => !kinds.includes(one))
    .map((one) => `there is no kind "${one}"${place}, only ${kinds.join(', ')}${nearestHint(one, kinds)}`);
}
