import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** About what a test waits for at each `await`, where no earlier run tells how long its file takes. */
const AWAIT_MS = 300;

/** Starts the files that take longest first, so that none of them is still at work when all others have ended. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const names = new Map((await super.sort(files)).map((file) => [file, this.#durationOf(file)]));
    const order = ({ project }: TestSpecification): number => project.config.sequence.groupOrder;
    return [...names.keys()].toSorted((a, b) => order(a) - order(b) || (names.get(b) ?? 0) - (names.get(a) ?? 0));
  }

  #durationOf({ project, moduleId }: TestSpecification): number {
    const path = moduleId.slice(this.ctx.config.root.length + 1);
    const known = this.ctx.cache.getFileTestResults(`${project.name}:${path}`)?.duration;
    return known ?? (readFileSync(moduleId, 'utf8').split('await ').length - 1) * AWAIT_MS;
  }
}
