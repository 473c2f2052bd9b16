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
// Plots: the value nearest to the pointer, or the one that arrow keys lead to, is marked and said. A plot has a drawing for
// a wide screen and one for a narrow screen, of which one is shown.
for (const plot of document.querySelectorAll('.plot')) {
  const drawings = ['.wide', '.narrow'].map((name) => plot.querySelector(name));
  const shown = () => (drawings[1].clientWidth > 0 ? 1 : 0);
  const tip = plot.querySelector('.tip');
  const narrow = drawings[1].dataset.at.split(' ');
  const all = [...plot.querySelectorAll('.v')].map((dot, place) => {
    const title = dot.querySelector('title');
    const at = [[+dot.getAttribute('cx'), +dot.getAttribute('cy')], narrow[place].split(',').map(Number)];
    title.remove();
    return { at, line: dot.dataset.s, text: title.textContent };
  });
  // What is too small to be drawn on a narrow screen has no place there.
  const values = () => all.filter((value) => value.at[shown()].length === 2);
  const lines = () => [...new Set(values().map((value) => value.line))].map((line) =>
    values().filter((value) => value.line === line).sort((one, other) => one.at[shown()][0] - other.at[shown()][0]));
  const ring = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
  ring.setAttribute('class', 'ring');
  ring.setAttribute('r', '36');
  let [line, at] = [0, -1];
  const hide = () => {
    ring.remove();
    tip.textContent = '';
  };
  const show = (value) => {
    const svg = drawings[shown()];
    const [left, top] = value.at[shown()];
    if (tip.textContent !== value.text) tip.textContent = value.text;
    ring.setAttribute('cx', left);
    ring.setAttribute('cy', top);
    svg.append(ring);
    const box = svg.viewBox.baseVal;
    const scale = svg.clientWidth / box.width;
    const [x, y] = [(left - box.x) * scale, (top - box.y) * scale];
    const room = svg.clientWidth - tip.offsetWidth;
    const above = y - tip.offsetHeight - 14;
    tip.style.left = `${Math.min(Math.max(0, x - tip.offsetWidth / 2), room)}px`;
    tip.style.top = `${above < 0 ? y + 14 : above}px`;
  };
  const near = (list, x) => list.reduce((best, value, place) =>
    Math.abs(value.at[shown()][0] - x) < Math.abs(list[best].at[shown()][0] - x) ? place : best, 0);
  const point = (event) => {
    const svg = event.currentTarget;
    const there = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = null;
    let least = 30 / svg.getScreenCTM().a;
    for (const value of values()) {
      const [x, y] = value.at[shown()];
      const far = Math.hypot(x - there.x, y - there.y);
      if (far < least) [best, least] = [value, far];
    }
    if (best) show(best);
    else hide();
  };
  for (const svg of drawings) {
    svg.addEventListener('pointermove', point);
    svg.addEventListener('pointerdown', point);
    // A finger that is lifted leaves, and what it pointed at stays to be read.
    svg.addEventListener('pointerleave', (event) => event.pointerType === 'touch' || hide());
  }
  plot.addEventListener('blur', hide);
  plot.addEventListener('keydown', (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const turns = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === 'Escape') return hide();
    const rows = lines();
    if (!rows.length || event.altKey || event.ctrlKey || event.metaKey) return undefined;
    line = Math.min(line, rows.length - 1);
    if (event.key in steps) at = at < 0 ? 0 : at + steps[event.key];
    else if (event.key in turns) {
      const x = at < 0 ? -Infinity : rows[line][Math.min(at, rows[line].length - 1)].at[shown()][0];
      line = at < 0 ? 0 : (line + turns[event.key] + rows.length) % rows.length;
      at = near(rows[line], x);
    } else if (event.key === 'Home') at = 0;
    else if (event.key === 'End') at = rows[line].length - 1;
    else return undefined;
    event.preventDefault();
    at = Math.min(Math.max(at, 0), rows[line].length - 1);
    show(rows[line][at]);
    return undefined;
  });
}
