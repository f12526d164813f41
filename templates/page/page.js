"use strict";
// All text is put in as text (textContent): nothing here parses HTML.
(() => {
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const KEY = "vlmend-theme";

  // Storage may be out of bounds, as in private windows and for some local files.
  const recall = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* not kept */ } };

  // Before anything is drawn, so that no wrong theme flashes up.
  const kept = recall();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;

  function themeButton() {
    const button = by("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const tell = () => button.setAttribute("aria-pressed", isDark());
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      tell();
    });
    system.addEventListener("change", tell);
    button.hidden = false;
    tell();
  }

  // --- proofs: the cited lines, with those around them ---------------------------------

  const BEFORE = 3;
  const AFTER = 4;
  const MAX_INDENT = 24;
  let data;

  function codeOf([text, kinds]) {
    const code = document.createElement("code");
    const indent = text.length - text.trimStart().length;
    code.className = `in-${Math.min(indent - (indent % 4), MAX_INDENT)}`;
    const characters = Array.from(text);
    let start = 0;
    for (const [, length, kind] of kinds.matchAll(/(\d+)(\w?)/g)) {
      const piece = document.createElement(kind ? "span" : "i");
      piece.textContent = characters.slice(start, (start += Number(length))).join("");
      if (kind) piece.className = kind;
      code.append(kind ? piece : piece.textContent);
    }
    return code;
  }

  function excerpt(file, line) {
    const list = document.createElement("ol");
    list.className = "excerpt";
    for (const [first, ...lines] of data.files[file].blocks) {
      lines.forEach((content, index) => {
        const number = first + index;
        if (number < line - BEFORE || number > line + AFTER) return;
        const item = document.createElement("li");
        item.dataset.line = number;
        if (number === line) item.className = "here";
        item.append(codeOf(content));
        list.append(item);
      });
    }
    if (list.children.length) return list;
    const absent = document.createElement("p");
    absent.className = "absent";
    absent.textContent = "This file is not part of the target; its lines are not at hand.";
    return absent;
  }

  function openExcerpt(event) {
    const link = event.target;
    if (!link.matches?.("details.link") || link.children.length > 1) return;
    link.append(excerpt(Number(link.dataset.file), Number(link.dataset.line)));
  }

  function citedLine(file, line) {
    for (const [first, ...lines] of data.files[file].blocks) {
      const found = lines[line - first];
      if (found) return found[0].trim();
    }
    return "";
  }

  function linkOf([statement, file, line]) {
    const item = by("p-link").content.cloneNode(true).firstElementChild;
    const { path, source } = data.files[file];
    item.querySelector(".said").textContent = data.words[statement];
    item.querySelector(".place").textContent = `${path}:${line}${data.elsewhere[source]}`;
    item.querySelector(".cited").textContent = citedLine(file, line);
    Object.assign(item.querySelector(".link").dataset, { file, line });
    return item;
  }

  // --- the coverage table --------------------------------------------------------------

  const rowOf = new Map();

  function verdictOf(id) {
    const card = by(id);
    if (card) {
      const way = document.createElement("p");
      const anchor = document.createElement("a");
      anchor.href = `#${id}`;
      anchor.textContent = `${card.querySelector(".badge").textContent}: ${card.querySelector(".contract").textContent}`;
      way.className = "verdict";
      way.append(anchor);
      return way;
    }
    const verdict = data.verdicts[id];
    const article = by("p-verdict").content.cloneNode(true).firstElementChild;
    article.id = id;
    article.querySelector(".badge").classList.add(`is-${verdict.status}`);
    article.querySelector(".glyph").classList.add(`is-${verdict.status}`);
    article.querySelector(".badge").append(verdict.status);
    article.querySelector(".contract").textContent = data.words[verdict.contract];
    article.querySelector(".message").textContent = data.words[verdict.message];
    article.querySelector(".meaning").textContent = data.words[verdict.meaning];
    article.querySelector(".proof").append(...verdict.proof.map(linkOf));
    return article;
  }

  function toggleRow(row, open) {
    const button = row.querySelector("button");
    const detail = row.nextElementSibling?.matches(".detail") ? row.nextElementSibling : null;
    const wanted = open ?? !detail;
    if (wanted === Boolean(detail)) return;
    button.setAttribute("aria-expanded", wanted);
    if (!wanted) { detail.remove(); return; }
    const made = document.createElement("tr");
    const cell = made.insertCell();
    made.className = "detail";
    cell.colSpan = row.cells.length;
    cell.append(...row.dataset.is.split(" ").map(verdictOf));
    row.after(made);
  }

  function coverage() {
    const table = by("classes");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({
      row,
      text: row.cells[0].textContent.toLowerCase(),
      name: row.querySelector("button").textContent.toLowerCase(),
      statuses: all("td.cell", row).map((cell) => cell.dataset.status),
    }));
    const chips = all("#tools [name=status]");
    const order = chips.map((chip) => chip.value);
    const contract = by("contract");

    for (const { row } of rows) {
      if (!row.dataset.is) continue;
      row.querySelector("button").disabled = false;
      for (const id of row.dataset.is.split(" ")) if (!rowOf.has(id)) rowOf.set(id, row);
    }
    body.addEventListener("click", (event) => {
      const button = event.target.closest("th button");
      if (button) toggleRow(button.closest("tr"));
    });

    function statusesOf(each) {
      return contract?.value ? [each.statuses[contract.value]] : each.statuses;
    }

    // Laying out nine hundred rows at once is felt while typing. What can be in view
    // appears at once, the rest in the frames that follow.
    const AT_ONCE = 60;
    const EACH_FRAME = 90;
    let waiting = [];
    let frame = 0;

    function show(row, wanted) {
      row.hidden = !wanted;
      const next = row.nextElementSibling;
      if (next?.matches(".detail")) next.hidden = !wanted;
    }

    function appear(number) {
      cancelAnimationFrame(frame);
      for (const row of waiting.splice(0, number)) show(row, true);
      table.setAttribute("aria-busy", waiting.length > 0);
      if (waiting.length) frame = requestAnimationFrame(() => appear(EACH_FRAME));
    }

    const settle = () => appear(waiting.length);

    function filter() {
      const words = by("text").value.toLowerCase().split(/\s+/).filter(Boolean);
      const status = chips.find((chip) => chip.checked).value;
      const fitting = new Set();
      for (const each of rows) {
        if (words.every((word) => each.text.includes(word))
          && (!status || statusesOf(each).includes(status))) fitting.add(each.row);
        else if (!each.row.hidden) show(each.row, false);
      }
      const shown = fitting.size;
      waiting = [...body.rows].filter((row) => row.hidden && fitting.has(row));
      appear(AT_ONCE);
      by("shown").textContent = shown === rows.length
        ? `${shown} classes` : `${shown} of ${rows.length} classes`;
      by("empty").hidden = shown > 0;
    }

    function count() {
      for (const chip of chips.slice(1)) {
        const total = rows.filter((each) => statusesOf(each).includes(chip.value)).length;
        chip.closest("label").querySelector("b").textContent = total;
        chip.closest("label").hidden = !total && !chip.checked;
      }
    }

    function sort(column, head) {
      const descending = head.getAttribute("aria-sort") === "ascending";
      const key = column === 0
        ? (each) => each.name
        : column < 3
          ? (each) => (each.row.cells[column].textContent === "yes" ? 0 : 1)
          : (each) => order.indexOf(each.statuses[column - 3]);
      for (const { row } of rows) toggleRow(row, false);
      const keyed = rows.map((each, index) => [key(each), index, each.row]);
      const sign = descending ? -1 : 1;
      keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] - b[1]));
      settle();
      const ordered = keyed.map((each) => each[2]);
      waiting = ordered.filter((row) => !row.hidden).slice(AT_ONCE);
      for (const row of waiting) row.hidden = true;
      body.append(...ordered);
      appear(0);
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    }

    all("thead th", table).forEach((head, column) => {
      const button = head.querySelector("button");
      button.disabled = false;
      button.addEventListener("click", () => sort(column, head));
    });
    const reset = () => { by("tools").reset(); count(); filter(); };
    by("tools").addEventListener("input", () => { count(); filter(); });
    by("tools").addEventListener("submit", (event) => event.preventDefault());
    by("reset").addEventListener("click", () => { reset(); by("text").focus(); });
    by("tools").hidden = false;
    count();
    filter();
    addEventListener("beforeprint", settle);
    return { reset, settle };
  }

  // --- links to findings, and paper ----------------------------------------------------

  function follow({ reset, settle }) {
    const id = location.hash.slice(1);
    const row = rowOf.get(id);
    if (!by(id) && row) {
      settle();
      if (row.hidden) {
        reset();
        settle();
      }
      toggleRow(row, true);
    }
    const place = by(id);
    if (place?.matches("details")) place.open = true;
    if (!place?.matches(".finding, .verdict")) return;
    place.scrollIntoView({ block: "start" });
    (place.querySelector(":scope > summary") ?? place).focus({ preventScroll: true });
  }

  function openAll() {
    const button = by("all");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      for (const card of all(".finding")) card.open = open;
      button.setAttribute("aria-pressed", open);
    });
  }

  function paper() {
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = all(".finding:not([open]), .why:not([open])");
      for (const card of closed) card.open = true;
    });
    addEventListener("afterprint", () => { for (const card of closed) card.open = false; });
  }

  document.addEventListener("DOMContentLoaded", () => {
    data = JSON.parse(by("data").textContent);
    themeButton();
    openAll();
    paper();
    // Toggle events do not bubble; they can be caught on the way down.
    document.addEventListener("toggle", openExcerpt, true);
    const classes = coverage();
    // A second click on the same link changes no hash, and still means "take me there".
    document.addEventListener("click", (event) => {
      const anchor = event.target.closest("a[href^='#']");
      if (anchor && anchor.hash === location.hash) follow(classes);
    });
    addEventListener("hashchange", () => follow(classes));
    // Not before the browser has gone to the anchor itself, which takes the focus away.
    addEventListener("load", () => follow(classes));
  });
})();
