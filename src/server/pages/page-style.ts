/** The page's only style sheet. It is inlined, and the content security policy allows only this style sheet. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --back: #f6f7f9; --card: #fff; --link: #0b5cad;
  --good: #1a7f4b; --warn: #a15c00; --bad: #b3261e; --none: #5b6675;
  --line-0: #0b5cad; --line-1: #b3261e; --line-2: #1a7f4b; --line-3: #a15c00; --line-4: #6b3fa0; --line-5: #00718a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa6b5; --line: #2c3542; --back: #11161d; --card: #19202a; --link: #7cb8ff;
    --good: #5fcf94; --warn: #f0b45a; --bad: #ff8a80; --none: #9aa6b5;
    --line-0: #7cb8ff; --line-1: #ff8a80; --line-2: #5fcf94; --line-3: #f0b45a; --line-4: #c6a6ff; --line-5: #66d2e6; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main, header, footer { max-width: 84rem; margin: 0 auto; padding: 0 1.25rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: baseline; padding-top: 1.25rem; }
h1 { font-size: 1.35rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
a { color: var(--link); text-decoration: none; }
main a:not(.id), footer a, a:hover, a:focus { text-decoration: underline; text-underline-offset: .15em; }
nav { display: flex; flex-wrap: wrap; gap: 1rem; margin-left: auto; }
.soft, small, footer { color: var(--soft); }
small { font-size: .85rem; }
footer { padding-top: 1rem; padding-bottom: 2rem; font-size: .85rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; padding: 0; list-style: none; }
.tiles li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; min-width: 7rem; }
.tiles b { display: block; font-size: 1.35rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tiles .wide { min-width: 12rem; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .55rem .8rem; border-top: 1px solid var(--line); }
thead th { border-top: 0; font-size: .8rem; font-weight: 600; color: var(--soft); white-space: nowrap; }
tbody th { font-weight: 600; }
th small { font-weight: 400; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .05rem .75rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
ul.plain { list-style: none; margin: 0; padding: 0; }
.id { overflow-wrap: anywhere; min-width: 9rem; display: inline-block; }
.state { white-space: nowrap; font-weight: 600; }
.state::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .4em; border-radius: 50%; background: currentColor; }
.healthy { color: var(--good); } .degraded { color: var(--warn); } .unhealthy, .missing { color: var(--bad); } .unknown { color: var(--none); }
.unhealthy.state::before, .missing.state::before { border-radius: 0; }
.unknown.state::before { background: none; border: 2px solid currentColor; }
.condition { margin: .25rem 0 0; max-width: 34rem; overflow-wrap: break-word; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
.hidden { position: absolute; width: 1px; height: 1px; margin: -1px; padding: 0; overflow: hidden; clip-path: inset(50%); border: 0; white-space: nowrap; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
tr:focus-within { background: color-mix(in srgb, var(--link) 9%, transparent); }
.group th { background: var(--back); font-weight: 600; }
#devices .depth-1 th[scope=row] { padding-left: 2.2rem; } #devices .depth-2 th[scope=row] { padding-left: 3.6rem; } #devices .depth-3 th[scope=row] { padding-left: 5rem; }
.filter { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: end; margin: 0 0 .5rem; }
.filter label { display: grid; gap: .15rem; font-size: .8rem; color: var(--soft); }
.filter input, .filter select, .filter button { font: inherit; font-size: .95rem; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: .35rem; padding: .3rem .5rem; max-width: 14rem; }
.bar { display: block; width: 100%; max-width: 11rem; height: 4px; margin: .1rem 0 .2rem; border-radius: 2px; }
.bar .rail { fill: var(--line); } .bar .fill { fill: var(--link); } .bar.full .fill { fill: var(--bad); }
.is-unhealthy > th, .is-missing > th { box-shadow: inset 3px 0 var(--bad); } .is-degraded > th { box-shadow: inset 3px 0 var(--warn); }
#devices { table-layout: fixed; min-width: 60rem; } #devices td, #devices th { overflow-wrap: anywhere; }
#devices thead th:nth-child(1) { width: 16%; } #devices thead th:nth-child(2) { width: 31%; } #devices thead th:nth-child(3) { width: 18%; }
#devices thead th:nth-child(4) { width: 25%; } #devices thead th:nth-child(5) { width: 10%; }
.spark { width: 100%; height: 24px; display: block; }
.spark path, .plot path { fill: none; stroke: var(--link); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: .75rem; }
figure { margin: 0; padding: .5rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; min-width: 0; overflow: hidden; }
.plot svg { width: 100%; height: 80px; display: block; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem .8rem; margin: .3rem 0 0; padding: 0; font-size: .85rem; }
.legend .key { display: inline-block; width: .8em; height: .2em; margin-right: .35em; vertical-align: middle; background: currentColor; }
.plot path.line-0 { stroke: var(--line-0); } .plot path.line-1 { stroke: var(--line-1); } .plot path.line-2 { stroke: var(--line-2); }
.plot path.line-3 { stroke: var(--line-3); } .plot path.line-4 { stroke: var(--line-4); } .plot path.line-5 { stroke: var(--line-5); }
.key.line-0 { color: var(--line-0); } .key.line-1 { color: var(--line-1); } .key.line-2 { color: var(--line-2); }
.key.line-3 { color: var(--line-3); } .key.line-4 { color: var(--line-4); } .key.line-5 { color: var(--line-5); }
.strip { display: block; width: 100%; height: 14px; margin: .25rem 0 .75rem; background: var(--line); border-radius: 3px; }
.strip rect { fill: currentColor; }
details { margin-top: 1.25rem; } summary { cursor: pointer; font-weight: 600; margin-bottom: .5rem; }
.facts th { width: 11rem; }
#live::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .4em; border-radius: 50%; background: var(--none); }
#live[data-state=live]::before { background: var(--good); }
#live[data-state=lost] { color: var(--bad); } #live[data-state=lost]::before { background: var(--bad); }
article { overflow-wrap: anywhere; } article:target { background: var(--card); outline: 2px solid var(--link); }
h4 { margin: 1rem 0 .2rem; } article p { margin: .2rem 0; max-width: 60rem; }
@media (max-width: 40rem) {
  .charts { grid-template-columns: 1fr; }
  .is-unhealthy > th, .is-missing > th, .is-degraded > th { box-shadow: none; }
  .is-unhealthy, .is-missing { box-shadow: inset 3px 0 var(--bad); } .is-degraded { box-shadow: inset 3px 0 var(--warn); }
  .group { display: block; } #devices { min-width: 0; } #devices td.trend, #devices td:nth-child(2), #devices td:nth-child(4) { width: 100%; }
  table, tbody { display: block; }
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .6rem .8rem; border-top: 1px solid var(--line); }
  tr:first-child { border-top: 0; }
  th, td { min-width: 0; padding: 0; border: 0; overflow-wrap: anywhere; }
  td.number { text-align: left; white-space: normal; }
  td[data-label]::before { content: attr(data-label) " "; color: var(--soft); font-size: .85rem; }
}
`;
