import { REMEDY_TEXTS } from '../../src/board/words.ts';
import { onPageOfNode } from './promql.ts';

/**
 * Template text of Prometheus: the containers that hold the device of an alert, or a part of it. A scrape can have renamed the labels of
 * the holder to `exported_…`, and `labels.attribution` to `workload_…`.
 */
const HELD =
  'container_device_allocation{cluster=%[1]q,node=%[2]q} and on (device) ' +
  '(device_info{cluster=%[1]q,node=%[2]q,device=%[3]q} or device_info{cluster=%[1]q,node=%[2]q,parent=%[3]q})';
const OF_DEVICE = '$labels.cluster $labels.node $labels.device';
/** A fault often ends the pod that holds the device, before somebody reads the alert. */
const HELD_BEFORE = holderText(
  'No container holds it; in the last hour: ',
  `last_over_time((${HELD})[1h:1m])`,
  OF_DEVICE,
  'No container is known to hold it.',
);
export const HOLDER_OF_DEVICE = holderText('Held by ', HELD, OF_DEVICE, HELD_BEFORE);

/** Template text: a device as its page names it, with model and address: `GPU 3 (NVIDIA H100, 0000:3b:00.0)`. Its labels have the id. */
export const DEVICE_NAME =
  '{{ $index := query (printf `max by (index) (device_nvidia_info{cluster=%q,node=%q,device=%q,index!=""})` $labels.cluster $labels.node $labels.device) }}' +
  '{{ if $index }}GPU {{ (first $index).Labels.index }}{{ else }}{{ $labels.device }}{{ end }}' +
  '{{ range query (printf `topk(1, max by (model, product, pci_address) (device_info{cluster=%q,node=%q,device=%q}))` $labels.cluster $labels.node $labels.device) }}' +
  '{{ $model := or .Labels.product .Labels.model }}{{ $address := .Labels.pci_address }}{{ if eq $address $labels.device }}{{ $address = "" }}{{ end }}' +
  '{{ if or $model $address }} ({{ $model }}{{ if and $model $address }}, {{ end }}{{ $address }}){{ end }}{{ end }}';

/** Template text: the query by which the page of a runbook has the names of the alert in its commands. */
export const NAMES_IN_LINK =
  '{{ with $labels.node }}?node={{ urlquery . }}{{ with $labels.device }}&device={{ urlquery . }}{{ end }}{{ end }}';

/** Template text: where the record of the device of an alert is, for people. */
export const RECORD = onPageOfNode('{{ $page }}/incidents/latest?device={{ urlquery $labels.device }}');

/** The containers that hold an id of a resource for which the agent knows no device. */
export const HOLDER_OF_UNRESOLVED = holderText(
  'Held by ',
  'container_device_unresolved{cluster=%q,node=%q,resource=%q,reason=%q}',
  '$labels.cluster $labels.node $labels.resource $labels.reason',
  'The container has ended meanwhile.',
);

/** Template text: a condition as page and commands name it, `PortDown (1)`, and its reason. The alert itself says how severe it is. */
export const CONDITION_TEXT = '{{ $labels.condition }}{{ if $labels.part }} ({{ $labels.part }}){{ end }}: {{ $labels.reason }}';

/** Conditions of the device of an alert, with their reasons. */
export const CONDITIONS_OF_DEVICE = conditionText('device=%q', '$labels.device', 'Conditions of the device: ');

/** Conditions of which the condition of an alert is the cause. */
export const CONSEQUENCES = conditionText('device=%q,cause=%q', '$labels.device $labels.condition', 'It also caused ');

function conditionText(matchers: string, values: string, begin: string): string {
  const query = `max by (condition, part, reason) (device_health_condition{cluster=%q,node=%q,${matchers}})`;
  const one = CONDITION_TEXT.replaceAll('$labels', '$c.Labels');
  return `{{ $found := query (printf \`${query}\` $labels.cluster $labels.node ${values}) }}{{ if $found }}${begin}{{ range $i, $c := $found }}{{ if $i }}; {{ end }}${one}{{ end }}. {{ end }}`;
}

function holderText(begin: string, query: string, values: string, none: string): string {
  // A container can hold several ids of the device, or hold it together with a part of it.
  const labels = ['namespace', 'pod', 'container'].flatMap((name) => [name, `exported_${name}`, `workload_${name}`]).join(', ');
  const part = (label: string): string => `{{ or $s.Labels.exported_${label} $s.Labels.workload_${label} $s.Labels.${label} }}`;
  const name = `${part('namespace')}/${part('pod')}/${part('container')}`;
  const list = `{{ range $i, $s := $held }}{{ if $i }}, {{ end }}${name}{{ end }}`;
  return `{{ $held := query (printf \`max by (${labels}) (${query})\` ${values}) }}{{ if $held }}${begin}${list}.{{ else }}${none}{{ end }}`;
}

const timeOfCondition = (metric: string): string =>
  `query (printf \`${metric}{cluster=%q,node=%q,device=%q,condition=%q,part=%q}\` ` +
  '$labels.cluster $labels.node $labels.device $labels.condition $labels.part)';
const TIME = '{{ (. | value | toTime).Format "2006-01-02 15:04:05 UTC" }}';

/** Template text: when the condition of an alert began, which is before the alert. */
export const SINCE = `{{ range ${timeOfCondition('device_health_condition_since_timestamp_seconds')} }}${TIME}{{ end }}`;

/** Template text: since when no reading shows the condition of an alert; nothing while readings show it. */
export const UNVERIFIED =
  '{{ if eq $labels.remedy "verify" }}It was seen before; no reading shows whether it still holds' +
  `{{ range ${timeOfCondition('device_health_condition_unverified_since_timestamp_seconds')} }} since ${TIME}{{ end }}. {{ end }}`;

/** Template text: the sentence of the alert's label `remedy`. */
export const REMEDY = `{{ ${Object.entries(REMEDY_TEXTS)
  .filter(([, text]) => text !== undefined)
  .map(([remedy, text]) => `if eq $labels.remedy "${remedy}" }}${text}`)
  .join('{{ else ')}{{ end }}`;
