// What is wrong with a computed run: the same kinds, lines, threads and cells as `tilewise check` reports.

const TOUCHES = 64;
const TOLERANCE = { float16: 2e-2, float32: 1e-5, float64: 1e-12 };
const MANY = -2;

// Blocks in which something may be wrong, the counters of the grid, and which cells of P are stored to: one pass over the
// log as it is, which has millions of entries, without an object for any. A thread's log is in the order of its barriers,
// so that a cell that two threads touch between the same two shows here too.
function suspicious(made, sites) {
  const { words, threads } = made;
  const counters = { loads: 0, stores: 0, uses: 0, fills: 0, barriers: 0 };
  const found = new Set();
  const uneven = new Set(); // blocks whose threads pass different barriers: `Judge` counts those
  let raced = false; // two threads touch a cell of shared memory between the same two barriers
  let disordered = false; // and one of them reads: lockstep execution may leave other values
  let crossing = false; // two threads or blocks touch a cell of P
  let [uses, fills, loads, stores] = [0, 0, 0, 0];
  let lastStore = -1; // the last of the text: lockstep comes to it last
  const kinds = Uint8Array.from(sites, (site) => (site.hidden ? SITE.SUM : site.kind));
  const statements = Int32Array.from(sites, (site) => site.statement);
  const leads = Int32Array.from(sites, (site) => (site.guessed ? 0 : made.leads[site.dimension] ?? 0));
  const cells = made.arrays.map((array) => ({
    ...array, own: array.role === 'P', wide: array.rows === undefined ? 0 : array.pitch,
    unset: array.shared || (array.role === 'P' && !array.zeroed),
    writer: new Int32Array(array.count).fill(-1), wrote: new Int32Array(array.count), reader: new Int32Array(array.count).fill(-1), read: new Int32Array(array.count),
  }));
  const P = made.arrays.findIndex((array) => array.role === 'P');
  made.stored = new Uint8Array(made.arrays[P].count);
  const named = sites.map((site) => cells[site.array] ?? null);
  const epochs = new Int32Array(threads);
  const loading = new Int32Array(threads); // the statement in which a thread last loaded
  made.spans.forEach(([first, last], block) => {
    epochs.fill(0);
    loading.fill(-1);
    for (const array of cells) if (array.shared) { array.writer.fill(-1); array.reader.fill(-1); }
    for (let i = first; i < last; i++) {
      const at = ENTRY * i;
      const number = words[at + 5];
      const kind = kinds[number];
      if (kind === SITE.UNSET) found.add(block);
      if (kind > SITE.BARRIER || kind === SITE.SUM) continue;
      const thread = words[at + 6];
      if (kind === SITE.BARRIER) { epochs[thread] += 1; continue; }
      const array = named[number] ?? cells[arrayOf(made, sites[number], words[at])];
      const { shared } = array;
      const write = kind === SITE.WRITE;
      if (shared) {
        if (!write) uses += 1;
        else {
          if (loading[thread] !== statements[number] && !sites[number].carried) fills += 1;
          loading[thread] = -1;
        }
      } else if (write) stores += 1;
      else { loads += 1; loading[thread] = statements[number]; }
      const cell = Math.floor((words[at] - array.address) / array.size);
      if (cell < 0 || cell >= array.count) { found.add(block); continue; }
      const row = words[at + 4];
      if (leads[number] > 0 && row !== NO_ROW && array.wide) {
        const col = cell - row * leads[number];
        if (row < 0 || row >= array.rows || col < 0 || col >= array.cols || row * array.wide + col !== cell) found.add(block);
      }
      const party = shared ? thread : block * threads + thread;
      const epoch = shared ? epochs[thread] : 0;
      const writer = array.writer[cell];
      const reader = array.reader[cell];
      const written = writer !== -1 && writer !== party && array.wrote[cell] === epoch;
      const wasRead = write && reader !== -1 && reader !== party && array.read[cell] === epoch;
      if (written || wasRead) {
        if (shared) { found.add(block); raced = true; disordered ||= wasRead || !write; } else if (array.own) crossing = true;
      }
      if (write) {
        array.writer[cell] = party; array.wrote[cell] = epoch;
        if (array.own) { made.stored[cell] = 1; lastStore = Math.max(lastStore, number); }
      } else {
        if (writer === -1 && array.unset) found.add(block);
        array.reader[cell] = reader !== -1 && reader !== party && array.read[cell] === epoch ? MANY : party;
        array.read[cell] = epoch;
      }
    }
    if (epochs.every((count) => count === epochs[0])) counters.barriers += epochs[0];
    else { found.add(block); uneven.add(block); }
  });
  made.lastStore = sites[lastStore]?.line;
  if (crossing) made.spans.forEach((_, block) => found.add(block));
  return { found, counters: { ...counters, loads, stores, uses, fills }, raced, disordered, uneven };
}

// The subscripts of a cell: row and column in a matrix, one for each dimension of a __shared__ array.
function placeOf({ array, cell, row, col }) {
  if (!array.shared || array.dims.length < 3) return array.pitch ? [row, col] : [cell];
  let rest = cell;
  return array.dims.toReversed().map((length) => { const at = rest % length; rest = Math.floor(rest / length); return at; }).reverse();
}

// An access that leaves its row or its matrix, but stays in the allocation.
function leaves({ array, cell, outside, wanted, guessed }) {
  if (!wanted || guessed || outside || array.rows === undefined) return false;
  const [row, col] = wanted;
  return row < 0 || row >= array.rows || col < 0 || col >= array.cols || row * array.pitch + col !== cell;
}

// What each store to P stores in a launch with all barriers, by the number of the entry in the one without some of them:
// the nth store of a thread at a site is the same in both.
function orderedStores(made, ordered, sites) {
  const P = made.arrays.findIndex((array) => array.role === 'P');
  const stores = (log, note) => {
    const times = new Map();
    for (let i = 0; i < log.count; i++) {
      const [address, , , , , number, thread, block] = log.words.subarray(ENTRY * i, ENTRY * i + ENTRY);
      const site = sites[number];
      if (site.kind !== SITE.WRITE || site.hidden || arrayOf(log, site, address) !== P) continue;
      const who = `${block}|${thread}|${number}`;
      times.set(who, (times.get(who) ?? 0) + 1);
      note(`${who}|${times.get(who)}`, i);
    }
  };
  const known = new Map();
  const out = new Map();
  stores(ordered, (which, i) => known.set(which, ordered.values[4 * i + 1]));
  stores(made, (which, i) => { if (known.has(which)) out.set(i, known.get(which)); });
  return out;
}

class Judge {
  constructor(run, made, ordered, sites, uneven) {
    this.uneven = uneven;
    this.run = run; this.made = made; this.sites = sites;
    this.found = new Map();
    this.ordered = ordered === made || !ordered ? null : orderedStores(made, ordered, sites);
    this.held = [...(ordered ?? made).held]; // P as lockstep leaves it
    this.state = made.arrays.map((array) => (array.shared ? null : new CellStates(array)));
  }

  add(kind, line, array, more, touch, column = 0) {
    const key = [kind, line, array, more.access, more.hazard, more.scope, column].join('|');
    if (!this.found.has(key)) this.found.set(key, { kind, line, array, severity: 'fault', count: 0, touches: [], ...more });
    const finding = this.found.get(key);
    finding.count += 1;
    if (finding.touches.length < TOUCHES) finding.touches.push(touch);
  }

  // These blocks, step by step: bounds, rows, what is read before it is stored, races, barriers.
  judge(blocks) {
    const { made, sites } = this;
    this.slots = new Map(blocks.map((block, i) => [block, i]));
    this.epochs = new Int32Array(blocks.length);
    made.arrays.forEach((array, i) => { if (array.shared) this.state[i] = new CellStates(array, blocks.length); });
    this.exited = new Set(); // threads that have returned
    let phase = 0; let read = false; let now = null;
    const steps = stepsOf(made, sites, blocks);
    const filling = fillingOf(made, sites, steps);
    for (const step of steps) {
      const site = sites[step.site];
      if (site.kind === SITE.BARRIER) { this.barrier(step, phase); continue; }
      if (site.kind === SITE.EXIT) { for (const i of step.entries) this.exited.add(this.party(i)); continue; }
      if (site.kind === SITE.SUM) continue;
      if (site.kind === SITE.UNSET) { this.unset(site, step, phase); continue; }
      const cells = step.entries.map((i) => ({ i, block: made.words[ENTRY * i + 7], thread: made.words[ENTRY * i + 6], party: this.party(i), ...cellOf(made, site, i) }));
      const { shared } = cells[0].array;
      if (site.statement && (!now || now.place !== step.place || now.statement !== site.statement)) {
        now = { place: step.place, statement: site.statement };
        if (read && filling.has(site.statement)) { phase += 1; read = false; }
      }
      this.step(site, cells, shared, phase);
      read = read || (shared && site.kind === SITE.READ);
    }
  }

  party(i) { return this.made.words[ENTRY * i + 7] * this.made.threads + this.made.words[ENTRY * i + 6]; }

  step(site, cells, shared, phase) {
    const write = site.kind === SITE.WRITE;
    const access = shared ? (write ? 'write' : 'read') : write ? 'store' : 'load';
    const inside = [];
    for (const at of cells) {
      const touch = (asked, reached) => ({ block: at.block, thread: at.thread, phase, asked, reached });
      const place = placeOf(at);
      if (at.outside) this.add('out-of-bounds', site.line, at.array.name, { access }, touch(at.wanted ?? (shared ? [at.cell] : place), null), site.column);
      else {
        if (leaves(at)) this.add('silent-overrun', site.line, at.array.name, { access }, touch(at.wanted, place), site.column);
        const slot = this.slots.get(at.block);
        inside.push({
          ...at, place, phase, epoch: this.epochs[slot], cell: at.cell + (shared ? slot * at.array.count : 0), value: this.ordered?.get(at.i) ?? this.made.values[4 * at.i + 1],
        });
      }
    }
    if (write && cells[0].array.role === 'P') {
      for (const at of inside) this.held[at.cell] = at.value;
    }
    if (inside.length) this.state[inside[0].number][write ? 'write' : 'read'](this, site, inside, access);
  }

  // A register that is read before it has a value.
  unset(site, step, phase) {
    for (const i of step.entries) {
      const [thread, block] = this.made.words.slice(ENTRY * i + 6, ENTRY * i + 8);
      this.add('uninitialised-read', site.line, site.name, { access: 'register' }, { block, thread, phase, asked: [], reached: [] });
    }
  }

  // Threads that are not here and have not returned: they never reach this barrier.
  barrier(step, phase) {
    const here = new Set(step.entries.map((i) => this.party(i)));
    const line = this.made.words[ENTRY * step.entries[0] + 4] - 1;
    for (const block of new Set(step.entries.map((i) => this.made.words[ENTRY * i + 7]))) {
      this.epochs[this.slots.get(block)] += 1;
      if (this.uneven.has(block)) this.run.trace.counters.barriers += 1;
      for (let thread = 0; thread < this.made.threads; thread++) {
        const party = block * this.made.threads + thread;
        if (!here.has(party) && !this.exited.has(party)) {
          this.add('divergent-barrier', line, '', { access: 'barrier' }, { block, thread, phase, asked: [], reached: null });
        }
      }
    }
  }

  // Cells of P that nothing stored to, and cells that are not the product. `held`: P of a launch with all barriers, which
  // order the threads as lockstep does; null: P of this launch, where a race may be the reason.
  product(operands, held) {
    const { made } = this;
    const P = made.arrays.find((array) => array.role === 'P');
    const none = { block: null, thread: null, phase: 0, reached: null };
    made.stored.forEach((there, i) => {
      if (!there) this.add('uncovered', settings.compute.line, P.name, { access: 'launch' }, { ...none, asked: [Math.floor(i / P.cols), i % P.cols] });
    });
    const race = held ? null : this.sharedRace;
    const wrong = this.wrongCells(operands, held ?? made.held);
    if (race && wrong.length) race.wrong = { cells: wrong.length, ...wrong[0] };
    else for (const one of wrong) this.add('wrong-product', made.lastStore, P.name, { access: 'store', wrong: { cells: wrong.length, ...wrong[0] } }, { ...none, asked: one.cell });
  }

  wrongCells(operands, held) {
    const [m, k, n] = this.made.shape;
    const { dtype } = this.made.arrays.find((array) => array.role === 'P');
    const tolerance = TOLERANCE[dtype];
    const wrong = [];
    for (let row = 0; row < m; row++) {
      for (let col = 0; col < n; col++) {
        if (!this.made.stored[row * n + col]) continue;
        let expected = 0; let scale = 1e-30;
        for (let i = 0; i < k; i++) {
          const part = operands.M[row * k + i] * operands.N[i * n + col];
          expected += part; scale += Math.abs(part);
        }
        const found = held[row * n + col];
        const right = tolerance ? Math.abs(found - expected) <= tolerance * scale : wholeIs(found, expected, dtype);
        if (!right) wrong.push({ cell: [row, col], held: found, expected });
      }
    }
    return wrong;
  }

  get sharedRace() { return [...this.found.values()].find((f) => f.kind === 'race' && (f.access === 'read' || f.access === 'write')); }

  // What a race did to P, as an example beside it.
  raced(operands) {
    const race = this.sharedRace;
    const wrong = race ? this.wrongCells(operands, this.made.held) : [];
    if (wrong.length) race.wrong = { cells: wrong.length, ...wrong[0] };
    return wrong.map(({ cell }) => cell);
  }

  // The findings as the page shows them; faults of the product last.
  findings() {
    const order = [...this.found.values()].sort((a, b) => a.line - b.line || a.kind.localeCompare(b.kind));
    return order.map((f) => ({ ...f, sentences: Object.fromEntries(Object.keys(settings.languages).map((code) => [code, sentenceOf(this.run, f, code)])) }));
  }
}

// A sum of integers that does not fit wraps, or is clipped.
function wholeIs(found, expected, dtype) {
  const bits = Number(dtype.replace(/\D/g, ''));
  const [low, high] = dtype.startsWith('u') ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
  const wrapped = expected - 2 ** bits * Math.floor((expected - low) / 2 ** bits);
  const clipped = [low, -high].some((least) => found === Math.min(high, Math.max(least, expected)));
  return found === wrapped || ((expected <= low || expected > high) && clipped);
}

// The last writer and readers of each cell of an array: in shared memory of one instance for each block.
class CellStates {
  constructor(array, instances = 1) {
    const n = array.count * instances;
    this.shared = array.shared;
    this.writer = new Float64Array(n).fill(-1); this.wrote = new Int32Array(n); this.writeSite = new Int32Array(n);
    this.reader = new Float64Array(n).fill(-1); this.readAt = new Int32Array(n); this.readSite = new Int32Array(n);
    this.otherSite = new Int32Array(n); this.manyThreads = new Uint8Array(n); this.manyBlocks = new Uint8Array(n);
    this.kept = new Float64Array(n);
    this.filled = array.shared || (array.role === 'P' && !array.zeroed) ? new Uint8Array(n) : null;
    this.tracked = array.shared || array.role === 'P';
  }

  // A race of this access with an earlier one: of another block, or since the same barrier.
  report(judge, site, at, access, hazard, { other, same, when, line }) {
    if (same && when !== at.epoch) return;
    const { threads } = judge.made;
    const known = other >= 0 && other !== at.party;
    judge.add('race', site.line, at.array.name, { access, hazard, scope: same ? 'within a block' : 'between blocks', otherLine: line }, {
      block: at.block, thread: at.thread, phase: at.phase, asked: at.place, reached: at.place,
      other: known ? [Math.floor(other / threads), other % threads] : null,
    }, site.column);
  }

  againstWriter(judge, site, cells, access, hazard, harmless) {
    for (const at of cells) {
      const other = this.writer[at.cell];
      if (other < 0 || other === at.party || harmless(at)) continue;
      const same = this.shared || Math.floor(other / judge.made.threads) === at.block;
      this.report(judge, site, at, access, hazard, { other, same, when: this.wrote[at.cell], line: this.writeSite[at.cell] });
    }
  }

  read(judge, site, cells, access) {
    if (!this.tracked) return;
    const { threads } = judge.made;
    for (const at of cells) {
      if (this.filled && !this.filled[at.cell]) {
        judge.add('uninitialised-read', site.line, at.array.name, { access }, { block: at.block, thread: at.thread, phase: at.phase, asked: at.place, reached: at.place }, site.column);
      }
    }
    this.againstWriter(judge, site, cells, access, 'RAW', () => false);
    const before = cells.map((at) => [this.reader[at.cell], this.readAt[at.cell], this.readSite[at.cell]]);
    cells.forEach((at, i) => {
      const [reader, when, line] = before[i];
      if (reader < 0) return;
      if (when !== at.epoch) this.manyThreads[at.cell] = 0;
      else if (reader !== at.party) { this.manyThreads[at.cell] = 1; this.otherSite[at.cell] = line; }
      if (!this.shared && Math.floor(reader / threads) !== at.block) this.manyBlocks[at.cell] = 1;
    });
    for (const at of cells) { this.reader[at.cell] = at.party; this.readAt[at.cell] = at.epoch; this.readSite[at.cell] = site.line; }
    for (const at of cells) {
      const now = this.reader[at.cell];
      if (now === at.party) continue;
      this.manyThreads[at.cell] = 1; this.otherSite[at.cell] = site.line;
      if (!this.shared && Math.floor(now / threads) !== at.block) this.manyBlocks[at.cell] = 1;
    }
  }

  write(judge, site, cells, access) {
    const { threads } = judge.made;
    if (this.tracked) {
      for (const at of cells) {
        const other = this.reader[at.cell];
        if (other < 0 || (other === at.party && !this.manyThreads[at.cell] && !this.manyBlocks[at.cell])) continue;
        const same = (this.shared || Math.floor(other / threads) === at.block) && !this.manyBlocks[at.cell];
        const line = other === at.party ? this.otherSite[at.cell] : this.readSite[at.cell];
        this.report(judge, site, at, access, 'WAR', { other, same, when: this.readAt[at.cell], line });
      }
      this.againstWriter(judge, site, cells, access, 'WAW', (at) => (this.shared ? Object.is(this.kept[at.cell], at.value) : this.kept[at.cell] === at.value));
    }
    for (const at of cells) {
      this.writer[at.cell] = at.party; this.wrote[at.cell] = at.epoch; this.writeSite[at.cell] = site.line; this.kept[at.cell] = at.value;
      if (this.filled) this.filled[at.cell] = 1;
    }
    // two threads, one cell, one statement: a race only if the values differ
    if (this.tracked) this.againstWriter(judge, site, cells, access, 'WAW', (at) => (this.shared ? Object.is(this.kept[at.cell], at.value) : this.kept[at.cell] === at.value));
  }
}

function sentenceOf(run, f, code) {
  let key = `finding.${f.kind}`;
  if (f.kind === 'race') key += `.${f.hazard}${f.scope === 'between blocks' ? '.blocks' : ''}`;
  else if (f.kind === 'out-of-bounds' || f.kind === 'silent-overrun') key += f.access === 'store' || f.access === 'write' ? '.store' : '.load';
  const [touch] = f.touches;
  const cell = (at) => f.array + (at ?? []).map((i) => `[${i}]`).join('');
  const values = {
    count: f.count, array: f.array, line: f.line || '–', phase: touch?.phase ?? '–',
    thread: touch?.thread === null ? '–' : run.threadName(touch.thread), block: touch?.block === null ? '–' : run.blockName(touch.block),
    asked: cell(touch?.asked), reached: cell(touch?.reached), otherLine: f.otherLine ?? '–',
    other: touch?.other ? sayIn(code, 'word.thread.named', { thread: run.threadName(touch.other[1]) }) : sayIn(code, 'word.thread.other'),
  };
  const more = f.wrong ? sayIn(code, f.kind === 'race' ? 'wrong.first' : 'wrong.together', { cells: f.wrong.cells, cell: (f.kind === 'race' ? run.matrices.P.name : f.array) + f.wrong.cell.map((i) => `[${i}]`).join(''), held: number(f.wrong.held), expected: number(f.wrong.expected) }) : '';
  return `${sayIn(code, key, values)} ${more}`.trim();
}
