#!/usr/bin/env bash
# OpenTelemetry Collector: set(attributes["a"], attributes["b"]) without an attribute b makes an empty a, which "== nil" does not see
#
# One would guess: as the README of the same release says, "if value resolves to nil, e.g. it references an unset map value, there will be no action";
#   and an attribute that was just set is not nil.
# Versions: transformprocessor and groupbyattrsprocessor 0.161.0 of opentelemetry-collector-contrib. The feature gate ottl.set.allowNil is on since 0.158.
# Seen: the statement adds an attribute with the empty value, or empties one that was there. A condition `attributes["a"] == nil` holds before and after it,
#   `!= nil` and `== ""` do not hold. groupbyattrs sees the attribute: series without the label get a resource of their own, with an empty attribute.
# Why it matters: the recipe of docs/backends.md copies labels of Prometheus, and many series do not have them: a condition on the source is needed in
#   each such statement, or each series of the agent itself gets an empty hw.id.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbyattrsprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
)

func start(factory processor.Factory, settings map[string]any, next consumer.Metrics) consumer.Metrics {
	config := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(config); err != nil {
		panic(err)
	}
	made, err := factory.CreateMetrics(context.Background(), processortest.NewNopSettings(component.MustNewType(factory.Type().String())), config, next)
	if err != nil {
		panic(err)
	}
	if err := made.Start(context.Background(), nil); err != nil {
		panic(err)
	}
	return made
}

func main() {
	sink := new(consumertest.MetricsSink)
	group := start(groupbyattrsprocessor.NewFactory(), map[string]any{"keys": []any{"pod"}}, sink)
	first := start(transformprocessor.NewFactory(), map[string]any{
		"metric_statements": []any{map[string]any{"context": "datapoint", "statements": []any{
			`set(attributes["pod"], attributes["exported_pod"])`,
			`set(attributes["node"], attributes["exported_node"])`,
			`set(attributes["pod-is-nil"], "yes") where attributes["pod"] == nil`,
			`set(attributes["pod-is-not-nil"], "yes") where attributes["pod"] != nil`,
			`set(attributes["pod-is-empty"], "yes") where attributes["pod"] == ""`,
			`set(attributes["guarded"], attributes["exported_pod"]) where attributes["exported_pod"] != nil`,
		}}},
	}, group)
	metrics := pmetric.NewMetrics()
	metric := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("m")
	points := metric.SetEmptyGauge().DataPoints()
	points.AppendEmpty().Attributes().PutStr("node", "with-pod")
	points.At(0).Attributes().PutStr("exported_pod", "p")
	points.AppendEmpty().Attributes().PutStr("node", "without-pod")
	if err := first.ConsumeMetrics(context.Background(), metrics); err != nil {
		panic(err)
	}
	resources := sink.AllMetrics()[0].ResourceMetrics()
	for i := range resources.Len() {
		attributes := resources.At(i).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()
		fmt.Printf("resource %v: %v\n", resources.At(i).Resource().Attributes().AsRaw(), attributes.AsRaw())
	}
}
GO
contrib=github.com/open-telemetry/opentelemetry-collector-contrib/processor
quietly go mod init finding
quietly go get $contrib/groupbyattrsprocessor@v0.161.0 $contrib/transformprocessor@v0.161.0
quietly go mod tidy
quietly go build -o processors .
seen=$(./processors)
expected='resource map[pod:p]: map[exported_pod:p guarded:p node:<nil> pod-is-not-nil:yes]
resource map[pod:<nil>]: map[node:<nil> pod-is-nil:yes]'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
