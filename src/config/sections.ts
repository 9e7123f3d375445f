import { usageOptionsFor } from '../accounting/options.ts';
import { deviceOptions, excludeOptions, refreshOptions, stateOptions } from '../agent/options.ts';
import { pathOptions } from '../host/options.ts';
import { incidentOptions } from '../incidents/options.ts';
import { cdiOptions, draOptions, podResourcesOptions, podsApiOptions } from '../kubelet/options.ts';
import { logOptions } from '../log/options.ts';
import { containerMetricOptions, labelOptions } from '../metrics/options.ts';
import { booleanOption } from '../model/options.ts';
import { pluginOptions } from '../plugin/options.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { healthFeedOptions, webConfigOptions, webOptions } from '../server/options.ts';
import { stallOptions } from '../waiting/options.ts';
import { configOptions, declarationOptions } from './options.ts';
import type { OptionSection } from './registry.ts';

/** Every part of the agent that has options, and the path of its options. */
const parts = (families: readonly DeviceFamily[]): readonly OptionSection[] => [
  { path: 'config', title: 'Configuration', options: configOptions, inFile: false },
  { path: 'path', title: 'Paths of the node', options: pathOptions },
  { path: 'family', title: 'Declared device families', options: declarationOptions },
  { path: 'podresources', title: 'Kubelet', options: podResourcesOptions },
  {
    path: 'podsapi',
    title: 'Pods API of the kubelet',
    options: podsApiOptions,
    toggle: booleanOption(
      false,
      "Ask the kubelet's Pods API for UID, phase, container ids and extended resources of the pods that hold devices.",
    ),
  },
  { path: 'dra', title: 'Claims (DRA)', options: draOptions },
  { path: 'cdi', title: 'CDI specs', options: cdiOptions },
  { path: 'refresh', title: 'Refresh', options: refreshOptions, isLive: true },
  { path: 'device', title: 'Devices', options: deviceOptions },
  { path: 'device', title: 'Devices that are left out', options: excludeOptions, isLive: true },
  { path: 'plugin', title: 'Device plugin', options: pluginOptions },
  { path: 'state', title: 'State', options: stateOptions },
  { path: 'usage', title: 'Usage', options: usageOptionsFor(families) },
  { path: 'stall', title: 'Containers that wait', options: stallOptions, isLive: true },
  { path: 'incidents', title: 'Incidents', options: incidentOptions },
  { path: 'labels', title: 'Labels of metrics', options: labelOptions },
  { path: 'container-metrics', title: 'Metrics of containers', options: containerMetricOptions },
  { path: 'web', title: 'Web', options: webOptions },
  { path: 'web.config', title: 'Access', options: webConfigOptions },
  { path: 'health-feed', title: 'Health feed', options: healthFeedOptions },
  { path: 'log', title: 'Log', options: logOptions, isLive: true },
];

/** Returns the options of all parts and families. */
export function optionSections(families: readonly DeviceFamily[]): OptionSection[] {
  return [...parts(families), ...families.map(familySection)];
}

function familySection(family: DeviceFamily): OptionSection {
  return {
    path: `probe.${family.name}`,
    title: `Probe ${family.name}: ${family.summary.replace(/\.$/, '')}`,
    options: family.options,
    isLive: true,
    toggle: booleanOption(family.isOffByDefault !== true, `Read ${family.name} devices.`),
  };
}

/** Loads the declarations of all families. */
export async function loadFamilies(loaders: Readonly<Record<string, () => Promise<DeviceFamily>>>): Promise<DeviceFamily[]> {
  return await Promise.all(Object.values(loaders).map((load) => load()));
}
