'use strict';
// Tables: a header becomes a button that sorts by its column; what is empty stays last.
for (const table of document.querySelectorAll('table.sorts')) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, at) => {
    const cell = row.cells[at];
    return cell.dataset.v ?? cell.textContent.trim();
  };
  const order = (one, other) => {
    if (one === '' || other === '') return 0;
    const numbers = [Number(one), Number(other)];
    return numbers.every(Number.isFinite)
      ? numbers[0] - numbers[1]
      : one.localeCompare(other, 'en', { numeric: true });
  };
  heads.forEach((head, at) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute('aria-sort', 'none');
    button.addEventListener('click', () => {
      const sign = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
      heads.forEach((other) => other.setAttribute('aria-sort', 'none'));
      head.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
      const rows = [...body.rows].map((row) => [key(row, at), row]);
      rows.sort(([one], [other]) => (one === '') - (other === '') || sign * order(one, other));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
// Plots: the value nearest to the pointer, or the one that arrow keys lead to, is marked and said.
for (const plot of document.querySelectorAll('.plot')) {
  const svg = plot.querySelector('svg');
  const tip = plot.querySelector('.tip');
  const values = [...svg.querySelectorAll('.v')].map((dot) => {
    const title = dot.querySelector('title');
    const value = { x: +dot.getAttribute('cx'), y: +dot.getAttribute('cy'), line: dot.dataset.s, text: title.textContent };
    title.remove();
    return value;
  });
  const lines = [...new Set(values.map((value) => value.line))].map((line) =>
    values.filter((value) => value.line === line).sort((one, other) => one.x - other.x));
  const ring = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
  ring.setAttribute('class', 'ring');
  ring.setAttribute('r', '36');
  let [line, at] = [0, -1];
  const hide = () => {
    ring.remove();
    tip.textContent = '';
  };
  const show = (value) => {
    if (tip.textContent !== value.text) tip.textContent = value.text;
    ring.setAttribute('cx', value.x);
    ring.setAttribute('cy', value.y);
    svg.append(ring);
    const box = svg.viewBox.baseVal;
    const scale = svg.clientWidth / box.width;
    const [x, y] = [(value.x - box.x) * scale, (value.y - box.y) * scale];
    const left = Math.min(Math.max(0, x - tip.offsetWidth / 2), svg.clientWidth - tip.offsetWidth);
    const above = y - tip.offsetHeight - 14;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 0 ? y + 14 : above}px`;
    return x;
  };
  const near = (list, x) => list.reduce((best, value, place) =>
    Math.abs(value.x - x) < Math.abs(list[best].x - x) ? place : best, 0);
  svg.addEventListener('pointermove', (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const reach = 30 / svg.getScreenCTM().a;
    let best = null;
    let least = reach;
    for (const value of values) {
      const far = Math.hypot(value.x - point.x, value.y - point.y);
      if (far < least) [best, least] = [value, far];
    }
    if (best) show(best);
    else hide();
  });
  svg.addEventListener('pointerleave', hide);
  plot.addEventListener('blur', hide);
  plot.addEventListener('keydown', (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const turns = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === 'Escape') return hide();
    if (!lines.length || event.altKey || event.ctrlKey || event.metaKey) return undefined;
    if (event.key in steps) at = at < 0 ? 0 : at + steps[event.key];
    else if (event.key in turns) {
      const x = at < 0 ? -Infinity : lines[line][at].x;
      line = at < 0 ? 0 : (line + turns[event.key] + lines.length) % lines.length;
      at = near(lines[line], x);
    } else if (event.key === 'Home') at = 0;
    else if (event.key === 'End') at = lines[line].length - 1;
    else return undefined;
    event.preventDefault();
    at = Math.min(Math.max(at, 0), lines[line].length - 1);
    const x = show(lines[line][at]);
    // Where the plot is wider than the screen, what is said is in view.
    if (plot.scrollWidth > plot.clientWidth) plot.scrollLeft = x - plot.clientWidth / 2;
    return undefined;
  });
}
