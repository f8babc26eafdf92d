import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { ServerProcess } from '../http/killable.ts'
import { browsing, held, lines, missing, shown, why, write } from './browsing.ts'

const kinds = ['use-thread', 'use-chat'] as const

/** What a page reports: errors that its code left unhandled, and those that the browser writes to the console. */
function complaints(page: Page): string[] {
  const told: string[] = []
  page.on('pageerror', (error) => told.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') told.push(message.text())
  })
  return told
}

describe.skipIf(missing)(`pages whose server is away, in a real browser${why}`, () => {
  const { newPage, url: pagesUrl, opened } = browsing()

  it.each(kinds)('[U1.12] %s: after kill -9 during a text the page follows the run that continues, and shows that it runs', async (kind) => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    const child = new ServerProcess(join(folder, 'heed.db'), pagesUrl())
    onTestFinished(async () => {
      await child.kill()
      rmSync(folder, { recursive: true, force: true })
    })
    const url = await child.start({ hangs: 'Once upon a time' })
    const page = await newPage()
    await page.goto(`${pagesUrl()}/${kind}?server=${encodeURIComponent(url)}&thread=t1`)
    await page.waitForSelector('#status')
    const active = kind === 'use-thread' ? 'running' : 'streaming'
    await write(page, 'Slowly, please.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Slowly, please.', 'assistant: Once upon a time'])
    await child.kill()
    await child.start({ hangs: 'There was a train' })
    // The lease of the killed process has to run out first; until then the page shows what it had.
    await expect.poll(() => lines(page)).toEqual(['user: Slowly, please.', 'assistant: There was a train'])
    expect(await page.textContent('#status')).toBe(active)
    await child.kill()
    await child.start()
    const answer = /^assistant: Answer number \d+ of many, in a few words\.$/
    await expect.poll(async () => [await lines(page), await page.textContent('#status')]).toEqual([['user: Slowly, please.', expect.stringMatching(answer)], kind === 'use-thread' ? 'idle' : 'ready'])
    const { uiMessages } = await new HeedClient({ baseUrl: url, retries: 20 }).memory({ resourceId: 'user-1' }).listMessages({ threadId: 't1' })
    expect(await lines(page)).toEqual(shown(uiMessages))
  })

  it.each(kinds)('[U1.9] %s: a message that is sent during an outage stays, is marked, and is sent again on request, once', async (kind) => {
    const { tab, history } = await opened(kind, new Agent({ id: 'guide', model: scriptedModel(['Here.', 'And here.']) }))
    const page = await tab()
    const told = complaints(page)
    await page.route('**/send-message*', (route) => route.abort())
    await write(page, 'Anybody?', '#send')
    await expect.poll(() => page.locator('#messages li.unsent').allTextContents()).toEqual(['user: Anybody?'])
    const error = kind === 'use-thread' ? '#send-error' : '#error'
    expect(await page.textContent(error)).toMatch(/did not respond/)
    await page.unroute('**/send-message*')
    await page.click('.retry')
    await expect.poll(() => lines(page)).toEqual(['user: Anybody?', 'assistant: Here.'])
    expect([await page.textContent(error), await page.locator('#messages li.unsent').count()]).toEqual(['', 0])
    await write(page, 'Good.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Anybody?', 'assistant: Here.', 'user: Good.', 'assistant: And here.'])
    expect(await history()).toEqual(await lines(page))
    // The browser itself reports requests that failed; nothing was left unhandled.
    expect(told.filter((text) => !/net::ERR_FAILED/.test(text))).toEqual([])
  })

  it.each(kinds)('[U1.13] %s: a new thread causes no error in the console', async (kind) => {
    const { tab } = await opened(kind, new Agent({ id: 'guide', model: scriptedModel(['Hello.']) }))
    const page = await tab()
    const told = complaints(page)
    await page.reload()
    await page.waitForSelector('#status')
    await write(page, 'Hi.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Hi.', 'assistant: Hello.'])
    await expect.poll(() => page.textContent('#status')).toBe(kind === 'use-thread' ? 'idle' : 'ready')
    expect(told).toEqual([])
  })

  it('[U1.14] useThread: a message that steers is shown once, and the queue says what each of its entries will do', async () => {
    const { look, running, go } = held()
    const model = scriptedModel([{ text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', 'And a mail.'])
    const { tab, history } = await opened('use-thread', new Agent({ id: 'guide', model, tools: { look } }))
    const [page, other] = [await tab(), await tab()]
    await write(page, 'Plan a trip.', '#send')
    await running
    await write(page, 'I prefer trains.', '#send')
    await write(page, 'Then a mail.', '#queue')
    const queue = () => page.locator('#queued li').allTextContents()
    await expect.poll(queue).toEqual(['enter: I prefer trains.', 'turn: Then a mail.'])
    expect(await lines(page)).toEqual(['user: Plan a trip.', 'assistant: I look.|[tool-look input-available]'])
    await other.reload()
    await expect.poll(() => other.locator('#queued li').allTextContents()).toEqual(await queue())
    go()
    const told = ['user: Plan a trip.', 'assistant: I look.|[tool-look output-available]', 'user: I prefer trains.', 'assistant: By train.', 'user: Then a mail.', 'assistant: And a mail.']
    for (const one of [page, other]) await expect.poll(async () => [await one.textContent('#status'), await lines(one)]).toEqual(['idle', told])
    await expect.poll(queue).toEqual([])
    expect(await history()).toEqual(told)
  })
})
