// SPDX-License-Identifier: Apache-2.0
"use strict";
// Airflow shows the pages in a frame of the same origin. The root element of the parent window has the theme.
const above = (() => {
  try {
    return window.parent !== window && window.parent.document ? window.parent : null;
  } catch {
    return null;
  }
})();
const root = document.documentElement;

function theme() {
  const chosen = above ? above.document.documentElement : null;
  const dark = chosen
    ? chosen.classList.contains("dark") || chosen.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "dark" : "light";
}

// The zone chosen in Airflow, whose storage the frame shares; else the browser's.
function zone() {
  try {
    return JSON.parse(localStorage.getItem("timezone")) || undefined;
  } catch {
    return undefined;
  }
}

// A time as Airflow prints it, such as 2026-01-31 10:00:00.
function printed(moment, timeZone) {
  try {
    return new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone }).format(moment);
  } catch {
    return printed(moment, "UTC");
  }
}

function localTimes(within) {
  const chosen = zone();
  for (const element of within.querySelectorAll("time")) {
    element.textContent = printed(new Date(element.dateTime), chosen);
  }
  for (const element of within.querySelectorAll(".zone")) {
    element.textContent = chosen || Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
  for (const input of within.querySelectorAll("input[data-moment]")) {
    if (input.dataset.moment) input.value = printed(new Date(input.dataset.moment), chosen).replace(" ", "T").slice(0, 16);
  }
}

// The moment that a clock in the chosen zone shows as this text.
function momentOf(text) {
  const wanted = Date.parse(`${text}Z`);
  const shown = (at) => Date.parse(`${printed(new Date(at), zone()).replace(" ", "T")}Z`);
  const near = wanted - (shown(wanted) - wanted);
  return new Date(near - (shown(near) - wanted)).toISOString();
}

// In a narrow frame, each cell is on a separate line, labeled with the heading of its column.
function labelCells(within) {
  for (const table of within.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("th")].map((head) => head.textContent);
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, index) => {
        cell.dataset.label = heads[index];
        cell.classList.toggle("blank", !cell.textContent.trim() && !cell.querySelector("svg, progress"));
      });
    }
  }
}

// Names break where they have parts, and never in a word or a number.
function breakNames(within) {
  const walker = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    if (walker.currentNode.parentElement?.closest("td, dd, h1") && /[./_]\w/.test(walker.currentNode.data)) texts.push(walker.currentNode);
  }
  for (const text of texts) {
    const [first, ...others] = text.data.split(/(?<=[./_])(?!(?<=\d\.)\d)(?=\w)/);
    text.replaceWith(first, ...others.flatMap((other) => [document.createElement("wbr"), other]));
  }
}

function prepare(within) {
  localTimes(within);
  breakNames(within);
  labelCells(within);
  for (const button of within.querySelectorAll("button.copy, button.sort, button.csv")) button.hidden = false;
  for (const button of within.querySelectorAll("form.filters > button")) button.hidden = true;
}

// Remove the row that shows the content of the row before.
function close(row) {
  row.previousElementSibling.querySelector("a.opens").setAttribute("aria-expanded", "false");
  row.remove();
}

// Sort the rows that are shown by the column of a heading.
function sortBy(head, order) {
  const table = head.closest("table"), sign = order === "ascending" ? 1 : -1;
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const key = (row) => {
    const cell = row.cells[head.cellIndex], time = cell.querySelector("time");
    if (time) return time.dateTime;
    const first = cell.cloneNode(true);
    for (const second of first.querySelectorAll(".second")) second.remove();
    const text = first.textContent.trim(), number = Number(text.replace(/,/g, ""));
    return head.classList.contains("number") ? (text && !Number.isNaN(number) ? number : -Infinity) : text.toLowerCase();
  };
  for (const row of table.querySelectorAll("tr.opened")) close(row);
  const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
  rows.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0) * sign);
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

// Make the children of one element those of another, and keep every node that does not differ, with its focus and
// state. Return whether anything but a relative time differed.
function renew(old, fresh) {
  let differs = false;
  // A node that is used leaves `fresh`.
  const before = [...old.childNodes], after = [...fresh.childNodes];
  after.forEach((node, index) => {
    const known = before[index];
    if (!known) {
      old.append(node);
      differs = true;
    } else if (known.nodeType === 1 && known.classList.contains("part") && known.dataset.src === node.dataset?.src) {
      // It is renewed on its own.
    } else if (!known.isEqualNode(node)) {
      if (known.nodeType === 1 && known.nodeName === node.nodeName) {
        for (const { name, value } of [...node.attributes]) {
          if (name !== "open" && known.getAttribute(name) !== value) known.setAttribute(name, value);
        }
        for (const { name } of [...known.attributes]) {
          if (name !== "open" && !node.hasAttribute(name)) known.removeAttribute(name);
        }
        const isAge = known.classList.contains("ago");
        differs = renew(known, node) && !isAge || differs;
      } else {
        known.replaceWith(node);
        differs = true;
      }
    }
  });
  for (const node of before.slice(after.length)) {
    node.remove();
    differs = true;
  }
  return differs;
}

let announcing, updatedAt = new Date();

// Keep what is shown, and say since when it is not renewed.
function keep(isLoggedOut) {
  const note = document.getElementById("outdated"), [since, silent, expired] = note.children;
  since.textContent = printed(updatedAt, zone());
  silent.hidden = isLoggedOut;
  expired.hidden = !isLoggedOut;
  note.hidden = false;
}

function stamp(differs) {
  const updated = document.getElementById("updated");
  if (!updated) return;
  updatedAt = new Date();
  document.getElementById("outdated").hidden = true;
  const time = printed(updatedAt, zone());
  updated.hidden = false;
  updated.firstElementChild.textContent = time;
  if (differs) {
    // One sentence, after all parts of this round.
    clearTimeout(announcing);
    announcing = setTimeout(() => { document.getElementById("news").textContent = `The page changed at ${time}.`; }, 2000);
  }
}

async function load(part, isFirst) {
  try {
    const answer = await fetch(part.dataset?.src || location.href, { credentials: "same-origin" });
    const text = await answer.text();
    if (answer.status === 503) {
      const seconds = Number(answer.headers.get("retry-after")) || 5;
      setTimeout(() => { if (part.isConnected) load(part, isFirst); }, seconds * 1000);
    }
    if (!isFirst && (answer.status === 401 || answer.status >= 500)) {
      keep(answer.status === 401);
      return;
    }
    const parsed = new DOMParser().parseFromString(text, "text/html");
    // An error response is a whole page. Show its main part.
    const found = parsed.querySelector("main") || parsed.body;
    prepare(found);
    for (const head of part.querySelectorAll("th[aria-sort]")) {
      const tables = [...part.querySelectorAll("table")], place = tables.indexOf(head.closest("table"));
      const fresh = found.querySelectorAll("table")[place]?.tHead?.rows[0].cells[head.cellIndex];
      if (fresh && fresh.textContent === head.textContent) sortBy(fresh, head.getAttribute("aria-sort"));
    }
    if (isFirst) {
      part.replaceChildren(...found.childNodes);
      stamp(false);
    } else {
      stamp(renew(part, found));
    }
    start(part);
  } catch {
    if (isFirst) part.textContent = "Airflow does not respond. Reload the page.";
    else keep(false);
  }
}

// Load the parts that are not yet loaded.
function start(within) {
  for (const part of within.querySelectorAll(".part:not([data-started])")) {
    part.dataset.started = "";
    load(part, true);
  }
}

const SOON = 15, LATER = 60;
let seconds = 0;

// One rule for every page: each 15 seconds what contains something that runs, and each minute all of it. A list with an
// open row stands still.
setInterval(() => {
  seconds += SOON;
  const main = document.querySelector("main");
  if (document.hidden || !main || main.querySelector("form :focus, tr.opened")) return;
  const isDue = (part) => seconds % LATER === 0 || part.querySelector("[data-running]");
  if (main.dataset.live !== undefined && isDue(main)) load(main, false);
  for (const part of main.querySelectorAll(".part")) if (isDue(part)) load(part, false);
}, SOON * 1000);

document.addEventListener("click", async (event) => {
  const more = event.target.closest ? event.target.closest("a.more") : null;
  if (!more || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const answer = await fetch(more.href, { credentials: "same-origin" });
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  more.replaceWith(...(parsed.querySelector(".tree") || parsed.querySelector("main")).childNodes);
});

// A row opens in place.
document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a.opens") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const row = link.closest("tr"), below = row.nextElementSibling;
  if (below?.classList.contains("opened")) {
    close(below);
    return;
  }
  const opened = row.parentElement.insertRow(row.sectionRowIndex + 1), part = document.createElement("div");
  opened.className = "opened";
  part.className = "part";
  part.dataset.src = link.dataset.part;
  part.textContent = "Loading…";
  const cell = opened.insertCell();
  cell.colSpan = row.cells.length;
  cell.append(part);
  link.setAttribute("aria-expanded", "true");
  start(opened);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a.airflow") : null;
  if (!link || !above || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  // The frame may not navigate the parent window; Airflow's router can.
  event.preventDefault();
  above.history.pushState({}, "", link.href);
  above.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
});

// The frame may open no windows, and may not navigate the window above it, which may do both:
// docs/contributing/upstream/frame_without_windows.md
for (const kind of ["click", "auxclick"]) {
  document.addEventListener(kind, (event) => {
    const link = event.target.closest ? event.target.closest("a.outside") : null;
    if (!link || !above || event.button > 1) return;
    event.preventDefault();
    above.open(link.href, "_blank", "noopener,noreferrer");
  });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a.login") : null;
  if (!link) return;
  event.preventDefault();
  const shown = above || window, door = shown.document.createElement("a");
  door.href = `${link.href}?${new URLSearchParams({ next: shown.location.href })}`;
  door.click();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest ? event.target.closest("button.copy") : null;
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  } catch {
    // Without HTTPS or the permission, there is no clipboard.
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

// Filters apply immediately, and their times are those of the chosen zone.
document.addEventListener("change", (event) => {
  if (event.target.form && event.target.form.matches("form.filters")) event.target.form.requestSubmit();
});
document.addEventListener("formdata", (event) => {
  for (const input of event.target.querySelectorAll("input[data-moment]")) {
    if (input.value) event.formData.set(input.name, momentOf(input.value));
  }
  for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
});

document.addEventListener("click", (event) => {
  const head = event.target.closest && event.target.closest("button.sort")?.closest("th");
  if (head) sortBy(head, head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
});

// The frame of older releases of Airflow may not save files; the window above it may:
// docs/contributing/upstream/frame_without_downloads.md
document.addEventListener("click", async (event) => {
  const link = event.target.closest ? event.target.closest("a.csv") : null;
  if (!link || !above) return;
  event.preventDefault();
  const answer = await fetch(link.href, { credentials: "same-origin" });
  const file = above.document.createElement("a");
  file.href = above.URL.createObjectURL(await answer.blob());
  file.download = link.download;
  file.click();
  setTimeout(() => above.URL.revokeObjectURL(file.href), 60000);
});

// In a narrow window, Airflow's panels are wider than the window, and so is the frame. Its content is not.
function fit() {
  const seen = above.innerWidth - window.frameElement.getBoundingClientRect().left;
  document.body.style.maxWidth = seen < innerWidth ? `${Math.max(seen, NARROWEST)}px` : "";
}

const NARROWEST = 240;

theme();
if (above) {
  root.classList.add("framed");
  for (const one of [window, above]) one.addEventListener("resize", fit);
  document.addEventListener("DOMContentLoaded", fit);
  new MutationObserver(theme).observe(above.document.documentElement, { attributes: true });
} else {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
}
addEventListener("storage", (event) => { if (event.key === "timezone") localTimes(document); });
document.addEventListener("DOMContentLoaded", () => {
  prepare(document);
  start(document);
});
