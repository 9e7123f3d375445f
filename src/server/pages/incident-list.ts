import { type Html, html } from '../../board/html.ts';
import type { ListedIncident } from '../../incidents/store.ts';
import { document, type PageFrame, part } from './page-parts.ts';

const MOST_INCIDENTS = 20;
const MOST_ON_PAGE = 200;

/** Links to records, the newest first. */
export function incidentList(incidents: readonly ListedIncident[], most = MOST_INCIDENTS, isDeviceShown = false): Html {
  const rest = incidents.length - most;
  return html`<ul class="plain">${incidents
    .slice(0, most)
    .map(
      ({ id, time, states, conditions, device }) =>
        html`<li><a href="/incidents/${encodeURIComponent(id)}">${time}</a> ${isDeviceShown ? html`${device} ` : undefined}${states.join(' → ')} <small>${conditions.join(', ')}</small></li>`,
    )}${rest > 0 ? html`<li class="soft">and ${rest} older ones</li>` : undefined}</ul>
`;
}

/** All incidents of the node. */
export function incidentsPage(incidents: readonly ListedIncident[], frame: PageFrame): string {
  const list = incidents.length === 0 ? html`<p>No incident is recorded.</p>` : incidentList(incidents, MOST_ON_PAGE, true);
  const body = html`<h2>Incidents</h2>
<p class="soft">Each time at which the verdict on a device got worse or unknown, with holders, readings and kernel log.</p>
${part('incidents', list)}`;
  return document(frame, { title: 'Incidents: device-agent', body, footer: html``, liveness: 'reload' });
}
