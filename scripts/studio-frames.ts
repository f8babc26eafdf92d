// Measures the main thread of Studio while an answer is streamed: `node scripts/studio-frames.ts [chunks] [chunks a second]`, after
// `npm run build`. Tasks are measured in CPU time of the thread, so that other processes of the machine do not count, and in elapsed time.
// The model writes by the clock: chunks that are late, since the machine was busy, come at once, and the mean is what was asked for.
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
const perSecond = Number(process.argv[3] ?? '500')
const agent = new Agent({ id: 'guide', model: paced(scriptedModel([{ text: words }]), perSecond) })
const server = await serve(new Heed({ agents: { guide: agent }, storage: new InMemoryStore() }), { port: 0, handleSignals: false, studio: studio() })
const browser = await chromium.launch({ executablePath: found.path, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  await page.goto(`${server.url}/studio/threads/fast?agent=guide&resource=user-1`)
  await page.getByLabel('Message', { exact: true }).fill('Write.')
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
  const begun = performance.now()
  const cpu = process.cpuUsage()
  await page.evaluate(countFrames)
  await page.keyboard.press('Enter')
  await page.locator('.thread-head .status-running').waitFor()
  await page.locator('.thread-head .status-idle').waitFor({ timeout: 120_000 })
  const seconds = (performance.now() - begun) / 1_000
  const used = process.cpuUsage(cpu)
  const frames = (await page.evaluate(() => (globalThis as unknown as { frames: number[] }).frames)).toSorted((one, other) => one - other)
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] }
  const isMain = (event: TraceEvent) => event.name === 'thread_name' && event.args?.name === 'CrRendererMain'
  const main = new Set(traceEvents.filter(isMain).map(({ pid, tid }) => `${pid} ${tid}`))
  const tasks = traceEvents.filter(({ name, ph, pid, tid }) => ph === 'X' && name.endsWith('RunTask') && main.has(`${pid} ${tid}`))
  const longest = (of: 'dur' | 'tdur') => Math.max(...tasks.map((task) => (task[of] ?? 0) / 1_000)).toFixed(1)
  console.log(`${chunks} chunks in ${seconds.toFixed(1)} s, ${Math.round(chunks / seconds)} a second, ${tasks.length} tasks`)
  console.log(`the longest task: ${longest('tdur')} ms of CPU time, ${longest('dur')} ms elapsed`)
  const busy = tasks.reduce((sum, task) => sum + (task.tdur ?? 0), 0) / 1_000_000
  console.log(`frames: ${frames.length}, p95 ${frames[Math.floor(frames.length * 0.95)]?.toFixed(1)} ms apart`)
  console.log(`CPU: the page ${((busy / seconds) * 100).toFixed(0)} %, the server ${((used.user + used.system) / seconds / 10_000).toFixed(0)} % of a core`)
  const length = await page.locator('.row-agent').first().evaluate((row) => row.textContent?.length ?? 0)
  if (length < chunks * 4) throw new Error(`The page shows ${length} characters of the answer.`)
} finally {
  await browser.close()
  await server.close()
}

/** A model that writes so many parts of its answer a second. */
function paced(model: ReturnType<typeof scriptedModel>, partsPerSecond: number): ReturnType<typeof scriptedModel> {
  const write = model.doStream.bind(model)
  return Object.assign(model, {
    doStream: async (...args: Parameters<typeof write>) => {
      const answer = await write(...args)
      const start = performance.now()
      let parts = 0
      const pace = new TransformStream<unknown, unknown>({
        async transform(part, controller) {
          const early = start + (parts++ * 1_000) / partsPerSecond - performance.now()
          if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
          controller.enqueue(part)
        },
      })
      return { ...answer, stream: answer.stream.pipeThrough(pace) }
    },
  })
}

/** Runs in the browser. */
function countFrames(): void {
  const frames: number[] = []
  let last = performance.now()
  const next = () => {
    const now = performance.now()
    frames.push(now - last)
    last = now
    requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
  Object.assign(globalThis, { frames })
}
