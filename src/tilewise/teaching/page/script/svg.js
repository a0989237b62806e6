// Functions that create elements, and the marks that every picture shares.

const SVG = 'http://www.w3.org/2000/svg';
function flat(children, out = []) {
  for (const child of children) {
    if (Array.isArray(child)) flat(child, out);
    else if (child !== null && child !== undefined && child !== false) out.push(typeof child === 'number' ? String(child) : child);
  }
  return out;
}

// An element as a description. A step describes all of its pictures; `clear` changes the page only where the new
// description differs from the one before: a few cells of hundreds. An identical description is skipped.
class Part {
  constructor(tag, space, attributes, children) {
    this.tag = tag; this.space = space; this.attributes = attributes; this.children = children;
  }
  append(...children) { this.children.push(...flat(children)); }
}

const part = (tag, attributes = {}, ...children) => new Part(tag, null, attributes, flat(children));
const shape = (tag, attributes = {}, ...children) => new Part(tag, SVG, attributes, flat(children));
const html = (tag, attributes = {}, ...children) => made(part(tag, attributes, ...children));

function made(child) {
  if (!(child instanceof Part)) return child;
  const element = child.space ? document.createElementNS(child.space, child.tag) : document.createElement(child.tag);
  setAttributes(element, {}, child.attributes);
  element.append(...child.children.map(made));
  element.drawn = child.children;
  return element;
}

function setAttributes(element, before, now) {
  for (const name in before) if (!(name in now)) element.removeAttribute(name);
  for (const name in now) {
    const value = now[name];
    if (value === before[name]) continue;
    if (name.startsWith('on')) {
      if (!element.handlers?.[name]) element.addEventListener(name.slice(2), (event) => element.handlers[name](event));
      (element.handlers ??= {})[name] = value;
    } else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? '' : value);
  }
}

function patch(element, before, now) {
  let node = element.firstChild;
  for (let i = 0; i < now.length; i++) {
    const [was, is] = [before[i], now[i]];
    if (!node) { element.append(made(is)); continue; }
    const next = node.nextSibling;
    if (was instanceof Part && is instanceof Part && was.tag === is.tag) {
      if (was !== is) {
        setAttributes(node, was.attributes, is.attributes);
        patch(node, was.children, is.children);
        node.drawn = is.children;
      }
    } else if (was !== is) node.replaceWith(made(is));
    node = next;
  }
  while (node) { const next = node.nextSibling; node.remove(); node = next; }
}

// Everything in an element replaced; what is described the same way stays as it is.
function clear(element, ...children) {
  const now = flat(children);
  if (element.drawn?.length && element.drawn.length === element.childNodes.length) patch(element, element.drawn, now);
  else element.replaceChildren(...now.map(made));
  element.drawn = now;
  return element;
}

function picture(width, height, label, ...children) {
  return shape('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, ...children);
}

const box = (x, y, width, height, name, more = {}) => shape('rect', { x, y, width: Math.max(0, width), height: Math.max(0, height), class: name, ...more });

function sizeOf(text, cell, most = 0.44) {
  const size = Math.min(cell * most, (cell * 0.84) / (0.6 * Math.max(1, text.length)));
  return size < 5.5 ? null : size;
}

// Text that fits its cell: as large as the cell allows, smaller for longer numbers, with room on both sides; none where
// it could not be read.
function fitted(text, x, y, cell, name, most = 0.44) {
  const size = sizeOf(text, cell, most);
  return size && shape('text', { x, y, class: name, 'font-size': size.toFixed(1), dy: '0.35em' }, text);
}

// A cell in one of the four kinds: colour below, hatching above.
function marked(x, y, size, how, name = '', more = {}) {
  const inset = Math.min(1.5, size / 12);
  const at = [x + inset, y + inset, size - 2 * inset, size - 2 * inset];
  const corner = { rx: Math.min(4, size / 8) };
  return shape('g', { class: `kind ${how} ${name}`, ...more },
    box(...at, 'tint', corner), how === 'loaded' ? null : box(...at, 'hatch', { ...corner, fill: `url(#hatch-${how})` }));
}

// Tooltips, made when the mouse gets there.
function attachTips(host, sizes, textOf) {
  host.addEventListener('mousemove', (event) => {
    const at = cellUnder(host, sizes(), event);
    const text = (at && textOf(at)) || '';
    if (host.title !== text) host.title = text;
  });
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

// How large a picture may be, measured when the layout changes and not in every step: in a lecture what its card
// leaves, else most of the window.
function measured(host) {
  if (host.room?.layout !== app.layout) {
    const high = document.body.classList.contains('fixed') ? host.clientHeight - 4 : window.innerHeight * 0.8;
    host.room = { layout: app.layout, width: host.clientWidth, height: host.clientHeight, high };
  }
  return host.room;
}
