import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** Names carry the reason for which a test is left out. */
const REASON = /\(skipped: (.*?)\)(?: |$)/;

function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return note ?? REASON.exec(test.fullName)?.[1] ?? 'no reason given';
}

/** Says at the end of a run which tests were left out and why, a line for each reason. */
export class SkipReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')]);
    for (const reason of new Set(skipped.map(reasonOf))) {
      const tests = skipped.filter((test) => reasonOf(test) === reason);
      const files = new Set(tests.map((test) => test.module.relativeModuleId));
      const [first = ''] = files;
      const where = files.size === 1 ? first : `${files.size} files, first ${first}`;
      process.stdout.write(`skipped: ${tests.length === 1 ? '1 test' : `${tests.length} tests`} in ${where}: ${reason}\n`);
    }
  }
}
