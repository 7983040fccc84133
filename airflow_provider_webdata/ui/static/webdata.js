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

function localTimes(within) {
  for (const element of within.querySelectorAll("time")) {
    const moment = new Date(element.dateTime);
    element.title = moment.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
}

// On a narrow screen, each cell is on a separate line, labeled with the heading of its column.
function labelCells(within) {
  for (const table of within.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("th")].map((head) => head.textContent);
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, index) => { cell.dataset.label = heads[index]; });
    }
  }
}

async function load(part) {
  try {
    const answer = await fetch(part.dataset.src, { credentials: "same-origin" });
    const text = await answer.text();
    if (answer.status === 503) {
      const seconds = Number(answer.headers.get("retry-after")) || 5;
      setTimeout(() => { if (part.isConnected) load(part); }, seconds * 1000);
    }
    const parsed = new DOMParser().parseFromString(text, "text/html");
    // An error response is a whole page. Show its main part.
    const found = parsed.querySelector("main") || parsed.body;
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    part.replaceChildren(...found.childNodes);
    part.querySelectorAll("details").forEach((details, index) => { details.open = open[index] ?? details.open; });
    ready(part);
  } catch {
    part.textContent = "Airflow does not respond. Reload the page.";
  }
}

function ready(within) {
  localTimes(within);
  labelCells(within);
  for (const part of within.querySelectorAll(".part")) {
    load(part);
    if (part.dataset.every) {
      setInterval(() => { if (!document.hidden) load(part); }, part.dataset.every * 1000);
    }
  }
  for (const button of within.querySelectorAll("button.copy")) button.hidden = false;
  if (above) {
    // The frame cannot open other sites. The URL remains as text to copy.
    for (const link of within.querySelectorAll("a.outside")) link.removeAttribute("href");
  }
}

document.addEventListener("click", async (event) => {
  const more = event.target.closest ? event.target.closest("a.more") : null;
  if (!more || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const answer = await fetch(more.href, { credentials: "same-origin" });
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  more.replaceWith(...(parsed.querySelector(".tree") || parsed.querySelector("main")).childNodes);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a.airflow") : null;
  if (!link || !above || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  // The frame may not navigate the parent window; Airflow's router can.
  event.preventDefault();
  above.history.pushState({}, "", link.href);
  above.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
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

theme();
if (above) {
  root.classList.add("framed");
  new MutationObserver(theme).observe(above.document.documentElement, { attributes: true });
} else {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
}
document.addEventListener("DOMContentLoaded", () => ready(document));
