import type { Case } from '../support/any-kubelet.ts';
import { ADMISSION } from './admission.ts';
import { PLUGIN_GONE } from './plugin-gone.ts';
import { PLUGIN_WATCHER } from './plugin-watcher.ts';
import { POD_RESOURCES } from './pod-resources.ts';
import { POD_RESOURCES_LIMITS } from './pod-resources-limits.ts';
import { REGISTRATION } from './registration.ts';
import { RESTART } from './restart.ts';
import { TOPOLOGY } from './topology.ts';

/** What is asked of both, by what it is about. */
export const CASES: readonly Case[] = [
  ...REGISTRATION,
  ...PLUGIN_GONE,
  ...ADMISSION,
  ...TOPOLOGY,
  ...POD_RESOURCES,
  ...POD_RESOURCES_LIMITS,
  ...RESTART,
  ...PLUGIN_WATCHER,
];
