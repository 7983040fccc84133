// SPDX-License-Identifier: Apache-2.0
// Drives every method of a public client of the service, at the address in SERVICE_URL, and reports the result of each.

import { Firecrawl } from "@mendable/firecrawl-js";

const client = new Firecrawl({ apiKey: process.env.SERVICE_KEY, apiUrl: process.env.SERVICE_URL });
const URL = "https://river.example/";
const PAGES = [URL, "https://river.example/floods"];
const SCHEMA = { type: "object", properties: { level: { type: "string" } } };

let failed = 0;

async function step(name, call, isRight = (found) => found !== undefined) {
  let line = { name, ok: true };
  let found;
  try {
    found = await call();
    if (!isRight(found)) line = { name, ok: false, why: `unexpected: ${JSON.stringify(found).slice(0, 300)}` };
  } catch (error) {
    line = { name, ok: false, why: String(error.message ?? error).slice(0, 300) };
  }
  failed += line.ok ? 0 : 1;
  console.log(JSON.stringify(line));
  return found ?? {};
}

async function refusal(name, call, isRight) {
  let refused;
  await step(name, () => call().then(() => undefined, (error) => (refused = error)), isRight);
  return refused?.requiresAction?.terms;
}

await step("search", () => client.search("river", { limit: 3, sources: ["web", "news"] }), (found) => found.web.length === 3);
await step(
  "search and scrape",
  () => client.search("river", { limit: 1, scrapeOptions: { formats: ["markdown"] } }),
  (found) => found.web[0].markdown.length > 0,
);
const page = await step(
  "scrape",
  () => client.scrape(URL, { formats: ["markdown", "links", "html"] }),
  (found) => found.markdown.length > 0 && found.metadata.statusCode === 200,
);
await step("scrape as JSON", () => client.scrape(URL, { formats: [{ type: "json", schema: SCHEMA }] }), (found) => found.json !== undefined);
await step("map", () => client.map(URL, { limit: 5 }), (found) => found.links.length > 1);
await step(
  "parse",
  () => client.parse({ data: "<p>Water</p>", filename: "a.html", contentType: "text/html" }),
  (found) => found.markdown.includes("Water"),
);

const crawl = await step("start a crawl", () => client.startCrawl(URL, { limit: 3 }), (found) => found.id.length > 0);
await step("crawl status", () => client.getCrawlStatus(crawl.id), (found) => Array.isArray(found.data));
await step("crawl errors", () => client.getCrawlErrors(crawl.id), (found) => Array.isArray(found.errors));
await step("active crawls", () => client.getActiveCrawls(), (found) => Array.isArray(found.crawls));
await step("crawl parameters", () => client.crawlParamsPreview(URL, "only /floods, 5 pages"));
await step("crawl to its end", () => client.crawl(URL, { limit: 2, pollInterval: 1 }), (found) => found.status === "completed");

const batch = await step("start a batch", () => client.startBatchScrape(PAGES, { options: { formats: ["markdown"] } }));
await step("batch status", () => client.getBatchScrapeStatus(batch.id), (found) => Array.isArray(found.data));
await step("batch errors", () => client.getBatchScrapeErrors(batch.id), (found) => Array.isArray(found.errors));
await step("batch to its end", () => client.batchScrape(PAGES, { pollInterval: 1 }), (found) => found.data.length === 2);

const extract = await step("start an extract job", () => client.startExtract({ urls: [URL], prompt: "the level" }));
await step("extract status", () => client.getExtractStatus(extract.id), (found) => found.success);
const agent = await step("start an agent", () => client.startAgent({ prompt: "the level of the river", urls: [URL] }));
await step("agent status", () => client.getAgentStatus(agent.id), (found) => found.success);

const monitor = await step("create a monitor", () =>
  client.createMonitor({
    name: "conformance",
    schedule: { cron: "0 6 * * *" },
    targets: [{ type: "scrape", urls: [URL] }],
    goal: "the level",
  }),
);
await step("list of monitors", () => client.listMonitors(), (found) => found.length === 1);
await step("get a monitor", () => client.getMonitor(monitor.id), (found) => found.id === monitor.id);
await step("update a monitor", () => client.updateMonitor(monitor.id, { name: "levels" }), (found) => found.name === "levels");
const check = await step("run a monitor", () => client.runMonitor(monitor.id), (found) => found.id.length > 0);
await step("list of checks", () => client.listMonitorChecks(monitor.id), (found) => found.length === 1);
await step("get a check", () => client.getMonitorCheck(monitor.id, check.id), (found) => found.id === check.id);
await step("delete a monitor", () => client.deleteMonitor(monitor.id), (found) => found === true);

const session = await step("open a browser", () => client.browser(), (found) => found.id.length > 0);
await step("code in a browser", () => client.browserExecute(session.id, { code: "print(1)", language: "python" }));
await step("list of browsers", () => client.listBrowsers());
await step("close a browser", () => client.deleteBrowser(session.id), (found) => found.success);

await step("developer search", () => client.developerSearch("pipeline", { k: 2 }), (found) => found.results.length === 2);
await step("paper search", () => client.research.searchPapers("river"), (found) => found.results.length > 0);
const HISTORY = { provider: "market-prices", capability: "prices/history", options: { symbol: "URM" } };
await step(
  "tools of data providers",
  () => client.findTools({ providers: ["market-prices"] }),
  (found) => found.total === 2 && found.items[0].id === "market-prices/prices/history",
);
await step(
  "calls of data providers",
  () => client.scrape({ alexandria: [HISTORY, { ...HISTORY, options: {} }], requestId: "conformance-1" }),
  (found) => found.creditsCost === 5 && found.alexandria[0].records === 5 && found.alexandria[1].error.status === 400,
);
await step(
  "the same calls again",
  () => client.scrape({ alexandria: [HISTORY, { ...HISTORY, options: {} }], requestId: "conformance-1" }),
  (found) => found.alexandria[0].records === 5,
);
await step(
  "tools in a search",
  () => client.search("podcasts", { sources: ["alexandria"], toolDetail: "full" }),
  (found) => found.tools[0].id === "episode-index/episodes/search",
);
await step(
  "tools of a page",
  () => client.scrape("https://river.example/floods", { domainTools: true, toolDetail: "summary" }),
  (found) => found.tools[0].next.capability === "find-tools",
);
const EPISODES = { provider: "episode-index", capability: "episodes/search", options: { query: "river" } };
const terms = await refusal("terms that were not accepted", () => client.scrape({ alexandria: EPISODES }), (error) => {
  const { type, terms } = error.requiresAction;
  return error.status === 403 && type === "accept_terms" && terms === "episode-index";
});
await step(
  "terms of a provider",
  () => client.scrape({ alexandria: { provider: "firecrawl", capability: "terms/show", options: { provider: terms } } }),
  (found) => found.alexandria[0].data.accepted === false,
);

// An agent that calls data providers: one requests approval of paid calls, one of terms.
async function ended(options) {
  const { id } = await client.startAgent(options);
  let found;
  do {
    await new Promise((resolve) => setTimeout(resolve, 100));
    found = await client.getAgentStatus(id);
  } while (found.status === "processing");
  return found;
}
const ASKING = { requireApproval: true, toolkits: ["market-prices"] };
const asked = await step(
  "an agent that requests approval",
  () => ended({ prompt: "price", mode: "chat", exchange: ASKING }),
  (found) => found.pendingApproval.calls.length === 2 && found.exchange.paidCalls === 0,
);
const approve = { approvalId: asked.pendingApproval?.id, callIds: [asked.pendingApproval?.calls[0].id] };
await step(
  "an approval",
  () => ended({ prompt: "go on", threadId: asked.threadId, exchange: { approve } }),
  (found) => found.exchange.paidCalls === 1 && found.exchange.creditsUsed === 5,
);
await refusal(
  "an approval that was given before",
  () => ended({ prompt: "again", threadId: asked.threadId, exchange: { approve } }),
  (error) => error.status === 404 && error.code === "approval_not_found",
);
const gated = await step(
  "an agent that requests approval of terms",
  () => ended({ prompt: "podcast", mode: "chat", exchange: { onTermsRequired: "ask" } }),
  (found) => found.pendingApproval.kind === "terms" && found.exchange.requiresAction.providers.length === 1,
);
await step(
  "a declined approval",
  () =>
    ended({ prompt: "no", threadId: gated.threadId, exchange: { decline: { approvalId: gated.pendingApproval.id } } }),
  (found) => found.exchange.paidCalls === 0 && found.pendingApproval === undefined,
);

// What the client has no method for goes through its own transport, with its headers and its handling of answers.
const http = client.http;
await step(
  "feedback on data providers",
  () =>
    http.post("/v2/feedback", {
      endpoint: "alexandria",
      rating: "bad",
      requestedWebsite: { url: URL, requestedFunctionality: "levels by hour" },
      rationale: "a report",
    }),
  (found) => found.data.creditsRefunded === 1,
);
const recorded = await step("open a recorded browser", () => http.post("/v2/interact", { recordSession: true }));
await step("close a recorded browser", () => client.deleteBrowser(recorded.data.id));
const replay = await step(
  "a recording",
  () => http.get(`/v2/interact/${recorded.data.id}/replay`),
  (found) => found.data.pageCount === 1,
);
await step(
  "a page of a recording",
  () => http.get(`/v2/interact/${recorded.data.id}/replay/${replay.data.pages[0].pageId}`),
  (found) => found.data.startsWith("#EXTM3U"),
);
await step(
  "feedback on a page",
  () => client.feedback({ endpoint: "scrape", jobId: page.metadata.scrapeId, rating: "good", note: "as expected" }),
  (found) => found.success,
);

await step("concurrency", () => client.getConcurrency(), (found) => found.maxConcurrency > 0);
await step("credits", () => client.getCreditUsage(), (found) => found.remainingCredits > 0);
await step("credits before", () => client.getCreditUsageHistorical());
await step("tokens", () => client.getTokenUsage());
await step("tokens before", () => client.getTokenUsageHistorical());
await step("queue", () => client.getQueueStatus(), (found) => found.success);

process.exitCode = failed ? 1 : 0;
