import type { DeviceView, HolderView } from './device-view.ts';

/** Addresses of the pages for people. */
export const devicePath = ({ family, id }: Pick<DeviceView, 'family' | 'id'>): string =>
  `/devices/${encodeURIComponent(family)}/${encodeURIComponent(id)}`;

export const podPath = ({ namespace, pod }: Pick<HolderView, 'namespace' | 'pod'>): string =>
  `/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`;

export const incidentPath = (id: string): string => `/incidents/${encodeURIComponent(id)}`;

/** Leads to the newest record of a device. An alert knows the id of its device, and no id of a record. */
export const latestIncidentPath = (device: string): string => `/incidents/latest?device=${encodeURIComponent(device)}`;

/** The place on the page of conditions that says what a condition means. */
export const conditionPath = (family: string, type: string): string => `/conditions#${encodeURIComponent(`${family}.${type}`)}`;
