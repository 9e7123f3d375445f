import { family as fans } from '../probes/kit/fan-family.ts';

/** The family of fans, with a metric that is to go. */
export const family = {
  ...fans,
  metrics: fans.metrics.map((metric) =>
    metric.name.endsWith('_asleep') ? { ...metric, deprecated: { since: '0.1', use: 'device_fan_speed_rpm' } } : metric,
  ),
};
