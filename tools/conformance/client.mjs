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
await step("list of agents", () => client.listAgents());

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

await step("developer search", () => client.developerSearch("pipeline"), (found) => found.results.length > 0);
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
