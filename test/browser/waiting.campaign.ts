import { describe, expect, it } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { browsing, lines, missing, why, write } from './browsing.ts'

const kinds = ['use-thread', 'use-chat'] as const
const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })

/** An agent that pays so often at once, and says what it did. */
const payer = (calls: number) =>
  new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: Array.from({ length: calls }, (_, n) => ({ toolName: 'pay', input: { n } })) }, 'Paid.', 'Next.']), tools: { pay } })

describe.skipIf(missing)(`calls that wait, on pages in a real browser${why}`, () => {
  const { opened } = browsing()

  it.each(kinds)('[U1.7] %s: asks again after a reload and in another tab', async (kind) => {
    const { tab, history } = await opened(kind, payer(1))
    const page = await tab()
    await write(page, 'Pay.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Pay.', 'assistant: [tool-pay approval-requested]'])
    await page.reload()
    const other = await tab()
    for (const shown of [page, other]) {
      await expect.poll(() => shown.locator('.approve').count()).toBe(1)
      expect(await lines(shown)).toEqual(['user: Pay.', 'assistant: [tool-pay approval-requested]'])
    }
    await page.click('.approve')
    const told = ['user: Pay.', 'assistant: [tool-pay output-available]|Paid.']
    for (const shown of [page, other]) await expect.poll(() => lines(shown)).toEqual(told)
    expect(await history()).toEqual(told)
  })

  it.each(kinds)('[U1.7] %s: of two calls each is decided once, before and after a reload', async (kind) => {
    const { tab, history } = await opened(kind, payer(2))
    const page = await tab()
    await write(page, 'Pay.', '#send')
    await expect.poll(() => page.locator('.approve').count()).toBe(2)
    await page.locator('.approve').first().click()
    await expect.poll(() => lines(page)).toEqual(['user: Pay.', 'assistant: [tool-pay approval-responded]|[tool-pay approval-requested]'])
    await expect.poll(() => page.locator('.approve').count()).toBe(1)
    // A chat sends its decisions when it has them all: until then they are the page's own.
    if (kind === 'use-chat') await page.locator('.approve').first().click()
    else {
      await page.reload()
      await page.locator('.approve').first().click()
    }
    const told = ['user: Pay.', 'assistant: [tool-pay output-available]|[tool-pay output-available]|Paid.']
    await expect.poll(() => lines(page)).toEqual(told)
    expect(await history()).toEqual(told)
    expect(await page.locator('.approve').count()).toBe(0)
  })

  it('[U1.7] use-chat: one of two was decided elsewhere, and the page is loaded again', async () => {
    const agent = payer(2)
    const { tab, history, thread } = await opened('use-chat', agent)
    const page = await tab()
    await write(page, 'Pay.', '#send')
    await expect.poll(() => page.locator('.approve').count()).toBe(2)
    await agent.sendToolApproval({ ...thread, toolCallId: 'call_0_0', approved: true })
    await page.reload()
    await expect.poll(() => page.locator('.decline').count()).toBe(1)
    await page.click('.decline')
    const told = ['user: Pay.', 'assistant: [tool-pay output-available]|[tool-pay output-denied]|Paid.']
    await expect.poll(() => lines(page)).toEqual(told)
    expect(await history()).toEqual(told)
    await expect.poll(() => page.textContent('#status')).toBe('ready')
  })

  it.each(kinds)('[U1.7] %s: two tabs approve at once, and the slower is left without an error', async (kind) => {
    const { tab, history } = await opened(kind, payer(1))
    const [one, other] = [await tab(), await tab()]
    await write(one, 'Pay.', '#send')
    await Promise.all([one.waitForSelector('.approve'), other.waitForSelector('.approve')])
    const over = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    await other.route('**/send-tool-approval*', async (route) => {
      if (route.request().method() === 'POST') {
        asked.resolve()
        await over.promise
      }
      await route.continue()
    })
    await other.click('.approve')
    await asked.promise
    await one.click('.approve')
    const told = ['user: Pay.', 'assistant: [tool-pay output-available]|Paid.']
    await expect.poll(() => history()).toEqual(told)
    over.resolve()
    for (const page of [one, other]) {
      await expect.poll(() => lines(page)).toEqual(told)
      await expect.poll(() => page.textContent('#status')).toBe(kind === 'use-thread' ? 'idle' : 'ready')
      expect(await page.locator('#error').allTextContents()).toEqual(kind === 'use-thread' ? [] : [''])
    }
    await write(other, 'Go on.', '#send')
    for (const page of [one, other]) await expect.poll(async () => (await lines(page)).at(-1)).toBe('assistant: Next.')
    for (const page of [one, other]) expect(await lines(page)).toEqual(await history())
  })

  it.each([['beside what follows the thread', {}], ['alone', { alone: '1' }]] as const)('[U1.7] use-chat, %s: a tool that waits for data is asked about, also after a reload, and is given it', async (_, query) => {
    const given: unknown[] = []
    const ask = createTool({ id: 'ask', execute: async (_input, { resumeData, suspend }) => (resumeData === undefined ? suspend?.({ question: 'Which color?' }) : (given.push(resumeData), 'noted')) })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'ask', input: {} }] }, 'Done.', 'Next.']), tools: { ask } })
    const { tab, history } = await opened('use-chat', agent, { query })
    const page = await tab()
    await write(page, 'Ask.', '#send')
    await expect.poll(() => page.locator('.question').allTextContents()).toEqual(['{"question":"Which color?"}Give'])
    expect(await page.textContent('#status')).toBe('ready')
    await page.reload()
    await expect.poll(() => page.locator('.question').count()).toBe(1)
    await write(page, 'blue', '.give')
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(/^assistant: \[tool-ask output-available\].*\|Done\.$/)
    expect(await page.locator('.question').count()).toBe(0)
    expect(given).toEqual([{ color: 'blue' }])
    await write(page, 'Go on.', '#send')
    await expect.poll(async () => (await lines(page)).at(-1)).toBe('assistant: Next.')
    await expect.poll(() => page.textContent('#status')).toBe('ready')
    if (!('alone' in query)) await expect.poll(() => lines(page)).toEqual(await history())
    await page.reload()
    await expect.poll(() => lines(page)).toEqual(await history())
    expect(await history()).toEqual(['user: Ask.', 'assistant: [tool-ask output-available]|Done.', 'user: Go on.', 'assistant: Next.'])
  })
})
