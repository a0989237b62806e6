// Messages: every sentence comes from the language files, with numbers and names filled in.

const settings = JSON.parse(document.getElementById('settings').textContent);
let language = settings.lang;

function say(key, values = {}) {
  const sentence = settings.messages[language][key] ?? settings.messages.en[key];
  if (sentence === undefined) throw new Error(`no sentence for ${key}`);
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}

function number(value) {
  if (value === null || value === undefined) return '?';
  if (value === 'inf') return '∞';
  if (value === '-inf') return '−∞';
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value).replace('-', '−');
  return String(Number(value.toPrecision(5))).replace('-', '−');
}

// "1 phase", "2 phases": a counted noun has two sentences, `.one` and `.many`.
const counted = (key, count) => say(`count.${key}.${count === 1 ? 'one' : 'many'}`, { count });

const pair = (row, col) => `(${row},${col})`;
const cellName = (array, cell) => (cell ? `${array}[${cell[0]}][${cell[1]}]` : array);

// A list that stays readable: the first few, then how many more there are.
function list(items, most = 8) {
  if (items.length <= most) return items.join(', ');
  return say('list.more', { items: items.slice(0, most).join(', '), count: items.length - most });
}
