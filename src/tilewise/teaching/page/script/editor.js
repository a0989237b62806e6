// The editor: a text area over a highlighted copy of its text, with line numbers, marks and the lines of this step.

const TOKENS = new RegExp([
  ['comment', String.raw`//[^\n]*|/\*[\s\S]*?(?:\*/|$(?![\s\S]))`],
  ['string', String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`],
  ['directive', String.raw`^[ \t]*#[^\n]*`],
  ['cuda', String.raw`\b(?:__\w+__|__sync\w+|threadIdx|blockIdx|blockDim|gridDim|warpSize|atomic\w+|cuda[A-Z]\w*|dim3)\b|<<<|>>>`],
  ['type', String.raw`\b(?:void|bool|char|short|int|long|float|double|half|unsigned|signed|size_t|auto|const|static|extern|struct|class|template|typename)\b`],
  ['keyword', String.raw`\b(?:if|else|for|while|do|switch|case|default|break|continue|return|goto|sizeof|true|false|new|delete|using|namespace)\b`],
  ['number', String.raw`\b(?:0[xX][\da-fA-F]+|\d[\d.]*(?:[eE][-+]?\d+)?)[fFuUlL]*`],
].map(([name, pattern]) => `(?<${name}>${pattern})`).join('|'), 'gm');

// The text's lines, each a list of strings and coloured parts; a comment over several lines is coloured in each.
function highlighted(text) {
  const lines = [[]];
  const put = (piece, name) => piece.split('\n').forEach((one, i) => {
    if (i) lines.push([]);
    if (one) lines.at(-1).push(name ? part('span', { class: `t-${name}` }, one) : one);
  });
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    put(text.slice(at, match.index));
    put(match[0], Object.keys(match.groups).find((name) => match.groups[name] !== undefined));
    at = match.index + match[0].length;
  }
  put(text.slice(at));
  return lines;
}

class Editor {
  constructor(host, { text, label, readonly, changed, saved }) {
    this.marks = new Map(); // line -> { text, severity }
    this.here = new Set();
    this.gutter = html('div', { class: 'gutter', 'aria-hidden': 'true' });
    this.layer = html('div', { class: 'layer', 'aria-hidden': 'true' });
    this.area = html('textarea', {
      id: 'text', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', wrap: 'off', 'aria-label': label, readonly,
      oninput: () => { this.marks.clear(); this.draw(); changed(); },
      onscroll: () => this.follow(),
      onkeydown: (event) => {
        if ((event.ctrlKey || event.metaKey) && event.key === 's') { event.preventDefault(); saved(); } else if (this.indent(event)) changed();
      },
    });
    clear(host, html('div', { class: 'editing' }, this.gutter, html('div', { class: 'sheet' }, this.layer, this.area)));
    this.value = text;
  }

  get value() { return this.area.value; }
  set value(text) {
    this.area.value = text;
    this.draw();
  }

  // Marks and the lines of the step that is shown; a mark is a number in colour, its line tinted, its message on hover.
  mark(marks) {
    this.marks = new Map(marks.map((mark) => [mark.line, mark]));
    this.draw();
  }
  at(lines) {
    if (String([...lines]) === String([...this.here])) return;
    this.here = lines;
    this.draw();
  }

  draw() {
    const style = (i) => [this.marks.get(i + 1)?.severity, this.here.has(i + 1) && 'here'].filter(Boolean).join(' ') || null;
    const lines = highlighted(this.value);
    clear(this.layer, lines.map((pieces, i) => part('div', { class: style(i) }, pieces.length ? pieces : '\u200b')));
    clear(this.gutter, lines.map((_, i) => part('div', { class: style(i), title: this.marks.get(i + 1)?.text }, String(i + 1))));
    this.follow();
  }

  follow() {
    this.layer.scrollTop = this.area.scrollTop; this.layer.scrollLeft = this.area.scrollLeft;
    this.gutter.scrollTop = this.area.scrollTop;
  }

  // A line into view, where it is not.
  reveal(line) {
    const row = this.gutter.children[line - 1];
    if (!row) return;
    const [top, height] = [row.offsetTop, this.area.clientHeight];
    if (top < this.area.scrollTop || top + row.offsetHeight > this.area.scrollTop + height) this.area.scrollTop = top - height / 2;
  }

  // Enter keeps the indentation, and indents behind a brace.
  indent(event) {
    if (event.key !== 'Enter' || event.shiftKey || this.area.readOnly) return false;
    const { value, selectionStart: at, selectionEnd: end } = this.area;
    const line = value.slice(value.lastIndexOf('\n', at - 1) + 1, at);
    const spaces = line.match(/^[ \t]*/)[0] + (/\{\s*$/.test(line) ? '    ' : '');
    event.preventDefault();
    this.area.setRangeText(`\n${spaces}`, at, end, 'end');
    this.draw();
    return true;
  }
}
