// The kernel's source with the lines of this frame marked; the text before the kernel is folded.

function buildListing(host, run) {
  const lines = run.trace.source.split('\n');
  while (lines.length && !lines[lines.length - 1].trim()) lines.pop();
  let start = Math.max(0, lines.findIndex((line) => line.includes('__global__') && !line.trim().startsWith('//')));
  while (start > 0 && (lines[start - 1].trim().startsWith('//') || !lines[start - 1].trim())) start -= 1;
  const faults = new Set(run.trace.findings.filter((f) => f.severity === 'fault').map((f) => f.line));
  const row = (text, i) => html('li', {
    value: i + 1, 'data-line': i + 1,
    class: [run.changed.has(i + 1) && 'changed', faults.has(i + 1) && 'faulty'].filter(Boolean).join(' ') || null,
  }, html('code', {}, text || ' '));
  const all = lines.map(row);
  const parts = [];
  if (start > 3) {
    parts.push(html('details', {}, html('summary', {}, say('listing.prelude', { count: start })),
      html('ol', { class: 'lines' }, all.slice(0, start))));
  } else start = 0;
  parts.push(html('ol', { class: 'lines' }, all.slice(start)));
  host.style.setProperty('--digits', String(lines.length).length);
  clear(host, parts);
  return all;
}

function markLines(host, rows, run, state) {
  const now = new Set();
  for (const i of state.frame?.rows ?? []) now.add(run.columns.line[i]);
  if (host.marked === [...now].join()) return; // most steps of a loop stay on their line
  host.marked = [...now].join();
  live.editor?.at(now);
  for (const row of rows) {
    const here = now.has(row.value);
    row.classList.toggle('here', here);
    if (here) row.setAttribute('aria-current', 'step'); else row.removeAttribute('aria-current');
  }
  const places = placesOf(host, rows);
  const marked = rows.map((row, i) => (now.has(row.value) ? places.rows[i] : null)).filter(Boolean);
  if (!marked.length) return;
  const [top, bottom] = [marked[0].top, marked.at(-1).bottom];
  if (top >= places.at && bottom <= places.at + places.high) return;
  places.at = Math.max(0, top - places.high / 3);
  requestAnimationFrame(() => { host.scrollTop = places.at; }); // with the frame's layout, not with one of its own
}

// Where the rows lie, measured when the layout changes or the folded text opens: to measure in a step would lay out the
// pictures twice.
function placesOf(host, rows) {
  const open = host.querySelector('details')?.open ?? false;
  if (host.places?.layout !== app.layout || host.places.open !== open) {
    if (!host.places) host.addEventListener('scroll', () => { host.places.at = host.scrollTop; }, { passive: true });
    const start = host.getBoundingClientRect().top - host.scrollTop;
    const edge = (row) => { const { top, bottom } = row.getBoundingClientRect(); return { top: top - start, bottom: bottom - start }; };
    host.places = {
      layout: app.layout, open, high: host.clientHeight, at: host.scrollTop, rows: rows.map((row) => (row.offsetParent ? edge(row) : null)),
    };
  }
  return host.places;
}
