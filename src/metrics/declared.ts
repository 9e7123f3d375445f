import type { AgentMetricSpec } from '../model/metric.ts';
import type { LabelText } from './labels.ts';

/** What a page needs to know of a metric. */
export interface Declared extends Pick<AgentMetricSpec, 'name' | 'type' | 'help'> {
  /** Present for a metric that has several samples for each set of labels: which one it is. */
  readonly sample?: {
    /** What its name has after that of the metric. */
    readonly suffix: string;
    /** Those that stand after the others. */
    readonly labels: LabelText;
    /** Its place among the samples of the same labels. */
    readonly rank: number;
  };
}
