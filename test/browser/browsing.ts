import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { createTool, toUIMessages, type Agent, type UIMessage } from '../../src/index.ts'
import { served } from '../http/serving.ts'
import { site } from './site.ts'

type Kind = 'use-thread' | 'use-chat'

const found = await findProgram('chromium')

/** Whether there is no browser; and why, for the titles of the tests that are skipped. */
export const missing = 'missing' in found
export const why = whySkipped(found)

export const lines = (page: Page) => page.locator('#messages li').allTextContents()

export const write = async (page: Page, text: string, button: string) => {
  await page.fill('#text', text)
  await page.click(button)
}

export const shown = (messages: readonly UIMessage[]) =>
  messages.map(({ role, parts }) => `${role}: ${parts.filter(({ type }) => type !== 'step-start').map((part) => (part.type === 'text' ? part.text : `[${part.type} ${(part as { state?: string }).state ?? ''}]`.replace(' ]', ']'))).join('|')}`)

/** A browser and the pages, for the tests of a file. */
export function browsing() {
  let browser: Browser | undefined
  let pages: Awaited<ReturnType<typeof site>> | undefined

  beforeAll(async () => {
    pages = await site(['use-thread', 'use-chat'])
    browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox'] })
  }, 120_000)

  afterAll(async () => {
    await browser?.close()
    await pages?.close()
  })

  /** Closed after the test: a page whose server is gone would go on connecting, beside the tests that follow. */
  const newPage = async () => {
    const page = await (browser as Browser).newPage()
    // A busy machine delays the event that a test waits for, beyond the 30 s of Playwright.
    page.setDefaultTimeout(180_000)
    onTestFinished(() => page.close())
    return page
  }
  const url = () => pages?.url ?? ''

  /** A server with the agent, and tabs on one thread of it. */
  async function opened(kind: Kind, agent: Agent, { threadId = 't1', query = {} }: { threadId?: string; query?: Record<string, string> } = {}) {
    const { server } = await served({ guide: agent }, { cors: { origin: [url()] } })
    const address = `${url()}/${kind}?${new URLSearchParams({ server: server.url, thread: threadId, ...query })}`
    const tab = async () => {
      const page = await newPage()
      await page.goto(address)
      await page.waitForSelector('#status')
      return page
    }
    const history = async () => shown(toUIMessages((await (await agent.getMemory()).recall({ threadId, resourceId: 'user-1', perPage: false })).messages))
    return { tab, history, server, thread: { threadId, resourceId: 'user-1' } }
  }

  return { newPage, url, opened }
}

/** A tool that waits until the test lets it go on. */
export function held() {
  const running = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  return { running: running.promise, go: go.resolve, look: createTool({ id: 'look', execute: async () => (running.resolve(), await go.promise, 'ok') }) }
}

/** How many subscriptions a page has open, from its next load on. */
export async function subscriptions(page: Page): Promise<() => Promise<number>> {
  await page.addInitScript(() => {
    const counted = globalThis as { subscriptions?: number }
    const asked = globalThis.fetch
    counted.subscriptions = 0
    globalThis.fetch = (input, init) => {
      if (String(input).endsWith('/subscribe')) {
        counted.subscriptions = (counted.subscriptions ?? 0) + 1
        init?.signal?.addEventListener('abort', () => (counted.subscriptions = (counted.subscriptions ?? 0) - 1), { once: true })
      }
      return asked(input, init)
    }
  })
  return () => page.evaluate(() => (globalThis as { subscriptions?: number }).subscriptions ?? -1)
}
