// The point on the roofline: operations per byte of global memory, against the limits of a card.

function drawRoofline(run) {
  const { shape: size, counters } = run.trace;
  if (!size || !counters.loads) return part('p', { class: 'note' }, say('matrices.none'));
  const bytes = elementBytes(run);
  const steps = 2 * size[0] * size[1] * size[2];
  const here = steps / (bytes * (counters.loads + counters.stores));
  const without = steps / (bytes * ((counters['loads without tiles'] ?? counters.loads) + counters.stores));
  const card = settings.cards.find((some) => some.key === app.view.card) ?? settings.cards[0];
  const width = 380; const height = 150; const left = 44; const bottom = 120;
  const [low, high] = [0.05, 200];
  const top = card.flops * 1.6; const floor = Math.min(low * card.bandwidth, top / 1000) * 0.8;
  const x = (value) => left + ((width - left - 8) * Math.log(value / low)) / Math.log(high / low);
  const y = (value) => 8 + (bottom - 8) * (1 - Math.log(Math.max(value, floor) / floor) / Math.log(top / floor));
  const roof = (value) => Math.min(card.flops, value * card.bandwidth);
  const ridge = card.flops / card.bandwidth;
  const point = (value, name) => shape('g', { class: `point ${name}`, 'data-intensity': value.toFixed(4) },
    shape('path', { d: `M${x(value)} ${bottom} V${y(roof(value))}` }),
    shape('circle', { cx: x(value), cy: y(roof(value)), r: 6 }),
    shape('text', { x: x(value) + 9, y: y(roof(value)) + (name === 'naive' ? 16 : 4) }, say(`traffic.${name}`)));
  const ticks = [0.1, 1, 10, 100].map((value) => shape('text', { x: x(value), y: bottom + 14, class: 'tick-text' }, String(value)));
  const text = say('roofline.text', {
    card: card.name, here: number(Number(here.toPrecision(3))), without: number(Number(without.toPrecision(3))), ridge: number(Number(ridge.toPrecision(3))),
    share: number(Number(((100 * roof(here)) / card.flops).toPrecision(2))),
  });
  const choose = part('select', { id: 'card', 'aria-label': say('roofline.card'), onchange: (event) => app.choose({ card: event.target.value }) },
    settings.cards.map((some) => part('option', { value: some.key, selected: some.key === card.key }, some.name)));
  return [part('div', { class: 'roofline' }, picture(width, height, text,
    shape('path', { d: `M${left} 4 V${bottom} H${width - 4}`, class: 'axis' }),
    shape('path', { d: `M${x(low)} ${y(roof(low))} L${x(ridge)} ${y(card.flops)} H${width - 8}`, class: 'roof' }),
    ...(without < here * 0.99 ? [point(without, 'naive')] : []), point(here, 'tiled'), ...ticks,
    shape('text', { x: (left + width) / 2, y: height - 3, class: 'tick-text' }, say('roofline.axis'))), choose),
  part('p', { class: 'note' }, text)];
}
