"""What a page shows cut off, found by a script in the page itself."""

# Text that its box does not hold: wider than the screen, than its own box, or out of its picture.
CUT = """
const bad = [];
if (document.documentElement.scrollWidth > innerWidth) bad.push(`page ${document.documentElement.scrollWidth}`);
const scrolls = (e) => { for (; e; e = e.parentElement) { const o = getComputedStyle(e).overflowX; if (o === 'auto' || o === 'scroll') return true; } return false; };
for (const e of document.querySelectorAll('body *')) {
  if (e.closest('.spoken, .skip, script, style, .defs') || e.closest('details:not([open]) > :not(summary)')) continue;
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || e.tagName === 'OPTION' || e.tagName === 'title') continue;
  const r = e.getBoundingClientRect();
  if (!r.width) continue;
  if (e instanceof SVGElement) {
    const s = e.ownerSVGElement.getBoundingClientRect();
    if (r.left < s.left - 1.5 || r.right > s.right + 1.5 || r.top < s.top - 1.5 || r.bottom > s.bottom + 1.5) bad.push(`svg ${e.textContent}`);
    continue;
  }
  if (!scrolls(e) && (r.right > innerWidth + 1 || r.left < -1)) bad.push(`screen ${e.textContent.slice(0, 40)}`);
  if (e.clientWidth && e.scrollWidth > e.clientWidth + 1) bad.push(`box ${e.textContent.slice(0, 40)}`);
  if (e.clientHeight && e.scrollHeight > e.clientHeight + 2 && getComputedStyle(e).overflowY !== 'visible') bad.push(`height ${e.textContent.slice(0, 40)}`);
}
return [...new Set(bad)];
"""  # noqa: E501
