// A run that the page computed: the interface of `Run`, with each block put in order when it is first shown.

const WHOLE = 300_000; // entries of a log

class Computed extends Run {
  constructor(machine, { shape, seed, drops, tile, schedule }) {
    const began = performance.now();
    const operands = operandsOf(shape, seed, machine.given.matrices);
    const bits = (names) => names.reduce((sum, name) => sum | (1 << settings.compute.drops.findIndex((drop) => drop.name === name)), 0);
    const made = machine.launch(shape, operands, bits(drops));
    const sites = sitesOf(machine.given, made.arrays);
    made.spans = spansOf(made);
    const { found, counters, raced, disordered, uneven } = suspicious(made, sites);
    const ordered = disordered ? inOrder(machine, shape, operands, drops, sites, bits) : made;
    const shown = schedule || !ordered ? made : ordered;
    super(sceneFor(shown, shape, drops, tile, operands, counters));
    Object.assign(this, { made: shown, sites, raced, lost: made.lost, schedule: Boolean(schedule && raced) });
    const judge = new Judge(this, made, ordered, sites, uneven);
    judge.judge([...found].sort((a, b) => a - b));
    judge.product(operands, ordered && judge.held);
    if (raced) this.wrongCells = judge.raced(operands);
    if (!this.schedule) this.wrongCells = null;
    this.trace.findings = judge.findings();
    this.outermost = [...new Set([0, made.blocks - 1, ...[...found].slice(0, 4)])]; // what the picture must have room for
    Object.defineProperty(this.trace.counters, 'phases', { get: () => (this.block(0).frames.at(-1)?.phase ?? 0) + 1, enumerable: true });
    this.milliseconds = performance.now() - began;
  }

  numberOf(name) {
    const found = this.names.indexOf(name);
    return found >= 0 ? found : this.names.push(name) - 1;
  }

  block(number) {
    if (!this.known.has(number)) {
      const made = orderedBlock(this, this.made, this.sites, number, this.schedule);
      for (const frame of made.frames) Object.assign(frame, lasting(this.columns, frame.rows));
      made.geometry = geometryOf(this, made);
      this.known.set(number, made);
    }
    return this.known.get(number);
  }

  // All blocks in order, for what is asked of the whole grid; of a long log only those that were shown.
  complete() {
    if (this.made.count < WHOLE) for (const block of this.trace.blocks) this.block(block);
  }

  // What the blocks before this one stored to P, from the log alone.
  storedBefore(block) {
    const out = new Map();
    const { made, sites } = this;
    const number = made.arrays.findIndex((array) => array.role === 'P');
    for (let i = 0; i < (made.spans[block]?.[0] ?? 0); i++) {
      const site = sites[made.words[ENTRY * i + 5]];
      if (site.kind !== SITE.WRITE || site.hidden || arrayOf(made, site, made.words[ENTRY * i]) !== number) continue;
      const at = cellOf(made, site, i);
      if (!at.outside) out.set(`${at.row},${at.col}`, { value: made.values[4 * i + 1] });
    }
    return out;
  }
}

// The same launch with all of its barriers, which order the threads as lockstep execution does: the values that the page
// shows until a schedule that fails is chosen. Without what the missing barriers logged; null if values depend on the order there, too.
function inOrder(machine, shape, operands, drops, sites, bits) {
  const barriers = settings.compute.drops.filter((drop) => drop.name.startsWith('barrier') && drops.includes(drop.name)).map((drop) => drop.line);
  if (!barriers.length) return null;
  const made = machine.launch(shape, operands, bits(drops.filter((name) => !name.startsWith('barrier'))));
  made.spans = spansOf(made);
  made.without = new Set(barriers);
  return suspicious(made, sites).disordered ? null : made;
}

// First and last entry of each block's log.
function spansOf(made) {
  const spans = Array.from({ length: made.blocks }, () => [0, 0]);
  let block = -1;
  for (let i = 0; i < made.count; i++) {
    const here = made.words[ENTRY * i + 7];
    if (here !== block) { if (block >= 0) spans[block][1] = i; block = here; spans[block][0] = i; }
  }
  if (block >= 0) spans[block][1] = made.count;
  for (let b = 1; b < made.blocks; b++) if (spans[b][1] === 0) spans[b] = [spans[b - 1][1], spans[b - 1][1]];
  return spans;
}

function sceneFor(made, shape, drops, tile, operands, counters) {
  const [m, k, n] = shape;
  const values = { M: operands.M, N: operands.N, P: made.held.map((value) => (Number.isNaN(value) ? null : value)) };
  const matrices = {};
  for (const { role, name, rows, cols } of made.arrays) if (role) matrices[role] = { name, rows, cols, values: values[role] };
  const changed = settings.compute.drops.filter((drop) => drops.includes(drop.name));
  const columns = ['kind', 'phase', 'block', 'thread', 'line', 'array', 'row', 'col', 'got_row', 'got_col', 'value', 'to_array', 'to_row', 'to_col'];
  const own = tile === null ? settings.tile : tile;
  return {
    title: `${settings.compute.name} · ${shape.join('×')}${own ? ` · TILE_WIDTH ${own}` : ''}`,
    drops: [...drops],
    wrong: [],
    changed: changed.map((drop) => drop.line),
    trace: {
      shape, tile: own, grid: made.grid, block: made.block, blocks: made.spans.map((_, i) => i), names: made.arrays.map((array) => array.name), matrices,
      binding: settings.compute.binding, findings: [], counters: { ...counters, 'loads without tiles': 2 * m * k * n },
      source: withoutDrops(settings.compute.source, changed),
      shared: Object.fromEntries(made.arrays.filter((array) => array.shared).map((array) => [array.name, array.dims])),
      events: Object.fromEntries(columns.map((name) => [name, []])),
    },
  };
}

// The text as it runs: what is left out is a comment on its line.
function withoutDrops(source, drops) {
  const lines = source.split('\n');
  for (const { line, first, last, instead } of [...drops].sort((a, b) => a.line - b.line || b.first - a.first)) {
    const text = lines[line - 1];
    lines[line - 1] = `${text.slice(0, first)}${instead}${text.slice(last)}`.trimEnd() + `  // was: ${text.slice(first, last).trim()}`;
  }
  return lines.join('\n');
}
