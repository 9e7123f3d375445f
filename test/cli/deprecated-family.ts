import { family as fans } from '../probes/kit/fan-family.ts';

/** The family of fans, with an option and a metric that are to go. */
export const family = {
  ...fans,
  metrics: fans.metrics.map((metric) =>
    metric.name.endsWith('_asleep') ? { ...metric, deprecated: { since: '0.1', use: 'device_fan_speed_rpm' } } : metric,
  ),
  options: { 'facts-interval': { ...fans.options['facts-interval'], deprecated: { since: '0.1', use: '--refresh.interval' } } },
};
