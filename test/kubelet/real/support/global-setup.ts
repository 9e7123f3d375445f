import type { TestProject } from 'vitest/node';
import { buildKubelet, type Release } from './build.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the program around the kubelet's own device manager; empty where it cannot be built. */
    kubeletProgram: string;
    kubeletRelease: Release;
  }
}

export async function setup(project: TestProject): Promise<void> {
  const release = project.getProvidedContext().kubeletRelease;
  const built = await buildKubelet(release);
  if ('missing' in built) process.stderr.write(`skipped: all tests against the code of the kubelet ${release}, ${built.missing}\n`);
  project.provide('kubeletProgram', 'path' in built ? built.path : '');
}
