import type { Value } from '../model/metric.ts';
import type { Declared } from './declared.ts';
import type { LabelText } from './labels.ts';
import { areSameLists, type DropReason, isExportable, type Section } from './section.ts';

/** Collects the series of one section. What is left out is counted, so that nothing disappears silently. */
export class SeriesPage {
  readonly #dropped = new Map<DropReason, number>();
  readonly #declared: Declared[] = [];
  readonly #labels: LabelText[] = [];
  readonly #own: LabelText[] = [];
  readonly #values: Value[] = [];

  /** `own`: further labels. Told apart, they cost no joining where the section before had the same series. */
  add(declared: Declared, labels: LabelText, value: Value, own: LabelText = ''): void {
    if (!isExportable(declared.type, value)) {
      this.drop('invalid-value');
      return;
    }
    this.#declared.push(declared);
    this.#labels.push(labels);
    this.#own.push(own);
    this.#values.push(value);
  }

  drop(reason: DropReason): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1);
  }

  /** To be called once, when all is added. `before`: the section that stood at its place, whose list is kept where it is the same. */
  section(before?: Section): Section {
    const list = { declared: this.#declared, labels: this.#labels, own: this.#own };
    const isSame = before !== undefined && areSameLists(list, before.list);
    return { list: isSame ? before.list : list, values: this.#values, dropped: this.#dropped };
  }
}
