// Functions that create elements, and the marks that every picture shares.

const SVG = 'http://www.w3.org/2000/svg';

function add(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const html = (tag, attributes = {}, ...children) => add(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) => add(document.createElementNS(SVG, tag), attributes, children);
const clear = (element, ...children) => { element.replaceChildren(...children.flat().filter(Boolean)); return element; };

function picture(width, height, label, ...children) {
  return shape('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, ...children);
}

const box = (x, y, width, height, name, more = {}) => shape('rect', { x, y, width: Math.max(0, width), height: Math.max(0, height), class: name, ...more });

// Text that fits its cell: as large as the cell allows, smaller for longer numbers.
function fitted(text, x, y, cell, name, most = 0.44) {
  const size = Math.min(cell * most, (cell * 1.5) / Math.max(1, text.length));
  return shape('text', { x, y, class: name, 'font-size': size.toFixed(1), dy: '0.35em' }, text);
}

// A cell in one of the four kinds: colour below, hatching above.
function marked(x, y, size, how, name = '') {
  const inset = Math.min(1.5, size / 12);
  const at = [x + inset, y + inset, size - 2 * inset, size - 2 * inset];
  const corner = { rx: Math.min(4, size / 8) };
  return shape('g', { class: `kind ${how} ${name}` },
    box(...at, 'tint', corner), box(...at, 'hatch', { ...corner, fill: `url(#hatch-${how})` }));
}

// From the requested cell to the cell reached, bent so that it does not hide the row.
function arrow(from, to) {
  const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const bend = [middle[0] - dy * 0.18, middle[1] + dx * 0.18];
  return shape('path', {
    d: `M${from} Q${bend.map((v) => v.toFixed(1))} ${to}`, class: 'reach', 'marker-end': 'url(#arrowhead)',
  });
}

// How high a picture may be: in a lecture what its card leaves, else most of the window.
const roomAbove = (host) => (document.body.classList.contains('lecture') ? host.clientHeight - 4 : window.innerHeight * 0.8);
