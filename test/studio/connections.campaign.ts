import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { missing, rows, studioBrowser, why, write } from './opened.ts'

const at = (thread: string) => `/threads/${thread}?agent=guide&resource=user-1`

/** As a browser does with a page whose tab is not the open one, which headless Chromium never does. */
const setVisibility = (page: Page, state: DocumentVisibilityState) => page.evaluate((given) => {
  Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => given })
  document.dispatchEvent(new Event('visibilitychange'))
}, state)

describe.skipIf(missing)(`the connections of Studio${why}`, () => {
  const { newPage, opened } = studioBrowser()
  const agent = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })
  /** Pages of one browser, each with a thread. */
  const pagesOf = async (open: (path: string, page: Page) => Promise<Page>, count: number) => {
    const first = await newPage()
    const pages = [first]
    while (pages.length < count) pages.push(await first.context().newPage())
    for (const [index, page] of pages.entries()) await open(at(`t${index}`), page)
    return pages
  }
  const answered = async (page: Page) => {
    await write(page, 'Hi.')
    await expect.poll(async () => (await rows(page)).slice(-2)).toEqual(['user: Hi.', 'agent: Hello.'])
  }

  it('[Y1.4] four visible pages of a browser work at once: they share the stream of changes', async () => {
    const { open } = await opened({ guide: agent() })
    const pages = await pagesOf(open, 4)
    for (const page of pages) await answered(page)
    // The list of each page has the threads of all of them, whichever page has the stream.
    const listed = (page: Page) => page.locator('.recent .name').allTextContents()
    for (const page of pages) await expect.poll(async () => (await listed(page)).toSorted()).toEqual(['t0', 't1', 't2', 't3'])
    await pages[0]?.close()
    await answered(pages[2] as Page)
    const [last] = pages.toReversed()
    await write(last as Page, 'Again.')
    for (const page of pages.slice(1)) await expect.poll(async () => (await listed(page))[0]).toBe('t3')
  })

  it('[Y1.5] a page whose server was updated says so where a file of it is gone, and its other views work', async () => {
    const { open } = await opened({ guide: agent() })
    const page = await newPage()
    await page.route(/assets\/inbox-/, (route) => route.fulfill({ status: 404, body: 'gone' }))
    await open('/threads', page)
    await page.getByRole('link', { name: 'Inbox' }).click()
    await expect.poll(() => page.locator('main h1').textContent()).toBe('Studio was updated, or the server does not answer')
    await page.getByRole('link', { name: 'Schedules' }).click()
    await expect.poll(() => page.locator('main h1').textContent()).toBe('Schedules')
    await page.getByRole('link', { name: 'Inbox' }).click()
    await page.unroute(/assets\/inbox-/)
    await page.getByRole('button', { name: 'Reload' }).click()
    await expect.poll(() => page.locator('main h1').textContent()).toBe('Inbox')
  })

  it('[Y1.4] a page that is not visible holds no connection, and shows the present when it is visible again', async () => {
    const { open, client } = await opened({ guide: agent() })
    const [first, ...others] = await pagesOf(open, 3) as [Page, ...Page[]]
    await answered(first)
    for (const page of [first, ...others]) await setVisibility(page, 'hidden')
    // Ten tabs: nine are hidden, and one is used.
    for (let more = 0; more < 6; more++) {
      const page = await first.context().newPage()
      await open(at(`more${more}`), page)
      await page.locator('.connection-live').waitFor()
      await setVisibility(page, 'hidden')
      others.push(page)
    }
    const used = await first.context().newPage()
    await open(at('used'), used)
    await answered(used)
    await client.getAgent('guide').sendMessage({ message: 'From elsewhere.', threadId: 't0', resourceId: 'user-1' })
    await expect.poll(async () => (await client.memory({ agentId: 'guide', resourceId: 'user-1' }).listMessages({ threadId: 't0' })).messages.length).toBe(4)
    expect(await rows(first)).toHaveLength(2)
    await setVisibility(first, 'visible')
    await expect.poll(() => rows(first)).toEqual(['user: Hi.', 'agent: Hello.', 'user: From elsewhere.', 'agent: Hello.'])
  })
})
