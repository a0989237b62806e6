// Messages: every sentence comes from the language files, with numbers and names filled in.

const settings = JSON.parse(document.getElementById('settings').textContent);
let language = settings.lang;

// A message with its placeholders filled; {count|thread|threads} is the form for that count.
const say = (key, values = {}) => sayIn(language, key, values);
function sayIn(code, key, values = {}) {
  const sentence = settings.messages[code][key] ?? settings.messages.en[key];
  if (sentence === undefined) throw new Error(`no sentence for ${key}`);
  return sentence.replace(/\{(\w+)((?:\|[^{}|]*)*)\}/g, (whole, name, forms) => {
    if (!(name in values)) return whole;
    const [, one, many] = forms.split('|');
    if (one === undefined) return values[name];
    return new Intl.PluralRules(code).select(Number(values[name])) === 'one' ? one : (many ?? one);
  });
}

function number(value) {
  if (value === null || value === undefined) return '?';
  if (value === 'inf') return '∞';
  if (value === '-inf') return '−∞';
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value).replace('-', '−');
  return String(Number(value.toPrecision(5))).replace('-', '−');
}

const cellName = (array, cell) => (cell ? `${array}[${cell[0]}][${cell[1]}]` : array);

// A list that stays readable: the first few, then how many more there are.
function list(items, most = 8) {
  if (items.length <= most) return items.join(', ');
  return say('list.more', { items: items.slice(0, most).join(', '), count: items.length - most });
}
