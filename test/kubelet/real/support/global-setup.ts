import type { TestProject } from 'vitest/node';
import { buildKubelet } from './build.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the program around the kubelet's own device manager; empty where it cannot be built. */
    kubeletProgram: string;
  }
}

export async function setup(project: TestProject): Promise<void> {
  const built = await buildKubelet();
  if ('missing' in built) process.stderr.write(`skipped: all tests against the kubelet's own code, ${built.missing}\n`);
  project.provide('kubeletProgram', 'path' in built ? built.path : '');
}
