// Measures the main thread of Studio while an answer is streamed at 500 chunks a second: `node scripts/studio-frames.ts [chunks]`, after
// `npm run build`. Tasks are measured in CPU time of the thread, so that other processes of the machine do not count, and in elapsed time.
import { chromium } from 'playwright-core'
import { serve } from '../src/http/server.ts'
import { Agent, Heed, InMemoryStore } from '../src/index.ts'
import { studio } from '../src/studio/index.ts'
import { scriptedModel } from '../src/testing/index.ts'
import { findProgram } from './programs.ts'

interface TraceEvent {
  name: string
  ph: string
  pid: number
  tid: number
  dur?: number
  tdur?: number
  args?: { name?: string }
}

const chunks = Number(process.argv[2] ?? '5000')
const found = await findProgram('chromium')
if (!('path' in found)) throw new Error(found.missing)
const words = Array.from({ length: chunks }, (_, index) => (index % 60 === 59 ? '\n\n' : index % 17 === 0 ? '**word** ' : `word${index} `))
const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: words }], { pace: { deltaMs: 2 } }) })
const server = await serve(new Heed({ agents: { guide: agent }, storage: new InMemoryStore() }), { port: 0, handleSignals: false, studio: studio() })
const browser = await chromium.launch({ executablePath: found.path, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  await page.goto(`${server.url}/studio/threads/fast?agent=guide&resource=user-1`)
  await page.getByLabel('Message', { exact: true }).fill('Write.')
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
  const begun = performance.now()
  await page.keyboard.press('Enter')
  await page.locator('.thread-head .status-running').waitFor()
  await page.locator('.thread-head .status-idle').waitFor({ timeout: 120_000 })
  const seconds = (performance.now() - begun) / 1_000
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] }
  const isMain = (event: TraceEvent) => event.name === 'thread_name' && event.args?.name === 'CrRendererMain'
  const main = new Set(traceEvents.filter(isMain).map(({ pid, tid }) => `${pid} ${tid}`))
  const tasks = traceEvents.filter(({ name, ph, pid, tid }) => ph === 'X' && name.endsWith('RunTask') && main.has(`${pid} ${tid}`))
  const longest = (of: 'dur' | 'tdur') => Math.max(...tasks.map((task) => (task[of] ?? 0) / 1_000)).toFixed(1)
  console.log(`${chunks} chunks in ${seconds.toFixed(1)} s, ${Math.round(chunks / seconds)} a second, ${tasks.length} tasks`)
  console.log(`the longest task: ${longest('tdur')} ms of CPU time, ${longest('dur')} ms elapsed`)
  const length = await page.locator('.row-agent').first().evaluate((row) => row.textContent?.length ?? 0)
  if (length < chunks * 4) throw new Error(`The page shows ${length} characters of the answer.`)
} finally {
  await browser.close()
  await server.close()
}
