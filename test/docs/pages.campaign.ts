import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import axe from 'axe-core'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { buildSite, readDocumentation } from '../../scripts/docs/site.ts'
import { findProgram, whySkipped } from '../../scripts/programs.ts'

const root = join(import.meta.dirname, '../..')
const found = await findProgram('chromium')

describe.skipIf('missing' in found)(`the site of the documentation in a browser${whySkipped(found)}`, () => {
  let browser: Browser
  let out: string

  beforeAll(async () => {
    out = mkdtempSync(join(tmpdir(), 'heed-site-'))
    buildSite(root, out, readDocumentation(root))
    browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox'] })
  })
  afterAll(async () => {
    await browser.close()
    rmSync(out, { recursive: true })
  })

  /** A page from the disk. Its errors, and requests for anything but files, fail the test. */
  async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(180_000)
    const wrong: string[] = []
    page.on('pageerror', (error) => wrong.push(error.message))
    page.on('request', (request) => {
      if (!request.url().startsWith(pathToFileURL(out).href)) wrong.push(request.url())
    })
    onTestFinished(async () => {
      await context.close()
      expect(wrong).toEqual([])
    })
    await page.goto(pathToFileURL(join(out, path)).href)
    return page
  }

  it('[C6.2] [C6.4] is read and searched from a disk, by the keyboard', async () => {
    const page = await open('docs/recipes/nextjs.html')
    await page.keyboard.press('/')
    await page.keyboard.type('what does api_key_mis')
    const results = page.getByRole('option')
    await expect.poll(() => results.first().textContent()).toContain('api_key_missing')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(/docs\/errors\.html#api_key_missing$/)
    await expect.poll(() => page.locator('#api_key_missing').evaluate((heading) => heading.getBoundingClientRect().top)).toBeLessThan(200)
    await page.keyboard.press('/')
    await page.keyboard.type('xyzzyxyzzy')
    await expect.poll(() => page.getByRole('status').textContent()).toBe('Nothing found for “xyzzyxyzzy”.')
  })

  it('[C6.2] keeps the chosen theme from page to page', async () => {
    const page = await open('index.html', { colorScheme: 'dark' })
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    expect(await background()).toBe('rgb(14, 17, 22)')
    await page.getByRole('button', { name: 'Theme: system' }).click()
    expect(await background()).toBe('rgb(255, 255, 255)')
    await page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name: 'Threads', exact: true }).click()
    await page.waitForURL(/threads\.html$/)
    expect(await background()).toBe('rgb(255, 255, 255)')
  })

  it('[C6.2] axe finds nothing in both themes and on a phone, where no page is wider than the screen', async () => {
    const phone = { width: 390, height: 844 }
    const kinds: Array<[path: string, options: BrowserContextOptions]> = [
      ['index.html', { colorScheme: 'light' }], ['docs/threads.html', { colorScheme: 'dark' }], ['docs/recipes/express.html', { colorScheme: 'light' }],
      ['docs/threads.html', { colorScheme: 'light', viewport: phone }], ['docs/studio.html', { colorScheme: 'dark', viewport: phone }],
    ]
    for (const [path, kind] of kinds) {
      const page = await open(path, kind)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run(document, { resultTypes: ['violations'] }))
      const list = violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`))
      expect(list, `${path} ${JSON.stringify(kind)}`).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0)
    }
  })
})
