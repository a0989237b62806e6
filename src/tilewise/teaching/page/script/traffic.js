// Naive beside tiled: what has been loaded from global memory up to this step, and what a kernel without tiles, where
// every product loads both of its factors, would have loaded for the same products.

// Products of elements that both exist, by frame: fills and cells outside are no loads.
function productsUpTo(run, blockNumber, index) {
  run.products ??= new Map();
  if (!run.products.has(blockNumber)) run.products.set(blockNumber, countProducts(run, blockNumber));
  return run.products.get(blockNumber)[index] ?? 0;
}

function countProducts(run, blockNumber) {
  const { frames } = run.block(blockNumber);
  const whole = countsOf(run, blockNumber).without / 2;
  const uses = frames.map((frame) => (frame.stage === 'use' ? 1 : 0));
  const steps = uses.reduce((sum, one) => sum + one, 0);
  const k = run.trace.shape?.[1] ?? 0;
  let done = 0;
  return uses.map((one) => {
    done += one;
    // one use frame is one k where there are as many of them; else an even share
    return steps >= k && k ? Math.round((whole * Math.min(done, k)) / k) : Math.round((whole * done) / Math.max(1, steps));
  });
}

function trafficSoFar(run, blockNumber, state, whole) {
  const { blocks } = run.trace;
  const before = whole ? blocks.slice(0, blocks.indexOf(blockNumber)) : [];
  const sum = (read) => before.reduce((total, block) => total + read(countsOf(run, block)), 0);
  return {
    tiled: state.counts.loads + sum((c) => c.loads),
    naive: 2 * productsUpTo(run, blockNumber, state.index) + sum((c) => c.without),
    most: whole ? blocks.reduce((total, block) => total + Math.max(countsOf(run, block).without, countsOf(run, block).loads), 0)
      : Math.max(countsOf(run, blockNumber).without, countsOf(run, blockNumber).loads),
  };
}

function drawTraffic(run, blockNumber, state) {
  if (!run.matrices.M || !run.matrices.N || !run.matrices.P) {
    return part('p', { class: 'note' }, say('matrices.none'));
  }
  const { tiled, naive, most } = trafficSoFar(run, blockNumber, state, app.view.lecture);
  const ratio = tiled ? number(Number((naive / tiled).toPrecision(3))) : '–';
  const bar = (name, count) => part('div', { class: `bar bar-${name}` },
    part('span', { class: 'bar-name' }, say(`traffic.${name}`)),
    part('span', { class: 'bar-track' }, part('span', { class: 'bar-fill', style: `width:${((100 * count) / Math.max(1, most)).toFixed(2)}%` })),
    part('span', { class: 'bar-count', 'data-traffic': name }, String(count)));
  return [bar('naive', naive), bar('tiled', tiled),
    part('p', { class: 'note' }, say(app.view.lecture ? 'traffic.grid' : 'traffic.block', { naive, tiled, ratio }))];
}
