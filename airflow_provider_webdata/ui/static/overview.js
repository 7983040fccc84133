// SPDX-License-Identifier: Apache-2.0
"use strict";
// A link to another selection of a part renews that part, so that the page keeps its place.
document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a[data-part]:not(.opens)") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const part = link.closest(".part");
  part.dataset.src = link.dataset.part;
  history.replaceState(null, "", link.href);
  load(part, false);
});
