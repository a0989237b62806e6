// Values that move: from global to shared memory, from there to a register, from the register to P. Drawn over the page
// for half a second after a step forward, and not at all where the system prefers no motion.

const MOST_FLIGHTS = 64;

// Where values of this step leave from and arrive, as [value, from, to] in the window's coordinates.
function flightsOf(pane) {
  const { run, state, parts } = pane;
  const spot = (host, name, [row, col]) => {
    const { at, cell } = host.layout ?? {};
    const svg = host.querySelector('svg');
    if (!svg || !at?.[name]) return null;
    const frame = svg.getBoundingClientRect();
    return [frame.left + at[name][0] + (col + 0.5) * cell, frame.top + at[name][1] + (row + 0.5) * cell];
  };
  const ofThread = (thread) => middleOf(parts.threads, thread, Math.min(run.wide, 32));
  const matrix = (a) => a.reached && run.roles[a.array] && spot(parts.matrices, run.roles[a.array], a.reached);
  const moves = [
    ...state.touched.filter((a) => a.how !== 'filled').map((a) => ({ thread: a.thread, value: a.value, way: () => (a.store ? [ofThread(a.thread), matrix(a)]
      : [matrix(a), a.put ? spot(parts.shared, a.target, a.put) : ofThread(a.thread)]) })),
    ...state.used.map((u) => ({ thread: u.thread, value: u.value, way: () => [spot(parts.shared, u.name, u.cell), ofThread(u.thread)] })),
  ];
  const some = moves.length > MOST_FLIGHTS ? moves.filter((move) => move.thread === pane.view.thread) : moves;
  return some.map(({ value, way }) => [value, ...way()]).filter(([, from, to]) => from && to);
}

function fly(panes) {
  document.getElementById('flights')?.remove();
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  const layer = html('div', { id: 'flights', 'aria-hidden': 'true' });
  for (const [value, from, to] of panes.flatMap(flightsOf)) {
    const one = html('span', { class: 'flight', style: `left:${from[0]}px;top:${from[1]}px` }, number(value));
    layer.append(one);
    one.animate([{ transform: 'translate(-50%, -50%)', opacity: 1 }, {
      transform: `translate(calc(-50% + ${to[0] - from[0]}px), calc(-50% + ${to[1] - from[1]}px))`, opacity: 0.9,
    }], { duration: 480 / Math.max(1, app.speed), easing: 'cubic-bezier(.4,0,.2,1)', fill: 'forwards' });
  }
  document.body.append(layer);
  layer.timer = setTimeout(() => layer.remove(), 560);
}
