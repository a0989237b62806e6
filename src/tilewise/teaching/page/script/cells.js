// The cells of a picture that has many, painted on a canvas between two pictures of elements: what lies below them (ground,
// strips, grid) and above (tiles, rings, arrows). An element for each cell would take the browser longer than a frame; here
// a step paints the cells that differ from the step before.

const MOST_CELLS = 200; // of a picture whose cells are elements, with tooltips and what a large cell has room for

const PAPER = ['ink', 'soft', 'bad', 'good', 'rule', ...['loaded', 'filled', 'silent', 'outside'].flatMap((how) => [how, `${how}-tint`])];
let inks = null; // the colours and the font of the page; read again when its theme changes

function colours() {
  const style = inks ?? getComputedStyle(document.documentElement);
  return (inks ??= { font: style.fontFamily, hatches: {}, ...Object.fromEntries(PAPER.map((name) => [name, style.getPropertyValue(`--${name}`)])) });
}

// Another theme, or paper: everything is painted again.
function repaint(theme = null) {
  const { dataset } = document.documentElement;
  const before = dataset.theme;
  inks = null;
  if (theme) { dataset.theme = theme; colours(); dataset.theme = before; }
  app.show();
}

// The three layers. `base`: cells that are the same in every step, by name; `over`: what this step shows there instead;
// `control`: an element on top of them.
function layered(host, width, height, label, cell, { below, above }, base, over, control = null) {
  const scale = window.devicePixelRatio || 1;
  clear(host, part('div', { class: 'layers', style: `width:${width}px;height:${height}px` },
    shape('svg', { width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' }, below),
    part('canvas', { width: Math.round(width * scale), height: Math.round(height * scale), 'aria-hidden': 'true' }),
    picture(width, height, label, above), control));
  const canvas = host.querySelector('canvas');
  const to = (canvas.context ??= canvas.getContext('2d'));
  const place = [width, height, cell, scale].join();
  const before = canvas.over;
  const whole = canvas.place !== place || canvas.base !== base || canvas.inks !== colours();
  Object.assign(canvas, { place, base, over, cell, inks: colours() });
  to.setTransform(scale, 0, 0, scale, 0, 0);
  to.textAlign = 'center'; to.textBaseline = 'middle';
  if (whole) {
    to.clearRect(0, 0, width, height);
    for (const [name, one] of base) if (!over.has(name)) paintCell(to, one, cell);
    for (const one of over.values()) paintCell(to, one, cell);
    return;
  }
  for (const [name, one] of before) {
    if (over.has(name)) continue;
    to.clearRect(one.x, one.y, cell, cell);
    if (base.has(name)) paintCell(to, base.get(name), cell);
  }
  for (const [name, one] of over) {
    const was = before.get(name);
    if (was === one || (was && PAINTED.every((key) => was[key] === one[key]))) continue;
    to.clearRect(one.x, one.y, cell, cell);
    paintCell(to, one, cell);
  }
}

const PAINTED = ['how', 'now', 'ghost', 'text', 'tone', 'ring'];
const RINGS = { mine: [3, 'good', 1], others: [1.3, 'good', 0.75], using: [1.5, 'good', 1], waiting: [3, 'bad', 1], idle: [1, 'rule', 1] };

function paintCell(to, { x, y, how, now, ghost, text, tone, ring }, cell) {
  const ink = colours();
  const frame = (wide, colour, alpha = 1) => {
    const line = Math.min(wide, cell / 8);
    to.lineWidth = line; to.strokeStyle = colour; to.globalAlpha = alpha;
    to.strokeRect(x + line / 2 + 0.5, y + line / 2 + 0.5, cell - line - 1, cell - line - 1);
  };
  if (how) {
    to.globalAlpha = now ? 1 : 0.6; to.fillStyle = ink[`${how}-tint`];
    to.fillRect(x + 0.5, y + 0.5, cell - 1, cell - 1);
    if (how !== 'loaded') { to.globalAlpha = now ? 0.55 : 0.3; to.fillStyle = hatched(to, how); to.fillRect(x + 0.5, y + 0.5, cell - 1, cell - 1); }
    frame(now ? 2 : 1.4, ink[how], now ? 1 : 0.35);
  }
  if (ghost) { to.setLineDash([3, 3]); frame(1, ink.soft); to.setLineDash([]); }
  if (ring) { const [wide, colour, alpha] = RINGS[ring]; frame(wide, ink[colour], alpha); }
  if (text === undefined) return;
  to.globalAlpha = tone === 'earlier' ? 0.55 : 1;
  const size = sizeOf(text, cell);
  if (!size) { // a number that could not be read: a dot
    if (!tone) return;
    to.fillStyle = tone === 'bad' ? ink.bad : ink.soft;
    to.beginPath(); to.arc(x + cell / 2, y + cell / 2, cell / 4, 0, 7); to.fill();
    return;
  }
  to.font = `${tone === 'bad' ? 700 : 550} ${size.toFixed(1)}px ${ink.font}`;
  const spot = [text, x + cell / 2, y + cell / 2 + size * 0.06];
  if (how && how !== 'loaded') { to.lineWidth = 3; to.lineJoin = 'round'; to.strokeStyle = ink[`${how}-tint`]; to.strokeText(...spot); }
  to.fillStyle = tone === 'bad' ? ink.bad : ink.ink;
  to.fillText(...spot);
}

// The hatching of a kind, as in the template.
function hatched(to, how) {
  const { hatches, [how]: colour } = colours();
  if (!hatches[how]) {
    const tile = new OffscreenCanvas(7, 7);
    const on = tile.getContext('2d');
    on.fillStyle = colour; on.strokeStyle = colour; on.lineWidth = how === 'silent' ? 2.2 : 1.2;
    if (how === 'filled') { on.arc(3, 3, 1.1, 0, 7); on.fill(); } else {
      on.beginPath();
      if (how === 'silent') { on.moveTo(-1, 8); on.lineTo(8, -1); on.moveTo(-1, 1); on.lineTo(1, -1); on.moveTo(6, 8); on.lineTo(8, 6); }
      else { on.moveTo(0, 0); on.lineTo(7, 7); on.moveTo(7, 0); on.lineTo(0, 7); }
      on.stroke();
    }
    hatches[how] = to.createPattern(tile, 'repeat');
  }
  return hatches[how];
}

// The cell under the mouse: { name, row, col }. `sizes`: rows and columns by name.
function cellUnder(host, sizes, event) {
  const svg = host.querySelector('svg');
  if (!svg || !host.layout) return null;
  const frame = svg.getBoundingClientRect();
  for (const [name, [rows, cols]] of Object.entries(sizes)) {
    const [x, y] = host.layout.at[name];
    const col = Math.floor((event.clientX - frame.left - x) / host.layout.cell);
    const row = Math.floor((event.clientY - frame.top - y) / host.layout.cell);
    if (row >= 0 && col >= 0 && row < rows && col < cols) return { name, row, col };
  }
  return null;
}
