// SPDX-License-Identifier: Apache-2.0
// The card on Airflow's Home. Airflow imports this module, and draws the function of its plugin's name.
const React = globalThis.React;
const address = new URL("../../card", import.meta.url);
const RENEWED_AFTER = 300_000;

const style = document.createElement("style");
style.textContent = `
.webdata-card { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 8px 32px;
  order: 3; padding: 12px 16px; border: 1px solid var(--chakra-colors-border); border-radius: 8px; font-size: 14px; }
.webdata-card h2 { font-weight: 600; margin-bottom: 4px; }
.webdata-card ul { list-style: none; padding: 0; margin: 0; }
.webdata-card li { padding: 2px 0; overflow-wrap: anywhere; }
.webdata-card a { color: var(--chakra-colors-fg-info); }
.webdata-card h2 a { color: inherit; }
.webdata-card a:hover, .webdata-card a:focus-visible { text-decoration: underline; }
.webdata-card span { color: var(--chakra-colors-fg-muted); }
`;

// Airflow's router opens a link without loading the page again.
function follow(event) {
  const link = event.target.closest("a.airflow");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  if (new URL(link.href).pathname.startsWith(address.pathname.replace(/card$/, ""))) return;
  event.preventDefault();
  history.pushState({}, "", link.href);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}

globalThis.WebDataCard = function WebDataCard() {
  const [content, setContent] = React.useState("");
  React.useEffect(() => {
    let isShown = true;
    async function renew() {
      try {
        const answer = await fetch(address, { credentials: "same-origin" });
        // A proxy's login is no card.
        if (answer.redirected) return;
        // Without the right to view plugins there is no card.
        const text = answer.ok ? await answer.text() : "";
        if (isShown && (answer.ok || answer.status < 500)) setContent(text);
      } catch {
        // Airflow's own page says that the server does not respond.
      }
    }
    renew();
    const timer = setInterval(() => { if (!document.hidden) renew(); }, RENEWED_AFTER);
    return () => { isShown = false; clearInterval(timer); };
  }, []);
  if (!content) return null;
  document.head.append(style);
  return React.createElement("div", {
    className: "webdata-card", onClick: follow, dangerouslySetInnerHTML: { __html: content },
  });
};
