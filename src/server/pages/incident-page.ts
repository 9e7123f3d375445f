import { html } from '../../board/html.ts';
import type { IncidentRecord } from '../../incidents/record.ts';
import { incidentText } from './incident-text.ts';
import { document, type PageFrame } from './page-parts.ts';

/** Shows one incident with the same text as the command `device-agent incidents`. */
export function incidentPage(record: IncidentRecord, frame: PageFrame): string {
  const { family, id } = record.device;
  const path = `/devices/${encodeURIComponent(family)}/${encodeURIComponent(id)}`;
  const body = html`<h2>Incident of <a href="${path}">${id}</a></h2>
<div class="scroll"><pre>${incidentText(record)}</pre></div>`;
  const footer = frame.hasApi ? html`<a href="/api/incidents/${encodeURIComponent(record.id)}">The complete record as JSON</a>` : html``;
  return document(frame, { title: `${record.id}: device-agent`, body, footer, liveness: 'none' });
}
