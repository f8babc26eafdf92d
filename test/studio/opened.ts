import { randomUUID } from 'node:crypto'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { buildStudio } from '../../scripts/build-studio.ts'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import type { Agent } from '../../src/index.ts'
import { studio } from '../../src/studio/index.ts'
import { served } from '../http/serving.ts'

const found = await findProgram('chromium')

/** Whether there is no browser; and why, for the titles of the tests that are skipped. */
export const missing = 'missing' in found
export const why = whySkipped(found)

/** The folder of the built pages: those of the package, or the folder of a run of tests keeps them for the other files of the run. */
export async function builtStudio(): Promise<string> {
  if (process.env.HEED_PACKAGE !== undefined) return join(process.env.HEED_PACKAGE, 'dist/studio')
  const folder = join(tmpdir(), 'studio-pages')
  if (existsSync(folder)) return folder
  const own = `${folder}-${randomUUID()}`
  await buildStudio(own)
  try {
    renameSync(own, folder)
  } catch {
    // Another file of the run was faster.
    rmSync(own, { recursive: true, force: true })
  }
  return folder
}

/** Opens Chromium for the tests of a file, and Studio on a server of each test. Every request of every page is noted. */
export function studioBrowser() {
  let browser: Browser | undefined
  let pages = ''

  beforeAll(async () => {
    pages = await builtStudio()
    browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox'] })
  }, 120_000)
  afterAll(() => browser?.close())

  /** A page whose errors, and whose requests to other origins, fail the test when it is over. */
  const newPage = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await (browser as Browser).newContext({ viewport: { width: 1440, height: 900 }, ...options })
    const page = await context.newPage()
    // A busy machine delays the event that a test waits for, beyond the 30 s of Playwright.
    page.setDefaultTimeout(180_000)
    const wrong: string[] = []
    page.on('pageerror', (error) => wrong.push(error.message))
    page.on('console', (message) => {
      if (/Content Security Policy|Trusted ?Type/i.test(message.text())) wrong.push(message.text())
    })
    page.on('request', (request) => {
      const { hostname, protocol } = new URL(request.url())
      if (protocol !== 'data:' && protocol !== 'blob:' && hostname !== '127.0.0.1') wrong.push(`a request to ${request.url()}`)
    })
    onTestFinished(async () => {
      await context.close()
      expect(wrong).toEqual([])
    })
    return page
  }

  /** A server with these agents, and its Studio. */
  const opened = async (agents: Record<string, Agent>, options: Parameters<typeof served>[1] = {}) => {
    const { server, client, heed } = await served(agents, { studio: studio({ folder: pages }), ...options })
    const open = async (path: string, page?: Page): Promise<Page> => {
      const opening = page ?? (await newPage())
      await opening.goto(`${server.url}/studio${path}`)
      await opening.waitForSelector('#root > *')
      return opening
    }
    return { server, client, heed, open }
  }
  return { newPage, opened, pages: () => pages }
}

/** Writes into the composer, and presses a button of it. */
export async function write(page: Page, text: string, button: 'Send' | 'Queue' | 'Interrupt' = 'Send'): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.locator('.composer').getByRole('button', { name: button }).first().click()
}

/** What the rows of the transcript say, without their times. */
export function rows(page: Page): Promise<string[]> {
  return page.locator('.transcript .row').evaluateAll((all) => all.map((row) => {
    const kind = /row-(\w+)/.exec(row.className)?.[1] ?? 'divider'
    const text = row.querySelector('.markdown, .plain, summary, .line')?.textContent ?? row.textContent ?? ''
    return `${kind}: ${text.replaceAll(/\d\d:\d\d:\d\d/g, '').trim()}`
  }))
}
