// What the engine found, in the reader's language: faults first, then costs and notes.

const spot = (numbers) => `(${numbers.join(',')})`;

function findingSentence(f) {
  const touch = f.touches[0];
  const values = {
    count: f.count, array: f.array, line: f.line ?? '–',
    thread: touch?.thread.length ? spot(touch.thread) : '–', block: touch?.block.length ? spot(touch.block) : '–',
    phase: touch?.phase ?? '–',
    asked: touch?.asked?.length ? f.array + touch.asked.map((i) => `[${i}]`).join('') : f.array,
    reached: touch?.reached?.length ? f.array + touch.reached.map((i) => `[${i}]`).join('') : f.array,
    other: touch?.other?.[1]?.length ? say('word.thread.named', { thread: spot(touch.other[1]) }) : say('word.thread.other'), otherLine: f.other_line ?? '–',
  };
  const access = f.access === 'store' || f.access === 'write' ? 'store' : 'load';
  let key = `finding.${f.kind}`;
  if (f.kind === 'race') key += `.${f.hazard}${f.scope === 'between blocks' ? '.blocks' : ''}`;
  if (f.kind === 'out-of-bounds' || f.kind === 'silent-overrun') key += `.${access}`;
  return say(key, values);
}

function wrongSentence(f) {
  if (!f.wrong) return '';
  const cell = f.kind === 'wrong-product' ? f.array : 'P';
  const values = {
    cells: f.wrong.cells, cell: cellName(cell, f.wrong.cell), held: number(f.wrong.held), expected: number(f.wrong.expected),
  };
  const key = { together: 'wrong.together', 'first to last': 'wrong.first', 'last to first': 'wrong.last' }[f.wrong.order];
  return say(key, values);
}

function drawFindings(host, run) {
  const faults = run.trace.findings.filter((f) => f.severity === 'fault');
  const rest = run.trace.findings.filter((f) => f.severity !== 'fault');
  const item = (f) => html('li', { class: f.severity, 'data-kind': f.kind, 'data-count': f.count },
    html('span', { class: 'where' }, f.line ? say('findings.line', { line: f.line }) : ''),
    html('span', {}, `${findingSentence(f)} ${wrongSentence(f)}`.trim()));
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

// What was left out, in words: one of a rung's known lines, or a line of one's own kernel ("check@12", "barrier@9").
const known = (drop) => `drop.${drop}` in settings.words.en;
const lineNamed = (drop) => ({ line: drop.slice(drop.indexOf('@') + 1) });
const dropName = (drop) => (known(drop) ? say(`drop.${drop}`) : say(`drop.${drop.slice(0, drop.indexOf('@'))}.line`, lineNamed(drop)));
const dropReason = (drop) => (known(drop) ? say(`why.${drop}`) : say(`why.${drop.slice(0, drop.indexOf('@'))}.line`, lineNamed(drop)));
