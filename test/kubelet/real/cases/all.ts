import type { Case } from '../support/any-kubelet.ts';
import type { Release } from '../support/build.ts';
import { ADMISSION } from './admission.ts';
import { PLUGIN_GONE } from './plugin-gone.ts';
import { PLUGIN_WATCHER } from './plugin-watcher.ts';
import { POD_RESOURCES } from './pod-resources.ts';
import { POD_RESOURCES_LIMITS } from './pod-resources-limits.ts';
import { REGISTRATION } from './registration.ts';
import { RESTART } from './restart.ts';
import { TOPOLOGY } from './topology.ts';
import { TWO_PLUGINS } from './two-plugins.ts';

/** What is asked of both, by what it is about. */
const CASES: readonly Case[] = [
  ...REGISTRATION,
  ...PLUGIN_GONE,
  ...TWO_PLUGINS,
  ...ADMISSION,
  ...TOPOLOGY,
  ...POD_RESOURCES,
  ...POD_RESOURCES_LIMITS,
  ...RESTART,
  ...PLUGIN_WATCHER,
];

export const casesOf = (release: Release): readonly Case[] => CASES.filter(({ only = release }) => only === release);
