import { PanelBuilder as BarGaugeBuilder } from '@grafana/grafana-foundation-sdk/bargauge';
import { VisibilityMode, VizOrientation } from '@grafana/grafana-foundation-sdk/common';
import {
  type Dashboard,
  DashboardBuilder,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  FieldColorModeId,
  MappingType,
  QueryVariableBuilder,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMappingResult,
  VariableHide,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimelineBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as TimeseriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

/** One query of a panel. `legend` is the template of a series' name. */
export interface Query {
  readonly expr: string;
  readonly legend?: string;
}

export interface ValueText {
  readonly value: string;
  readonly text: string;
  readonly color: string;
}

/** A panel without its place. */
export interface Panel {
  readonly kind: 'stat' | 'series' | 'table' | 'timeline' | 'bars';
  readonly title: string;
  readonly description: string;
  /** Name of a Grafana unit. */
  readonly unit: string;
  readonly queries: readonly Query[];
  readonly width: number;
  /** Upper end of the axis. */
  readonly max?: number;
  /** Values from which a stat is yellow or red. */
  readonly warnFrom?: number;
  readonly badFrom?: number;
  /** Texts and colours of values. */
  readonly texts?: readonly ValueText[];
  /** Columns of a table, in order: the labels by which its query aggregates. */
  readonly columns?: readonly string[];
  /** Title of the column with the result of the query; the column is hidden without a title. */
  readonly value?: string;
  /** The board that a click opens, with the labels that it takes over. */
  readonly opens?: BoardName;
}

/** Panels of one line; their widths add up to 24 at most. */
export interface Line {
  readonly height: number;
  readonly panels: readonly Panel[];
}

export interface Variable {
  readonly name: string;
  readonly label: string;
  readonly query: string;
  readonly isMulti?: boolean;
}

export interface Board {
  readonly name: BoardName;
  readonly title: string;
  readonly description: string;
  /** A link to the page of the agent of the selected node. */
  readonly page?: { readonly title: string; readonly path: string };
  readonly variables: readonly Variable[];
  readonly lines: readonly Line[];
}

export type BoardName = 'fleet' | 'node' | 'workload' | 'device' | 'health' | 'infiniband' | 'fpga' | 'agent';

const SOURCE = { type: 'prometheus', uid: '${datasource}' };
const TAG = 'device-agent';
const PAGE = 'label_values(device_agent_web_info{cluster=~"$cluster", node=~"$node"}, url)';
const WIDTH = 24;

/** The labels that a link carries to each board, and the variables that take them. */
const CARRIED: Readonly<Record<BoardName, readonly string[]>> = {
  fleet: ['cluster'],
  node: ['cluster', 'node'],
  workload: ['cluster', 'namespace', 'pod'],
  device: ['cluster', 'node', 'device'],
  health: ['cluster', 'node'],
  infiniband: ['cluster', 'node'],
  fpga: ['cluster', 'node'],
  agent: ['cluster', 'node'],
};

export function buildBoard({ name, title, description, page, variables, lines }: Board): Dashboard {
  const builder = new DashboardBuilder(`Devices / ${title}`)
    .uid(uidOf(name))
    .description(description)
    .tags([TAG])
    .editable()
    .refresh('30s')
    .time({ from: 'now-1h', to: 'now' })
    .timezone('browser')
    .link(
      new DashboardLinkBuilder('Devices').type(DashboardLinkType.Dashboards).tags([TAG]).asDropdown(true).includeVars(true).keepTime(true),
    )
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'));
  if (page !== undefined)
    builder.link(
      new DashboardLinkBuilder(page.title)
        .type(DashboardLinkType.Link)
        .url(`\${page}${page.path}`)
        .tooltip('On the page of the agent. Needs web.external-url.')
        .targetBlank(true),
    );
  // The prefix follows the cluster: two clusters can be scraped in different ways.
  const [cluster, ...others] = variables.map(queryVariable);
  if (page !== undefined) others.push(variableBase('page', PAGE).hide(VariableHide.HideVariable));
  for (const variable of [cluster, prefixVariable(), ...others]) if (variable !== undefined) builder.withVariable(variable);
  let [id, y] = [1, 0];
  for (const { height, panels } of lines) {
    let x = 0;
    for (const panel of panels) {
      if (x + panel.width > WIDTH) throw new Error(`${title}: the line with "${panel.title}" is wider than ${WIDTH}`);
      builder.withPanel(panelBuilder(panel).id(id).gridPos({ x, y, w: panel.width, h: height }));
      x += panel.width;
      id += 1;
    }
    y += height;
  }
  return builder.build();
}

const uidOf = (name: BoardName): string => `device-agent-${name}`;

const variableBase = (name: string, query: string) =>
  new QueryVariableBuilder(name).datasource(SOURCE).query({ query, refId: name }).refresh(VariableRefresh.OnTimeRangeChanged);

function queryVariable({ name, label, query, isMulti = true }: Variable): QueryVariableBuilder {
  const builder = variableBase(name, query).label(label).sort(VariableSort.AlphabeticalAsc);
  return isMulti ? builder.multi(true).includeAll(true).allValue('.*') : builder;
}

/**
 * What the scrape or `labels.attribution` put before the labels of a holder. A query finds it out, so that the boards work for every scrape
 * configuration.
 */
function prefixVariable(): QueryVariableBuilder {
  const found = (prefix: string): string =>
    `label_replace(count(container_device_allocation{cluster=~"$cluster", ${prefix}pod!=""}), "p", "${prefix}", "", "")`;
  return variableBase('prefix', `query_result(${found('exported_')} or ${found('workload_')})`)
    .regex('/p="([^"]*)"/')
    .hide(VariableHide.HideVariable);
}

type AnyBuilder = StatBuilder | TimeseriesBuilder | TableBuilder | TimelineBuilder | BarGaugeBuilder;

function panelBuilder(panel: Panel): AnyBuilder {
  const { kind, title, description, unit, queries, max, texts, opens, columns } = panel;
  const builder = emptyPanel(panel);
  builder.title(title).description(description).datasource(SOURCE).unit(unit);
  const isInstant = kind !== 'series' && kind !== 'timeline';
  for (const [index, { expr, legend }] of queries.entries()) {
    const query = new DataqueryBuilder()
      .datasource(SOURCE)
      .refId(String.fromCharCode(65 + index))
      .expr(expr);
    if (legend !== undefined) query.legendFormat(legend);
    if (isInstant) query.instant();
    else query.range();
    if (kind === 'table') query.format(PromQueryFormat.Table);
    builder.withTarget(query);
  }
  if (max !== undefined) builder.min(0).max(max);
  if (texts !== undefined) builder.mappings([{ type: MappingType.ValueToText, options: Object.fromEntries(texts.map(mappingOf)) }]);
  if (opens !== undefined && kind !== 'table')
    builder.dataLinks([new DashboardLinkBuilder(`Open ${opens}`).url(urlOf(opens, '__field.labels'))]);
  if (builder instanceof TableBuilder) arrange(builder, columns ?? [], panel);
  return builder;
}

function emptyPanel({ kind, warnFrom, badFrom }: Panel): AnyBuilder {
  switch (kind) {
    case 'series':
      return new TimeseriesBuilder().fillOpacity(8).showPoints(VisibilityMode.Never);
    case 'table':
      return new TableBuilder();
    case 'timeline':
      return new TimelineBuilder().mergeValues(true).rowHeight(0.8);
    case 'bars':
      return new BarGaugeBuilder().orientation(VizOrientation.Horizontal);
    case 'stat': {
      // A stat without a value has the first colour, so that one is not green.
      const steps: Threshold[] =
        (warnFrom ?? badFrom) === undefined
          ? [{ value: null, color: 'blue' }]
          : [
              { value: null, color: 'text' },
              { value: 0, color: 'green' },
            ];
      if (warnFrom !== undefined) steps.push({ value: warnFrom, color: 'yellow' });
      if (badFrom !== undefined) steps.push({ value: badFrom, color: 'red' });
      const color = { build: () => ({ mode: FieldColorModeId.Thresholds }) };
      return new StatBuilder().thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps)).colorScheme(color);
    }
  }
}

const mappingOf = ({ value, text, color }: ValueText, index: number): [string, ValueMappingResult] => [value, { text, color, index }];

/** The link to a board with the labels that it takes over. `values` is where Grafana finds the labels of a series or the cells of a row. */
function urlOf(name: BoardName, values: '__field.labels' | '__data.fields'): string {
  const source = (label: string): string => (label === 'namespace' || label === 'pod' ? `holder_${label}` : label);
  const carried = CARRIED[name].map((label) => `var-${label}=\${${values}.${source(label)}}`).join('&');
  return `/d/${uidOf(name)}?\${datasource:queryparam}&${carried}&\${__url_time_range}`;
}

/** Puts the columns of a table in order and the link on each of them. */
function arrange(builder: TableBuilder, columns: readonly string[], { value, opens }: Panel): void {
  builder.withTransformation({
    id: 'organize',
    options: {
      excludeByName: { Time: true, ...(value === undefined ? { Value: true } : {}) },
      indexByName: Object.fromEntries([...columns, 'Value'].map((name, index) => [name, index])),
      renameByName: value === undefined ? {} : { Value: value },
    },
  });
  if (opens === undefined) return;
  const link = { title: `Open ${opens}`, url: urlOf(opens, '__data.fields') };
  for (const name of columns) builder.overrideByName(name, [{ id: 'links', value: [link] }]);
}
