import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel, type ScriptedModel } from '../../src/testing/index.ts'
import { missing, studioBrowser, why, write } from './opened.ts'

// HEED_STUDIO_LONG=1: 100,000 messages. scripts/studio-frames.ts measures a stream.
const isLong = process.env.HEED_STUDIO_LONG === '1'
const count = isLong ? 100_000 : 3_000

interface TraceEvent {
  name: string
  ph: string
  pid: number
  tid: number
  dur?: number
  tdur?: number
  args?: { name?: string }
}

/** The tasks of the page's main thread while `act` runs, in ms of its CPU time: other processes of the machine do not count. */
async function tasksDuring(page: Page, act: () => Promise<void>): Promise<number[]> {
  const browser = page.context().browser()
  if (!browser) throw new Error('The page has no browser.')
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
  let trace: Buffer
  try {
    await act()
  } finally {
    trace = await browser.stopTracing()
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] }
  const main = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`))
  const tasks = traceEvents.filter(({ name, ph, pid, tid }) => ph === 'X' && name.endsWith('RunTask') && main.has(`${pid} ${tid}`))
  expect(tasks.length).toBeGreaterThan(20)
  return tasks.map(({ tdur = 0 }) => tdur / 1_000).toSorted((one, other) => one - other)
}

/** A model that writes so many parts of its answer a second, by the clock: parts that are late, since the machine was busy, come at once. */
function paced(model: ScriptedModel, partsPerSecond: number): ScriptedModel {
  const answer = model.doStream.bind(model)
  const doStream = async (...args: Parameters<typeof answer>) => {
    const given = await answer(...args)
    const start = performance.now()
    let parts = 0
    const pace = new TransformStream<unknown, unknown>({
      async transform(part, controller) {
        const early = start + (parts++ * 1_000) / partsPerSecond - performance.now()
        if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
        controller.enqueue(part)
      },
    })
    return { ...given, stream: given.stream.pipeThrough(pace) }
  }
  return Object.assign(model, { doStream })
}

const shown = (page: Page) => page.locator('.slot[data-message]').evaluateAll((all) => {
  const frame = document.querySelector('.transcript')?.getBoundingClientRect()
  return all.filter((slot) => {
    const { top, bottom } = slot.getBoundingClientRect()
    return frame !== undefined && bottom > frame.top && top < frame.bottom
  }).map((slot) => (slot as HTMLElement).dataset.message)
})

describe.skipIf(missing)(`a long thread in Studio${why}`, () => {
  const { opened } = studioBrowser()

  it('[Y2.7] any message of a long thread is shown by a scroll or a link, with few elements in the page', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']) })
    const { open } = await opened({ guide: agent })
    const memory = await agent.getMemory()
    const scope = { threadId: 'long', resourceId: 'user-1' }
    await memory.createThread(scope)
    for (let from = 0; from < count; from += 1_000) {
      const messages = Array.from({ length: 1_000 }, (_, index) => from + index).map((number) => ({
        id: `m${number}`, ...scope, role: number % 2 ? ('assistant' as const) : ('user' as const),
        content: `Message **${number}**.${number % 7 ? '' : '\n\nA second paragraph, which makes this row taller than others.'}`,
      }))
      await memory.saveMessages({ messages })
    }
    const page = await open('/threads/long?agent=guide&resource=user-1')
    await expect.poll(async () => (await shown(page)).at(-1)).toBe(`m${count - 1}`)
    const scroller = page.locator('.transcript')
    await expect.poll(() => scroller.evaluate((element) => element.scrollHeight)).toBeGreaterThan(count * 40)
    const scroll = async () => {
      // A drag of the scroll bar through the whole thread, in 60 frames.
      await scroller.evaluate(async (element) => {
        const { scrollHeight } = element
        for (let frame = 60; frame >= 0; frame -= 1) {
          element.scrollTop = (scrollHeight * frame) / 60
          await new Promise((resolve) => requestAnimationFrame(resolve))
        }
      })
      // Rows that are loaded and measured meanwhile move those below them.
      await expect.poll(async () => {
        await scroller.evaluate((element) => (element.scrollTop = 0))
        return (await shown(page))[0]
      }).toBe('m0')
    }
    const tasks = isLong ? await tasksDuring(page, scroll) : (await scroll(), [])
    if (isLong) process.stdout.write(`scroll through ${count} messages: ${tasks.length} tasks, longest ${tasks.at(-1)?.toFixed(1)} ms of CPU\n`)
    expect(await page.locator('.slot').count()).toBeLessThan(80)
    const middle = `m${count / 2 + 1}`
    await open(`/threads/long?agent=guide&at=${middle}`, page)
    await expect.poll(() => shown(page)).toContain(middle)
    expect(await page.locator('.slot.is-linked').textContent()).toContain(`Message ${count / 2 + 1}.`)
    // A new message comes to the end, wherever the reader is; the end shows it.
    await write(page, 'And now?')
    await page.getByLabel('Message', { exact: true }).blur()
    await page.keyboard.press('Shift+G')
    await expect.poll(() => page.locator('.row-agent').last().textContent()).toContain('Hello.')
  })

  it('[Y2.8] an answer of 500 chunks a second is shown without a task of the page above 100 ms', async () => {
    const words = Array.from({ length: 1_500 }, (_, index) => (index % 60 === 59 ? '\n\n' : index % 17 === 0 ? '**word** ' : `word${index} `))
    const { open } = await opened({ guide: new Agent({ id: 'guide', model: paced(scriptedModel([{ text: words }]), 500) }) })
    const page = await open('/threads/fast?agent=guide&resource=user-1')
    await page.locator('.connection-live').waitFor()
    const tasks = await tasksDuring(page, async () => {
      await write(page, 'Write.')
      await expect.poll(() => page.locator('.row-agent').last().textContent()).toContain('word1498')
      await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
    })
    expect(tasks.at(-1)).toBeLessThan(100)
  })

  it('[U1.16] an answer that is faster than a slow page is shown as it is written, once a frame, and can be stopped', async () => {
    // More than is ever read: the answer ends when it is stopped.
    const words = Array.from({ length: 100_000 }, (_, index) => (index % 60 === 59 ? '\n\n' : index % 17 === 0 ? '**word** ' : `word${index} `))
    const model = scriptedModel([{ text: words }], { pace: { deltaMs: 2 } })
    const { open } = await opened({ guide: new Agent({ id: 'guide', model }) })
    const page = await open('/threads/fast?agent=guide&resource=user-1')
    await page.getByLabel('Message', { exact: true }).waitFor()
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 8 })
    const counts = await page.evaluateHandle(() => {
      const counted = { frames: 0, changes: 0 }
      const frame = () => requestAnimationFrame(() => ((counted.frames += 1), frame()))
      frame()
      new MutationObserver(() => (counted.changes += 1)).observe(document.body, { subtree: true, childList: true, characterData: true })
      return counted
    })
    await write(page, 'Write.')
    await expect.poll(() => page.locator('.row-agent').last().textContent()).toMatch(/word[1-9]\d\d/)
    expect(await page.locator('.thread-head .status').textContent()).toBe('running')
    const { frames, changes } = await counts.jsonValue()
    expect(changes).toBeLessThan(frames * 2 + 40)
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    await page.getByRole('button', { name: 'Stop' }).click()
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
  })
})
