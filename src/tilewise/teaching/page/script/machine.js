// The kernel as WebAssembly in record mode: a launch at any shape fills a log, and the log is what `Computed` shows.
// The module imports its memory, its stack pointer and functions of numbers, and exports run_blocks.

const ENTRY = 8; // words of 32 bits of an entry: address (2), value (2), row, site, thread, block
const APART = 1 << 16; // bytes between two arrays, so that an index beyond one does not reach another

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// Memories with 64-bit addresses: Chromium and Edge 133, Firefox 134.
function computes() {
  try {
    return Boolean(new WebAssembly.Memory({ initial: 1n, maximum: 1n, address: 'i64' }));
  } catch { return false; }
}

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
};
const NUMBERS = {
  fabs: Math.abs, fmax: Math.max, fmin: Math.min, fmod: (a, b) => a % b, exp2: (x) => 2 ** x, exp10: (x) => 10 ** x,
  fma: (a, b, c) => a * b + c, round: (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5),
  rint: (x) => { const r = Math.round(x); return r - x === 0.5 && r % 2 ? r - 1 : r; },
};
function numeric(name) {
  const plain = name.replace(/^host\./, '').replace(/f$/, '');
  return NUMBERS[plain] ?? Math[plain];
}

class Machine {
  constructor(given, module) {
    this.given = given;
    this.memory = new WebAssembly.Memory({ initial: BigInt(given.pages), maximum: BigInt(given.pages), address: 'i64' });
    this.image = given.image.map(([address, text]) => [address, bytesOf(text)]);
    this.reports = [];
    const env = {
      __linear_memory: this.memory,
      __stack_pointer: new WebAssembly.Global({ value: 'i64', mutable: true }, BigInt(given.stack)),
    };
    for (const name of given.imports) env[name] = numeric(name) ?? ((...values) => { this.reports.push([name, values]); });
    this.instance = new WebAssembly.Instance(module, { env });
    this.used = 0; // bytes of the card's memory that the last launch had
  }

  static async load(packed) {
    const given = await unpack(packed);
    return new Machine(given, await WebAssembly.compile(bytesOf(given.binary)));
  }

  // A formula of the shape: the ith of (1, m, k, n, m · n), divided and rounded up.
  static of([i, d], [m, k, n]) { return i ? Math.ceil([1, m, k, n, m * n][i] / d) : d; }

  // Run the kernel with these operands; `drops` has a bit for each check and barrier that is left out.
  launch(shape, operands, drops) {
    const { given, memory } = this;
    const bytes = new Uint8Array(memory.buffer);
    const view = new DataView(memory.buffer);
    bytes.fill(0, given.device, given.device + this.used);
    bytes.fill(0, given.device + given.shift, given.device + given.shift + this.used);
    for (const [address, part] of this.image) bytes.set(part, address);
    const arrays = this.place(bytes, view, shape, operands);
    const at = Object.fromEntries(arrays.map((array) => [array.role, array.address]));
    for (const [address, kind, value] of given.arguments) {
      if (kind === 'pointer') view.setBigUint64(address, BigInt(at[value]), true);
      else this.write(view, address, kind, Array.isArray(value) ? Machine.of(value, shape) : value);
    }
    const grid = given.grid.map((part) => Machine.of(part, shape));
    grid.forEach((value, i) => view.setUint32(given.gridDim + 4 * i, value, true));
    given.block.forEach((value, i) => view.setUint32(given.blockDim + 4 * i, value, true));
    if (given.drops) view.setInt32(given.drops, drops, true);
    view.setBigInt64(given.log, 0n, true);
    this.reports.length = 0;
    const threads = given.block.reduce((a, b) => a * b, 1);
    const blocks = grid.reduce((a, b) => a * b, 1);
    const run = this.instance.exports.run_blocks;
    run(BigInt(given.arguments_at), 0n, BigInt(blocks), BigInt(threads), BigInt(given.dynamic));
    const wanted = Number(view.getBigInt64(given.log, true));
    const count = Math.min(wanted, given.capacity);
    const log = memory.buffer.slice(given.entries, given.entries + 4 * ENTRY * count);
    const shared = given.shared.map(([name, address, size, dims]) => ({
      name, role: '', address, size, shared: true, dims, count: dims.reduce((a, b) => a * b, 1),
      pitch: dims.length > 1 ? dims.at(-1) : 0, ...(dims.length === 2 ? { rows: dims[0], cols: dims[1] } : {}),
    }));
    const leads = Object.fromEntries(Object.entries(given.leads).map(([name, value]) => [name, Machine.of(value, shape)]));
    for (const [, , , , , length] of given.sites) if (Number(length) > 0) leads[length] = Number(length); // of a row in shared memory
    return {
      shape, grid, block: given.block, threads, blocks, lost: wanted - count, leads, arrays: [...arrays, ...shared],
      words: new Int32Array(log), values: new Float64Array(log), count, reports: this.reports.map(([name]) => name),
      held: this.read(arrays.find((array) => array.role === 'P')),
    };
  }

  // M, N and P in the card's memory, with the states of their bytes: 4 uninitialised, 6 initialised.
  place(bytes, view, [m, k, n], operands) {
    const { given } = this;
    const sides = { M: [m, k], N: [k, n], P: [m, n] };
    let address = given.device + APART;
    const made = Object.entries(given.matrices).map(([role, { name, dtype, zeroed }]) => {
      const [rows, cols] = sides[role];
      const size = ARRAYS[dtype].BYTES_PER_ELEMENT;
      const array = { name, role, dtype, address, size, rows, cols, pitch: cols, count: rows * cols, shared: false, zeroed };
      const filled = role !== 'P' || zeroed;
      if (role !== 'P') operands[role].forEach((value, i) => this.write(view, address + i * size, dtype, value));
      else if (!zeroed) bytes.fill(255, address, address + array.count * size);
      bytes.fill(filled ? 6 : 4, address + given.shift, address + given.shift + array.count * size);
      address += Math.ceil((array.count * size) / 256) * 256 + APART;
      return array;
    });
    this.used = address - given.device;
    return made;
  }

  write(view, address, kind, value) {
    const whole = kind.includes('64') && kind !== 'float64';
    const name = kind.replace('float', 'Float').replace('uint', 'Uint').replace(/^int/, 'Int');
    view[`set${whole ? 'Big' : ''}${name}`](address, whole ? BigInt(Math.trunc(value)) : value, true);
  }

  read({ dtype, address, count }) {
    const held = new ARRAYS[dtype](this.memory.buffer.slice(address, address + count * ARRAYS[dtype].BYTES_PER_ELEMENT));
    return Array.from(held, Number);
  }
}

// M counts 1, 2, 3, … and N goes on at the next ten, as in the recorded runs; `seed` gives small random numbers.
function operandsOf(shape, seed, matrices) {
  const drawn = seed === null ? counted(shape) : random(shape, seed);
  for (const role of ['M', 'N']) {
    const { dtype } = matrices[role];
    drawn[role] = Array.from(dtype.includes('int64') ? drawn[role] : ARRAYS[dtype].from(drawn[role]));
  }
  return drawn;
}

function counted([m, k, n]) {
  const start = Math.floor((m * k) / 10) * 10 + 11;
  return { M: Array.from({ length: m * k }, (_, i) => i + 1), N: Array.from({ length: k * n }, (_, i) => start + i) };
}

function random([m, k, n], seed) {
  let state = (seed + 1) * 2654435761 % 4294967296;
  const next = () => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return state / 4294967296; };
  const draw = () => (Math.floor(next() * 16) + 1) * (next() < 0.5 ? -1 : 1);
  return { M: Array.from({ length: m * k }, draw), N: Array.from({ length: k * n }, draw) };
}
