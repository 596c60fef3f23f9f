"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const D = JSON.parse($("data").textContent);
  const panel = $("panel"), table = $("matrix"), scroll = table.parentElement;
  const rows = [...table.querySelectorAll("tr[data-row]")];
  const T = (n) => (n === undefined ? "" : D.texts[n]);
  const KINDS = [...D.classes, "none"];

  // Everything is made of elements and text nodes: no text of a record is ever read as markup.
  const el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === undefined || value === false) continue;
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return made;
  };
  const link = (url) => (/^https:\/\//.test(url) ? el("a", { href: url, rel: "noreferrer" }, url) : url);
  const section = (title, ...children) => [el("h3", {}, title), ...children];
  const list = (facts) => el("dl", {}, ...facts.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));

  // --- what is behind a cell, a row, a column ---------------------------------------------------
  const evidence = (word) => el("span", { class: `evidence ${word}` }, word);

  const recorded = (column) => (column.recorded ? [el("p", {}, `Recorded on another machine on ${column.recorded}.`)] : []);

  const answer = (cell, one) => {
    const word = T(cell.o), kind = KINDS[cell.k];
    const known = one.answers.find((a) => T(a[0]) === word);
    const says = known ? T(known[2]) : D.statuses[word] || "";
    return el("p", {}, el("span", { class: `answer ${kind}` }, word), kind === "none" ? "" : `${D.says[kind]} `, evidence(T(cell.e)),
      says ? el("span", { class: "soft" }, ` ${says}`) : "");
  };

  const entry = (n, verdict, deviation = false) => {
    const found = D.entries[n], words = found.answers.join(" or ");
    const wanted = deviation ? `It is known to answer ${words}.` : words ? `${found.strength}: ${words}` : found.strength;
    return el("div", {}, el("p", {}, verdict ? el("b", {}, `${verdict}. `) : "", wanted), el("p", { class: "soft" }, found.says),
      el("p", {}, link(found.source)));
  };

  const code = (cell) => {
    const lines = cell.c.map(T), bad = new Map((cell.x || []).map(([at, type]) => [at, T(type)]));
    const shown = lines.map((text, n) => el("span", bad.has(n) ? { class: "bad", title: `${bad.get(n)} came up here` } : {}, text));
    const copy = el("button", { class: "copy", onclick: () => navigator.clipboard?.writeText(lines.join("\n") + "\n").then(() => {
      copy.textContent = "copied";
    }) }, "copy");
    const title = el("h3", {}, "In its own code", copy);
    return [title, el("pre", { tabindex: 0 }, ...shown)];
  };

  const once = (found) => [...new Map(found.map((one) => [`${one[1]} ${one[2]}`, one])).values()];
  const message = ([, type, text]) => el("pre", { class: "text", tabindex: 0 }, `${T(type)}: ${T(text)}`);

  // Since which release it is answered so: told where the page was made of releases, else where it is told.
  const since = (one, told, columns) => {
    const sentences = (one.h || []).filter(([name]) => told(name)), asked = columns.filter((column) => column.releases > 1);
    if (!sentences.length && !asked.length) return [];
    return section("Answer by version", sentences.length ? list(sentences.map(([name, text]) => [name, T(text)]))
      : el("p", { class: "soft" }, "What other releases answered, where it is recorded: ", el("code", {}, `python -m reports explain ${one.id}`)));
  };

  const aboutCell = (r, c) => {
    const one = D.cases[r], column = D.columns[c], cell = D.cells[r][c], pairs = [];
    for (let n = 0; n < (cell.f || []).length; n += 2) pairs.push([T(cell.f[n]), T(cell.f[n + 1])]);
    if (cell.t !== undefined) pairs.push(["seconds", String(cell.t)]);
    const verdict = T(cell.v), norm = T(cell.n);
    return [
      el("h2", {}, column.key), el("h2", {}, one.id), ...recorded(column),
      el("p", { class: "question" }, T(one.question)), el("p", { class: "soft" }, T(one.why)),
      ...section("Answer", answer(cell, one), cell.y !== undefined ? el("p", {}, T(cell.y)) : "",
        cell.a ? el("p", {}, `Asked more than once, it answered ${cell.a.map(T).join(", ")}.`) : ""),
      ...since(one, (name) => name === column.series, [column]),
      cell.b !== undefined ? el("p", {}, el("b", {}, `Changed with ${column.version}: `), T(cell.b)) : "",
      ...(cell.x || []).length ? section("Error", ...once(cell.x).map(message)) : [],
      ...(cell.w || []).length ? section("Warnings", ...once(cell.w).map(message)) : [],
      ...section("Promise of the framework", cell.l !== undefined ? el("p", {}, el("b", {}, T(cell.l))) : "",
        cell.d !== undefined ? entry(cell.d, verdict, true) : "",
        cell.p !== undefined ? entry(cell.p, cell.d === undefined ? verdict : "")
          : el("p", { class: "soft" }, verdict ? `${verdict}: no contract speaks of it` : "no contract speaks of it")),
      ...cell.r !== undefined ? section("Array API standard", entry(cell.r, norm)) : [],
      ...cell.c ? code(cell) : [],
      cell.old ? el("p", { class: "soft" }, "The question is asked otherwise today; this is today's code.") : "",
      ...pairs.length ? section("Facets", list(pairs)) : [],
      ...about(one, T(cell.o), c),
    ];
  };

  const about = (one, word, c) => [
    ...section("It can answer", el("ul", { class: "possible" }, ...one.answers.map(([w, kind, says]) =>
      el("li", T(w) === word ? { class: "here" } : {}, el("span", { class: T(kind) }, T(w)), `: ${T(says)}`)))),
    ...one.control ? section("Control", c === undefined ? one.control
      : el("a", { href: `#${encodeURIComponent(D.columns[c].key)}/${one.control}` }, one.control)) : [],
    ...(one.claims || []).length ? section("Claims that it answers", one.claims.join(", ")) : [],
  ];

  const aboutRow = (r) => {
    const one = D.cases[r];
    return [el("h2", {}, one.id), el("p", { class: "question" }, T(one.question)), el("p", { class: "soft" }, T(one.why)),
      ...since(one, () => true, D.columns), ...about(one)];
  };

  const aboutColumn = (c) => {
    const column = D.columns[c], facts = (table) => list(Object.entries(table).map(([k, v]) => [k, v === null ? "" : String(v)]));
    const some = (title, table) => (Object.keys(table).length ? section(title, facts(table)) : []);
    return [
      el("h2", {}, column.key), el("p", {}, `${column.framework} ${column.version} `, evidence(column.evidence)),
      ...recorded(column),
      ...section("Devices", list(Object.entries(column.roles).map(([role, f]) => [role, el("span", {}, `${f.expression} `, evidence(f.evidence))]))),
      ...some("Build", column.build), ...some("Machine", column.machine), ...some("Environment variables that were set", column.environment),
      ...section("Records", column.records.join(", ")),
    ];
  };

  let opener = null;
  const open = (children, from) => {
    table.querySelector("td[aria-selected]")?.removeAttribute("aria-selected");
    opener = from;
    if (from?.parentElement.tagName === "TD") from.parentElement.setAttribute("aria-selected", "true");
    panel.replaceChildren(el("button", { class: "close", "aria-label": "close", onclick: close }, "×"), ...children.filter(Boolean));
    panel.hidden = false;
    panel.scrollTop = 0;
  };
  const close = () => {
    panel.hidden = true;
    table.querySelector("td[aria-selected]")?.removeAttribute("aria-selected");
    history.replaceState(null, "", location.pathname + location.search);
    opener?.focus();
  };
  const show = (button) => {
    const cell = button.closest("td"), row = button.closest("tr[data-row]");
    if (button.dataset.column !== undefined) return open(aboutColumn(+button.dataset.column), button);
    if (!row) return;
    const r = +row.dataset.row;
    if (!cell) return open(aboutRow(r), button);
    const c = cell.cellIndex - 1;
    open(aboutCell(r, c), button);
    history.replaceState(null, "", `#${encodeURIComponent(D.columns[c].key)}/${D.cases[r].id}`);
  };
  const follow = () => {
    const [key, ...rest] = location.hash.slice(1).split("/");
    const c = D.columns.findIndex((column) => column.key === decodeURIComponent(key));
    const r = D.cases.findIndex((one) => one.id === rest.join("/"));
    if (c < 0 || r < 0) return;
    const button = rows[r].cells[c + 1].firstChild;
    move(button, false);
    show(button);
    button.scrollIntoView({ block: "center", inline: "center" }); // beside the panel, which takes room
  };

  // --- the keyboard: one stop for the whole table, arrows inside it --------------------------------
  let current = null;
  const move = (button, focus = true) => {
    current?.setAttribute("tabindex", "-1");
    current = button;
    current.setAttribute("tabindex", "0");
    if (focus) { current.focus({ preventScroll: true }); current.scrollIntoView({ block: "nearest", inline: "nearest" }); }
  };
  const step = (from, down, right) => {
    const row = from.closest("tr"), visible = rows.filter((r) => !r.hidden);
    const next = visible[Math.min(Math.max(visible.indexOf(row) + down, 0), visible.length - 1)] || row;
    let at = from.closest("td,th").cellIndex + right;
    while (next.cells[at] && getComputedStyle(next.cells[at]).display === "none") at += right || 1;
    return next.cells[at]?.firstChild || from;
  };
  const ARROWS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [15, 0], PageUp: [-15, 0] };
  table.addEventListener("keydown", (event) => {
    const button = event.target.closest("tr[data-row] button"), by = ARROWS[event.key];
    if (!button || !by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(step(button, ...by));
    if (!panel.hidden) { const from = current; show(from); from.focus(); }
  });
  table.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.closest("tr[data-row]")) move(button, false);
    show(button);
    if (event.detail === 0) panel.focus(); // by keyboard
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) close();
    if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) { event.preventDefault(); $("find").focus(); }
  });
  addEventListener("hashchange", follow);

  // --- which rows and columns -------------------------------------------------------------------
  const hidden = new Set(), sheet = document.head.appendChild(el("style"));
  const haystack = D.cells.map((line, r) => [D.cases[r].id, T(D.cases[r].question),
    ...line.flatMap((cell) => [T(cell.o), ...(cell.x || []).flatMap(([, type, text]) => [T(type), T(text)])])].join("\n").toLowerCase());
  const test = {
    all: () => true,
    differ: (cells) => new Set(cells.filter((c) => c.v !== undefined).map((c) => c.o)).size > 1,
    deviate: (cells) => cells.some((c) => ["deviates", "known-deviation"].includes(T(c.v)) || c.l !== undefined),
    simulated: (cells) => cells.some((c) => c.v !== undefined && T(c.e) === "simulated"),
  };
  KINDS.forEach((kind, k) => { test[kind] = (cells) => cells.some((c) => c.k === k); });
  const filter = () => {
    const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean), fits = test[$("rows").value];
    let shown = 0;
    rows.forEach((row, r) => {
      const cells = D.cells[r].filter((_, c) => !hidden.has(c));
      row.hidden = !(fits(cells) && words.every((word) => haystack[r].includes(word)));
      shown += !row.hidden;
    });
    for (const body of table.tBodies) body.hidden = ![...body.querySelectorAll("tr[data-row]")].some((row) => !row.hidden);
    $("count").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} questions`;
    $("nothing").hidden = shown > 0;
  };
  $("find").addEventListener("input", filter);
  $("rows").addEventListener("input", filter);
  document.querySelector(".targets").addEventListener("change", (event) => {
    const c = +event.target.dataset.column;
    if (event.target.checked) hidden.delete(c); else hidden.add(c);
    sheet.textContent = [...hidden].map((n) => `#matrix tr:not(.area) > :nth-child(${n + 2}) { display: none; }`).join("");
    filter();
  });

  // --- for those who don't see colours and borders ------------------------------------------------
  rows.forEach((row, r) => D.cells[r].forEach((cell, c) => {
    const parts = [D.columns[c].key, D.cases[r].id, T(cell.o), D.says[KINDS[cell.k]]];
    if (cell.v !== undefined) parts.push(T(cell.e), T(cell.v));
    row.cells[c + 1].firstChild.setAttribute("aria-label", parts.join(", "));
  }));
  if (rows.length) move(rows[0].cells[1]?.firstChild || rows[0].cells[0].firstChild, false);
  filter();
  follow();
})();
