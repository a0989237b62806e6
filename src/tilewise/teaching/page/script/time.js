// A time axis: the warps of one multiprocessor over the cycles of this kernel's first phases. A warp whose load is on its
// way cannot run; others fill the gap. A model: one instruction a cycle, a fixed latency, in the order of arrival.

const LATENCY = 400; const INSTRUCTION = 4; // cycles; what a step of the inner product costs a warp

// Every warp's pieces [kind, from, to] and how long the unit was busy, for so many resident blocks.
function schedule(warps, blocks, phases, loads, steps) {
  const clock = Array.from({ length: warps * blocks }, () => 0);
  const pieces = clock.map(() => []);
  let free = 0; let busy = 0;
  const run = (kind, warp, from, cycles) => {
    const start = Math.max(from, free);
    free = start + cycles; busy += cycles;
    pieces[warp].push([kind, start, free]);
    return free;
  };
  for (let phase = 0; phase < phases; phase++) {
    const arrived = clock.map((from, warp) => {
      const issued = run('load', warp, from, loads * INSTRUCTION);
      pieces[warp].push(['wait', issued, issued + LATENCY]);
      return issued + LATENCY;
    });
    for (const block of [...Array(blocks).keys()].sort((a, b) => ready(arrived, a, warps) - ready(arrived, b, warps))) {
      const together = ready(arrived, block, warps); // the barrier: the block's slowest warp
      const done = Array.from({ length: warps }, (_, w) => run('use', block * warps + w, together, steps * INSTRUCTION));
      for (let w = 0; w < warps; w++) clock[block * warps + w] = Math.max(...done);
    }
  }
  return { pieces, cycles: Math.max(...clock), busy };
}

const ready = (arrived, block, warps) => Math.max(...arrived.slice(block * warps, (block + 1) * warps));

function drawTime(run, blockNumber) {
  const { frames } = run.block(blockNumber);
  const first = frames.filter((f) => f.phase === 0);
  const warps = Math.ceil(run.threads / LANES);
  const loads = Math.max(1, first.filter((f) => f.stage === 'load').length);
  const steps = Math.max(1, first.filter((f) => f.stage === 'use').length);
  const blocks = Math.max(1, Math.min(app.view.resident ?? 1, Math.floor(64 / warps)));
  const phases = Math.min(2, run.trace.counters.phases || 1);
  const { pieces, cycles, busy } = schedule(warps, blocks, phases, loads, steps);
  const width = 380; const left = 4; const row = Math.min(14, 104 / pieces.length);
  const x = (cycle) => left + ((width - 8) * cycle) / cycles;
  const rows = pieces.map((mine, i) => shape('g', {}, mine.map(([kind, from, to]) => box(x(from), 4 + i * row, Math.max(0.6, x(to) - x(from)), Math.max(1, row - 1.5), `piece ${kind}`))));
  const share = Math.round((100 * busy) / cycles);
  const text = say('time.text', { warps: pieces.length, blocks, share, cycles: Math.round(cycles), latency: LATENCY });
  const choose = part('label', { class: 'resident' }, say('time.blocks'), ' ', part('select', { onchange: (event) => app.choose({ resident: Number(event.target.value) }) },
    [1, 2, 4, 8, 16].filter((n) => n === 1 || n * warps <= 64).map((n) => part('option', { value: n, selected: n === blocks }, String(n)))));
  const bottom = 8 + pieces.length * row;
  return [choose, picture(width, Math.ceil(bottom + 16), text, rows,
    shape('path', { d: `M${left} ${bottom} H${width - 4}`, class: 'axis' }),
    shape('text', { x: left, y: bottom + 13, class: 'tick-text', style: 'text-anchor:start' }, '0'),
    shape('text', { x: width - 4, y: bottom + 13, class: 'tick-text', style: 'text-anchor:end' }, say('time.axis', { cycles: Math.round(cycles) }))),
  part('p', { class: 'note', 'data-busy': share }, text)];
}
