// A trace as packed in the file: unpacked when it is needed, and indexed by block.

const KIND = { LOAD: 0, FILL: 1, STORE: 2, USE: 3, SUM: 4, BARRIER: 5 };

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

// A linear number as CUDA names it, x first; with z where there is a third dimension.
function nameOf(number, [x, y, z]) {
  const rest = number % (x * y);
  return [rest % x, Math.floor(rest / x), ...(z > 1 ? [Math.floor(number / (x * y))] : [])];
}

const linear = ([x, y, z = 0], sides) => (z * sides[1] + y) * sides[0] + x;

// (x 1, y 0) in sentences, x1 y0 in labels.
const coordinates = (name, brief = false) => {
  const parts = name.map((at, i) => `${'xyz'[i]}${brief ? '' : ' '}${at}`);
  return brief ? parts.join(' ') : `(${parts.join(', ')})`;
};

class Run {
  constructor(scene) {
    this.title = scene.title;
    this.drops = scene.drops;
    this.schedule = Boolean(scene.schedule); // one thread at a time, in an order that fails
    this.wrongCells = scene.wrong ?? null; // of P, as this order left it
    this.changed = new Set(scene.changed);
    this.trace = scene.trace;
    this.columns = scene.trace.events;
    this.names = scene.trace.names;
    this.across = scene.trace.grid[0];
    this.wide = scene.trace.block[0];
    this.threads = scene.trace.block[0] * scene.trace.block[1] * scene.trace.block[2];
    this.matrices = scene.trace.matrices;
    this.roles = Object.fromEntries(Object.entries(this.matrices).map(([role, m]) => [m.name, role]));
    this.known = new Map();
    this.accesses = [];
  }

  blockName(block) { return coordinates(nameOf(block, this.trace.grid)); }
  threadName(thread) { return coordinates(nameOf(thread, this.trace.block)); }
  threadLabel(thread) { return coordinates(nameOf(thread, this.trace.block), true); }

  // The rows of one block, its frames, and where its tiles lie.
  block(number) {
    if (!this.known.has(number)) {
      const rows = [];
      this.columns.block.forEach((block, i) => { if (block === number) rows.push(i); });
      const frames = framesOf(this.columns, rows, rows.map((i) => this.columns.step[i]));
      for (const frame of frames) Object.assign(frame, lasting(this.columns, frame.rows));
      const made = { number, rows, frames };
      made.geometry = geometryOf(this, made);
      this.known.set(number, made);
    }
    return this.known.get(number);
  }

  // A load, fill or store, with how it ended; null for the other events.
  access(i) {
    return (this.accesses[i] ??= this.readAccess(i));
  }

  readAccess(i) {
    const c = this.columns;
    const kind = c.kind[i];
    if (kind > KIND.STORE) return null;
    const requested = [c.row[i], c.col[i]];
    const base = { thread: c.thread[i], value: c.value[i], line: c.line[i], store: kind === KIND.STORE };
    if (kind === KIND.FILL) {
      return { ...base, how: 'filled', array: '', requested, reached: requested, target: this.names[c.array[i]], put: requested };
    }
    const reached = c.got_row[i] === null ? null : [c.got_row[i], c.got_col[i]];
    const how = !reached ? 'outside' : same(reached, requested) ? 'loaded' : 'silent';
    const goes = c.to_array[i] >= 0 && c.to_row[i] !== null;
    return {
      ...base, how, requested, reached,
      array: this.names[c.array[i]],
      target: goes ? this.names[c.to_array[i]] : '',
      put: goes ? [c.to_row[i], c.to_col[i]] : null,
    };
  }
}

// The effect of a frame on later steps: its number of reads, and the last value of each register.
function lasting(c, rows) {
  const last = new Map();
  for (const i of rows) if (c.kind[i] === KIND.SUM) last.set(`${c.array[i]}|${c.thread[i]}`, i);
  return {
    uses: rows.filter((i) => c.kind[i] === KIND.USE).length,
    kept: rows.filter((i) => c.kind[i] !== KIND.USE && (c.kind[i] !== KIND.SUM || last.get(`${c.array[i]}|${c.thread[i]}`) === i)),
  };
}

const same = (one, two) => one[0] === two[0] && one[1] === two[1];

// The positions of tiles and strips, from the source and destination of loaded cells.
function geometryOf(run, block) {
  const feeds = {}; const sizes = {}; const tiles = {}; const extent = {};
  const uses = new Map();
  for (const frame of block.frames) {
    for (const i of frame.rows) {
      if (run.columns.kind[i] === KIND.USE) noteUse(run, uses, sizes, i);
      const a = run.access(i);
      if (!a) continue;
      if (a.array) {
        const e = (extent[a.array] ??= { rows: 0, cols: 0, top: Infinity, left: Infinity });
        e.rows = Math.max(e.rows, a.requested[0] + 1); e.cols = Math.max(e.cols, a.requested[1] + 1);
        e.top = Math.min(e.top, a.requested[0]); e.left = Math.min(e.left, a.requested[1]);
      }
      if (!a.put) continue;
      const size = (sizes[a.target] ??= [0, 0]);
      size[0] = Math.max(size[0], a.put[0] + 1); size[1] = Math.max(size[1], a.put[1] + 1);
      if (a.array) {
        feeds[a.target] ??= a.array;
        (tiles[a.array] ??= {})[frame.phase] ??= [a.requested[0] - a.put[0], a.requested[1] - a.put[1]];
      }
    }
  }
  return { feeds, sizes, tiles, extent, uses, ...stripsOf(run, feeds, sizes, tiles, extent) };
}

function noteUse(run, uses, sizes, i) {
  const c = run.columns;
  const size = (sizes[run.names[c.array[i]]] ??= [0, 0]);
  size[0] = Math.max(size[0], c.row[i] + 1); size[1] = Math.max(size[1], c.col[i] + 1);
  const key = `${c.thread[i]}|${run.names[c.array[i]]}`;
  if (!uses.has(key)) uses.set(key, { rows: new Set(), cols: new Set() });
  uses.get(key).rows.add(c.row[i]);
  uses.get(key).cols.add(c.col[i]);
}

// Rows of M and columns of N that the block works on, as [first, count].
function stripsOf(run, feeds, sizes, tiles, extent) {
  const strips = { rows: null, cols: null };
  const axis = { M: ['rows', 0], N: ['cols', 1] };
  for (const [shared, array] of Object.entries(feeds)) {
    const role = axis[run.roles[array]];
    if (role) strips[role[0]] = [Object.values(tiles[array])[0][role[1]], sizes[shared][role[1]]];
  }
  for (const [array, e] of Object.entries(extent)) {
    const role = axis[run.roles[array]];
    if (role && !strips[role[0]]) {
      strips[role[0]] = role[1] === 0 ? [e.top, e.rows - e.top] : [e.left, e.cols - e.left];
    }
  }
  return { strips };
}
