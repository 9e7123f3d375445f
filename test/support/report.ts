import { DefaultReporter, type TestCase, type TestModule, type TestSpecification } from 'vitest/node';

/** Names carry the reason for which a test is left out. */
const REASON = /\(skipped: (.*?)\)(?: |$)/;
/** So many lines of progress does a run print that nobody watches on a terminal. */
const STEPS = 5;

function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return note ?? REASON.exec(test.fullName)?.[1] ?? 'no reason given';
}

/**
 * Prints files that failed, or that passed only after another run, and at the end which tests were left out and why, a line for each reason. So a run that is
 * green fits a screen.
 */
export class ShortReport extends DefaultReporter {
  #files = 0;
  #ended = 0;

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.length;
    this.#ended = 0;
    super.onTestRunStart(specifications);
  }

  protected override printTestModule(module: TestModule): void {
    this.#ended += 1;
    const isFlaky = [...module.children.allTests()].some((test) => (test.diagnostic()?.retryCount ?? 0) > 0);
    if (module.state() === 'failed' || isFlaky || this.#files <= STEPS) super.printTestModule(module);
    else if (!this.isTTY && this.#step(this.#ended) > this.#step(this.#ended - 1)) this.log(` ${this.#ended} of ${this.#files} files`);
  }

  override onTestRunEnd(...run: Parameters<DefaultReporter['onTestRunEnd']>): void {
    super.onTestRunEnd(...run);
    const skipped = run[0].flatMap((module) => [...module.children.allTests('skipped')]);
    for (const reason of new Set(skipped.map(reasonOf))) {
      const tests = skipped.filter((test) => reasonOf(test) === reason);
      const files = new Set(tests.map((test) => test.module.relativeModuleId));
      const [first = ''] = files;
      const where = files.size === 1 ? first : `${files.size} files, first ${first}`;
      this.log(`skipped: ${tests.length === 1 ? '1 test' : `${tests.length} tests`} in ${where}: ${reason}`);
    }
  }

  #step(ended: number): number {
    return Math.floor((ended * STEPS) / this.#files);
  }
}
