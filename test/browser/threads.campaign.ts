import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { ServerProcess } from '../http/killable.ts'
import { browsing, held, lines, missing, shown, why, write } from './browsing.ts'

describe.skipIf(missing)(`pages in a real browser${why}`, () => {
  const { newPage, url: pagesUrl, opened } = browsing()

  it('[U1.3] useThread: sends, steers, queues, survives a reload, and two tabs show what history says', async () => {
    const { look, running, go } = held()
    const model = scriptedModel([{ text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', 'And a mail.'])
    const { tab, history } = await opened('use-thread', new Agent({ id: 'guide', model, tools: { look } }))
    const page = await tab()
    const other = await tab()
    await write(page, 'Plan a trip.', '#send')
    await running
    await expect.poll(() => lines(page)).toEqual(['user: Plan a trip.', 'assistant: I look.|[tool-look input-available]'])
    await write(page, 'I prefer trains.', '#send')
    await write(page, 'Then a mail.', '#queue')
    await expect.poll(() => page.locator('#queued li').count()).toBeGreaterThan(0)
    await page.reload()
    await expect.poll(() => lines(page)).toEqual(['user: Plan a trip.', 'assistant: I look.|[tool-look input-available]'])
    expect(await page.textContent('#status')).toBe('running')
    go()
    await expect.poll(async () => [await page.textContent('#status'), (await lines(page)).at(-1)]).toEqual(['idle', 'assistant: And a mail.'])
    const told = await history()
    expect(told).toEqual(['user: Plan a trip.', 'assistant: I look.|[tool-look output-available]', 'user: I prefer trains.', 'assistant: By train.', 'user: Then a mail.', 'assistant: And a mail.'])
    expect(await lines(page)).toEqual(told)
    await expect.poll(() => lines(other)).toEqual(told)
  })

  it('[U1.3] useThread: approves, declines and aborts', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Paid.', { toolCalls: [{ toolName: 'pay', input: {} }] }, 'Not paid.', { text: ['I write ', 'and write'], hang: { parts: 2 } }])
    const { tab, history } = await opened('use-thread', new Agent({ id: 'guide', model, tools: { pay } }))
    const page = await tab()
    await write(page, 'Pay.', '#send')
    await page.click('.approve')
    await expect.poll(() => lines(page)).toContain('assistant: [tool-pay output-available]|Paid.')
    await write(page, 'Pay again.', '#send')
    await page.reload()
    await page.click('.decline')
    await expect.poll(async () => (await lines(page)).at(-1)).toBe('assistant: [tool-pay output-denied]|Not paid.')
    await write(page, 'Write.', '#send')
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(/^assistant: I write/)
    await page.click('#abort')
    await expect.poll(() => page.textContent('#status')).toBe('idle')
    expect(await lines(page)).toEqual(await history())
  })

  it('[U1.3] useChat: sends, steers, resumes after a reload, approves and declines', async () => {
    const { look, running, go } = held()
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const model = scriptedModel([
      { text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.', { toolCalls: [{ toolName: 'pay', input: {} }] }, 'Paid.', { toolCalls: [{ toolName: 'pay', input: {} }] }, 'Not paid.',
    ])
    const { tab, history } = await opened('use-chat', new Agent({ id: 'guide', model, tools: { look, pay } }))
    const page = await tab()
    await write(page, 'Look.', '#send')
    await running
    await expect.poll(() => lines(page)).toEqual(['user: Look.', 'assistant: I look.|[tool-look input-available]'])
    await page.reload()
    await expect.poll(() => lines(page)).toEqual(['user: Look.', 'assistant: I look.|[tool-look input-available]'])
    go()
    await expect.poll(() => lines(page)).toEqual(['user: Look.', 'assistant: I look.|[tool-look output-available]|Seen.'])
    await write(page, 'Pay.', '#send')
    await page.click('.approve')
    await expect.poll(async () => (await lines(page)).at(-1)).toBe('assistant: [tool-pay output-available]|Paid.')
    await write(page, 'Pay again.', '#send')
    await page.click('.decline')
    await expect.poll(async () => (await lines(page)).at(-1)).toBe('assistant: [tool-pay output-denied]|Not paid.')
    expect(await lines(page)).toEqual(await history())
    expect(await page.textContent('#error')).toBe('')
  })

  it('[U1.3] useChat: steers mid-stream, queues, aborts, and a second tab shows the same as it happens', async () => {
    const { look, running, go } = held()
    const model = scriptedModel([
      { text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', 'And a mail.', { text: ['I write ', 'and write'], hang: { parts: 2 } }, 'Said there.',
    ])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    const { tab, history } = await opened('use-chat', agent)
    const page = await tab()
    const other = await tab()
    await write(page, 'Plan a trip.', '#send')
    await running
    await expect.poll(() => lines(other)).toEqual(['user: Plan a trip.', 'assistant: I look.|[tool-look input-available]'])
    await write(page, 'I prefer trains.', '#send')
    await write(page, 'Then a mail.', '#queue')
    await expect.poll(async () => (await agent.listQueued({ threadId: 't1', resourceId: 'user-1' })).length).toBeGreaterThan(0)
    go()
    await expect.poll(async () => [await page.textContent('#status'), (await lines(page)).at(-1)]).toEqual(['ready', 'assistant: And a mail.'])
    const told = await history()
    expect(told).toEqual(['user: Plan a trip.', 'assistant: I look.|[tool-look output-available]', 'user: I prefer trains.', 'assistant: By train.', 'user: Then a mail.', 'assistant: And a mail.'])
    await expect.poll(() => lines(page)).toEqual(told)
    await expect.poll(() => lines(other)).toEqual(told)
    await write(page, 'Write.', '#send')
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(/^assistant: I write/)
    await page.click('#abort')
    await expect.poll(() => page.textContent('#status')).toBe('ready')
    await expect.poll(async () => (await agent.getMemory()).getThreadById({ threadId: 't1' })).toMatchObject({ status: 'idle' })
    await expect.poll(async () => [await lines(page), await lines(other)]).toEqual([await history(), await history()])
    await write(other, 'From over here.', '#send')
    await expect.poll(async () => (await lines(page)).slice(-2)).toEqual(['user: From over here.', 'assistant: Said there.'])
    await expect.poll(async () => [await lines(page), await lines(other)]).toEqual([await history(), await history()])
    expect(await page.textContent('#error')).toBe('')
  })

  it.each(['use-thread', 'use-chat'] as const)('[U1.3] %s: steers, and is loaded again, amid a text that is being written', async (kind) => {
    const go = Promise.withResolvers<void>()
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['By car ', 'over the pass.'], gate: { parts: 2, until: go.promise } }, 'By train, then.']) })
    const { tab, history } = await opened(kind, agent)
    const page = await tab()
    await write(page, 'Plan a trip.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Plan a trip.', 'assistant: By car '])
    await write(page, 'I prefer trains.', '#send')
    await expect.poll(async () => (await agent.listQueued({ threadId: 't1', resourceId: 'user-1' })).length).toBe(1)
    const other = await tab()
    await expect.poll(() => lines(other)).toEqual(['user: Plan a trip.', 'assistant: By car '])
    await page.reload()
    await expect.poll(() => lines(page)).toEqual(['user: Plan a trip.', 'assistant: By car '])
    go.resolve()
    const told = ['user: Plan a trip.', 'assistant: By car over the pass.', 'user: I prefer trains.', 'assistant: By train, then.']
    await expect.poll(() => lines(page)).toEqual(told)
    await expect.poll(() => lines(other)).toEqual(told)
    expect(await history()).toEqual(told)
  })

  it('[U1.4] useThread: shows how many notifications wait and are unread, as they come, are put away and are sent by others', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }), notifications: { deliveryPolicy: { default: 'persist', priorities: { urgent: 'deliver', high: 'persist', medium: 'persist', low: 'persist' } } } })
    const { tab } = await opened('use-thread', agent)
    const target = { threadId: 't1', resourceId: 'user-1' }
    const page = await tab()
    const inbox = () => page.textContent('#inbox')
    await expect.poll(inbox).toBe('0 pending, 0 unread')
    const sent = await agent.sendNotificationSignal(['a', 'b', 'c'].map((summary) => ({ source: 'ci', kind: 'status', summary, priority: 'low' as const })), target)
    await agent.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'of another', priority: 'low' }, { ...target, threadId: 't2' })
    await expect.poll(inbox).toBe('3 pending, 3 unread')
    await agent.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'now', priority: 'urgent' }, target)
    await expect.poll(inbox).toBe('3 pending, 4 unread')
    const store = await agent.site().inbox.store()
    await store.markNotifications(target, sent.map(({ record }) => record.id), 'dismissed', Date.now())
    await expect.poll(inbox).toBe('0 pending, 1 unread')
    await page.reload()
    await expect.poll(inbox).toBe('0 pending, 1 unread')
    expect(await page.textContent('#connection')).toBe('live')
  })

  it.each(['use-thread', 'use-chat'] as const)('[U1.3] %s: a server that is killed amid an answer and started again gives the whole answer, once', async (kind) => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    const child = new ServerProcess(join(folder, 'heed.db'), pagesUrl())
    onTestFinished(async () => {
      await child.kill()
      rmSync(folder, { recursive: true, force: true })
    })
    const url = await child.start({ hangs: true })
    const memory = new HeedClient({ baseUrl: url, retries: 20 }).memory({ resourceId: 'user-1' })
    const page = await newPage()
    await page.goto(`${pagesUrl()}/${kind}?server=${encodeURIComponent(url)}&thread=t1`)
    await page.waitForSelector('#status')
    await write(page, 'Slowly, please.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Slowly, please.', 'assistant: Once upon a time'])
    await child.kill()
    await child.start()
    const answer = /^assistant: Answer number \d+ of many, in a few words\.$/
    // The lease of the killed process has to run out first.
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(answer)
    await write(page, 'And now?', '#send')
    await expect.poll(async () => (await lines(page)).length).toBe(4)
    await expect.poll(async () => (await memory.getThreadById({ threadId: 't1' })).status).toBe('idle')
    const told = shown((await memory.listMessages({ threadId: 't1' })).uiMessages)
    expect(told).toEqual(['user: Slowly, please.', expect.stringMatching(answer), 'user: And now?', expect.stringMatching(answer)])
    await expect.poll(() => lines(page)).toEqual(told)
    await expect.poll(() => page.textContent('#status')).toBe(kind === 'use-thread' ? 'idle' : 'ready')
  })

  it('[U1.3] both pages go on when the server is killed and started again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    const child = new ServerProcess(join(folder, 'heed.db'), pagesUrl())
    onTestFinished(async () => {
      await child.kill()
      rmSync(folder, { recursive: true, force: true })
    })
    const url = await child.start()
    const memory = new HeedClient({ baseUrl: url, retries: 20 }).memory({ resourceId: 'user-1' })
    for (const kind of ['use-thread', 'use-chat'] as const) {
      const page = await newPage()
      await page.goto(`${pagesUrl()}/${kind}?server=${encodeURIComponent(url)}&thread=${kind}`)
      await page.waitForSelector('#status')
      await write(page, 'One.', '#send')
      await expect.poll(async () => (await lines(page)).length).toBe(2)
      await child.kill()
      await child.start()
      await expect.poll(async () => (kind === 'use-thread' ? page.textContent('#connection') : 'live')).toBe('live')
      await write(page, 'Two.', '#send')
      await expect.poll(async () => ({ count: (await lines(page)).length, idle: (await memory.getThreadById({ threadId: kind })).status })).toEqual({ count: 4, idle: 'idle' })
      const told = shown((await memory.listMessages({ threadId: kind })).uiMessages)
      await expect.poll(() => lines(page)).toEqual(told)
    }
  })
})
