// One block's log in the order of lockstep execution: events in columns, and the frames of the explanation. The log has
// the events thread by thread; its marks say in which iteration of which loop, and in which call, each one happened.

const SITE = { READ: 0, WRITE: 1, SUM: 2, BARRIER: 3, LOOP: 4, ITERATION: 5, CALL: 6, LEAVE: 7, UNSET: 8, EXIT: 9 };
const NO_ROW = -(2 ** 31);

// What the text says about each site, with the number of the array that it names.
function sitesOf(given, arrays) {
  const numbers = new Map(arrays.map((array, i) => [array.name, i]));
  const known = given.sites.map(([kind, line, statement, name, array, dimension, carried, column]) => ({
    kind, line, column, statement, name, dimension: dimension.replace('~', ''), guessed: dimension.startsWith('~'), carried: Boolean(carried), hidden: array === 'tilewise_drops',
    array: numbers.get(array) ?? -1,
  }));
  return known;
}

class Place {
  constructor() { this.entries = new Map(); this.inner = new Map(); }
  inside(site, number) {
    let found = this.inner.get(site);
    if (!found) this.inner.set(site, found = []);
    while (found.length <= number) found.push(new Place());
    return found[number];
  }
}

// The steps of these blocks, which run in lockstep, too: { site, place, entries }.
function stepsOf(made, sites, blocks) {
  const root = new Place();
  for (const block of blocks) placeEntries(made, sites, root, ...made.spans[block]);
  const out = [];
  walkPlace(root, out);
  return out;
}

function placeEntries(made, sites, root, first, last) {
  const open = Array.from({ length: made.threads }, () => [{ place: root, loop: -1, count: 0 }]);
  for (let i = first; i < last; i++) {
    const number = made.words[ENTRY * i + 5];
    const site = sites[number];
    if (site.hidden || (site.kind === SITE.BARRIER && made.without?.has(made.words[ENTRY * i + 4] - 1))) continue;
    const places = open[made.words[ENTRY * i + 6]];
    const top = places[places.length - 1];
    if (site.kind <= SITE.BARRIER || site.kind >= SITE.UNSET) {
      const there = top.place.entries.get(number);
      if (there) there.push(i); else top.place.entries.set(number, [i]);
    } else if (site.kind === SITE.LOOP) places.push({ place: top.place, loop: number, count: -1 });
    else if (site.kind === SITE.ITERATION) {
      top.count += 1;
      top.place = places[places.length - 2].place.inside(top.loop, top.count);
    } else if (site.kind === SITE.CALL) places.push({ place: top.place.inside(number, 0), loop: -1, count: 0 });
    else places.pop();
  }
}

function walkPlace(place, out) {
  const sites = [...new Set([...place.entries.keys(), ...place.inner.keys()])].sort((a, b) => a - b);
  for (const site of sites) {
    const entries = place.entries.get(site);
    if (entries) out.push({ site, place, entries });
    for (const inner of place.inner.get(site) ?? []) walkPlace(inner, out);
  }
}

// The array of an entry: the one that the text names, else the nearest one.
function arrayOf(made, site, address) {
  if (site.array >= 0) return site.array;
  let best = 0; let least = Infinity;
  made.arrays.forEach((array, i) => {
    const apart = Math.max(array.address - address, address - (array.address + array.size * array.count - 1));
    if (apart < least) { least = apart; best = i; }
  });
  return best;
}

// The cell of an entry: { array, cell, row, col, outside, wanted } where `wanted` is the cell its row asks for.
function cellOf(made, site, i) {
  const address = made.words[ENTRY * i];
  const number = arrayOf(made, site, address);
  const array = made.arrays[number];
  const cell = Math.floor((address - array.address) / array.size);
  const row = array.pitch ? Math.floor(cell / array.pitch) : 0;
  const col = cell - row * array.pitch;
  const at = { number, array, cell, row, col, outside: cell < 0 || cell >= array.count, wanted: null, guessed: site.guessed };
  const lead = made.leads[site.dimension];
  const requested = made.words[ENTRY * i + 4];
  if (lead > 0 && requested !== NO_ROW && array.pitch) at.wanted = [requested, cell - requested * lead];
  return at;
}

// For each load of global memory the entry that stores to shared memory in the same statement; which stores have one.
function destinations(made, sites, first, last) {
  const to = new Map(); const linked = new Set(); const pending = new Map();
  for (let i = first; i < last; i++) {
    const site = sites[made.words[ENTRY * i + 5]];
    if (site.kind > SITE.WRITE || site.hidden) continue;
    const { shared } = made.arrays[arrayOf(made, site, made.words[ENTRY * i])];
    const thread = made.words[ENTRY * i + 6];
    if (site.kind === SITE.READ && !shared) {
      const before = pending.get(thread);
      if (before && before.statement === site.statement) before.loads.push(i);
      else pending.set(thread, { statement: site.statement, loads: [i] });
    } else if (site.kind === SITE.WRITE && shared) {
      const before = pending.get(thread);
      if (before && site.statement && before.statement === site.statement) {
        for (const load of before.loads) to.set(load, i);
        linked.add(i);
      }
      pending.delete(thread);
    }
  }
  return { to, linked };
}

// Adds a block's events to `columns`; its rows and frames. `asRun`: thread by thread, as the threads ran.
function orderedBlock(run, made, sites, number, asRun) {
  const [first, last] = made.spans[number];
  const { to, linked } = destinations(made, sites, first, last);
  const steps = inPhases(made, sites, stepsOf(made, sites, [number]));
  const c = run.columns;
  const rows = []; const cuts = [];
  for (const step of asRun ? asTheyRan(made, steps) : steps) {
    const site = sites[step.site];
    for (const i of step.entries) {
      const kind = site.kind >= SITE.UNSET ? null : kindOf(made, sites, site, i, linked);
      if (kind === null) continue;
      rows.push(c.kind.length);
      cuts.push(step.cut);
      pushEvent(run, made, sites, site, i, kind, number, step.phase, to.get(i));
    }
  }
  return { number, rows, frames: framesOf(c, rows, cuts) };
}

const isShared = (made, sites, step) => made.arrays[arrayOf(made, sites[step.site], made.words[ENTRY * step.entries[0]])].shared;

// The statements that store to shared memory.
function fillingOf(made, sites, steps) {
  const filling = new Set(steps.filter((s) => sites[s.site].kind === SITE.WRITE && isShared(made, sites, s)).map((s) => sites[s.site].statement));
  filling.delete(0);
  return filling;
}

// With the phase of each step, which ends where shared memory is stored to after it was read, and the number of its
// statement's execution.
function inPhases(made, sites, steps) {
  const filling = fillingOf(made, sites, steps);
  let phase = 0; let read = false; let now = null; let cut = 0;
  for (const step of steps) {
    const site = sites[step.site];
    if (!site.statement || now?.place !== step.place || now.statement !== site.statement) {
      now = { place: step.place, statement: site.statement };
      if (filling.has(site.statement) && read) { phase += 1; read = false; }
      cut += 1;
    }
    Object.assign(step, { phase, cut });
    read = read || (site.kind === SITE.READ && isShared(made, sites, step));
  }
  return steps;
}

// Each entry as a step of its own, in the order of the log.
function asTheyRan(made, steps) {
  const out = steps.flatMap(({ site, phase, cut, entries }) => entries.map((i) => ({ site, phase, statement: cut, entries: [i] })))
    .sort((a, b) => a.entries[0] - b.entries[0]);
  let before = null; let cut = 0;
  for (const step of out) {
    const thread = made.words[ENTRY * step.entries[0] + 6];
    if (before?.statement !== step.statement || before.thread !== thread) cut += 1;
    before = { statement: step.statement, thread };
    step.cut = cut;
  }
  return out;
}

function kindOf(made, sites, site, i, linked) {
  if (site.kind === SITE.SUM) return KIND.SUM;
  if (site.kind === SITE.BARRIER) return KIND.BARRIER;
  const { shared } = made.arrays[arrayOf(made, site, made.words[ENTRY * i])];
  if (site.kind === SITE.READ) return shared ? KIND.USE : KIND.LOAD;
  if (!shared) return KIND.STORE;
  return linked.has(i) || site.carried ? null : KIND.FILL;
}

function pushEvent(run, made, sites, site, i, kind, block, phase, target) {
  const c = run.columns;
  const value = made.values[4 * i + 1];
  c.kind.push(kind); c.phase.push(phase); c.block.push(block); c.thread.push(made.words[ENTRY * i + 6]);
  if (kind >= KIND.SUM) {
    c.array.push(kind === KIND.SUM ? run.numberOf(site.name) : -1);
    c.line.push(kind === KIND.SUM ? site.line : made.words[ENTRY * i + 4] - 1);
    c.row.push(null); c.col.push(null); c.got_row.push(null); c.got_col.push(null);
  } else {
    const at = cellOf(made, site, i);
    c.array.push(at.number); c.line.push(site.line);
    const [row, col] = (!at.array.shared && at.wanted) || [at.row, at.col];
    c.row.push(row); c.col.push(col);
    c.got_row.push(at.outside ? null : at.row); c.got_col.push(at.outside ? null : at.col);
  }
  c.value.push(kind === KIND.BARRIER || Number.isNaN(value) ? null : value);
  const put = target === undefined ? null : cellOf(made, sites[made.words[ENTRY * target + 5]], target);
  c.to_array.push(put ? put.number : -1); c.to_row.push(put ? put.row : null); c.to_col.push(put ? put.col : null);
}

// Frames: the block loads a tile (both branches of a check), every thread computes one product, the block is at a
// barrier, P is written. `cuts` has the step of each row.
function framesOf(c, rows, cuts) {
  const frames = [];
  let before = null;
  for (let first = 0; first < rows.length;) {
    let last = first + 1;
    while (last < rows.length && cuts[last] === cuts[first]) last += 1;
    const step = stepOf(c, rows.slice(first, last));
    const frame = frames[frames.length - 1];
    if (frame && frame.stage === step.stage && frame.phase === step.phase && joins(before, step)) {
      frame.rows.push(...step.rows);
      for (const touch of step.touches) before.touches.add(touch);
      before.summed ||= step.sums;
    } else {
      frames.push({ stage: step.stage, phase: step.phase, rows: step.rows });
      before = { ...step, summed: step.sums };
    }
    first = last;
  }
  return frames;
}

function joins(before, step) {
  const free = () => { for (const touch of step.touches) if (before.touches.has(touch)) return false; return true; };
  if (step.stage === 'load' || step.stage === 'store') return step.target === before.target && free();
  if (step.stage === 'use') return step.sums || (!before.summed && free());
  return false;
}

function stepOf(c, rows) {
  const has = (kind) => rows.find((i) => c.kind[i] === kind);
  let stage = 'use'; let target = -1;
  const fill = has(KIND.FILL);
  const load = rows.find((i) => c.kind[i] === KIND.LOAD && c.to_array[i] >= 0);
  if (has(KIND.BARRIER) !== undefined) stage = 'barrier';
  else if (has(KIND.STORE) !== undefined) { stage = 'store'; target = c.array[rows[0]]; }
  else if (fill !== undefined) { stage = 'load'; target = c.array[fill]; }
  else if (load !== undefined) { stage = 'load'; target = c.to_array[rows.find((i) => c.to_array[i] >= 0)]; }
  const touches = new Set(rows.map((i) => c.thread[i] * 64 + (stage === 'use' ? c.array[i] : target)));
  return { stage, phase: c.phase[rows[0]], rows, target, touches, sums: rows.every((i) => c.kind[i] === KIND.SUM) };
}
