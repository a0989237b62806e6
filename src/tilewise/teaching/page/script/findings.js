// What the emulator found, in the reader's language: faults first, then costs and notes. The scene carries the sentences.

function drawFindings(host, run) {
  const faults = run.trace.findings.filter((f) => f.severity === 'fault');
  const rest = run.trace.findings.filter((f) => f.severity !== 'fault');
  const item = (f) => html('li', { class: f.severity, 'data-kind': f.kind, 'data-count': f.count },
    html('span', { class: 'where' }, f.line ? say('findings.line', { line: f.line }) : ''),
    html('span', {}, f.sentences[language]));
  const parts = [html('p', { class: faults.length ? 'verdict bad' : 'verdict good', 'data-faults': faults.length },
    faults.length ? say('findings.some', { count: faults.length }) : say('findings.none'))];
  for (const drop of run.drops) parts.push(html('p', { class: 'why' }, dropReason(drop)));
  if (run.drops.length && !faults.length) parts.push(html('p', { class: 'why' }, say('why.nothing')));
  if (faults.length) parts.push(html('ul', {}, faults.map(item)));
  if (rest.length) {
    parts.push(html('details', {}, html('summary', {}, say('findings.costs', { count: rest.length })), html('ul', {}, rest.map(item))));
  }
  clear(host, parts);
}

// The verdict in one line above the pictures: what broke, and where.
function drawBroken(host, run) {
  const faults = run.trace.findings.filter((f) => f.severity === 'fault');
  host.hidden = !faults.length && !run.drops.length;
  host.classList.toggle('fine', !faults.length);
  if (!faults.length) { clear(host, run.drops.length ? part('p', {}, say('why.nothing')) : null); return; }
  const [first] = faults;
  clear(host, part('p', { title: first.sentences[language] },
    part('strong', { 'data-faults': faults.length }, say('findings.some', { count: faults.length })), ' · ',
    first.line ? part('span', { class: 'where' }, `${say('findings.line', { line: first.line })}: `) : null, first.sentences[language]));
}

// What was left out, as text: a known check or barrier, or one named by its line ("check@12", "barrier@9").
const known = (drop) => `drop.${drop}` in settings.messages.en;
const lineNamed = (drop) => ({ line: drop.slice(drop.indexOf('@') + 1) });
const dropName = (drop) => (known(drop) ? say(`drop.${drop}`) : say(`drop.${drop.slice(0, drop.indexOf('@'))}.line`, lineNamed(drop)));
const dropReason = (drop) => (known(drop) ? say(`why.${drop}`) : say(`why.${drop.slice(0, drop.indexOf('@'))}.line`, lineNamed(drop)));
