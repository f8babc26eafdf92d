import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { browsing, held, lines, missing, subscriptions, why, write } from './browsing.ts'

const kinds = ['use-thread', 'use-chat'] as const

describe.skipIf(missing)(`one page and one thread in a real browser${why}`, () => {
  const { opened, url } = browsing()

  it.each(kinds)('[U1.8] %s: sends any number of steering messages on one connection, and can still stop the run', async (kind) => {
    const { look, running, go } = held()
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.']), tools: { look } })
    const { tab, history, thread } = await opened(kind, agent)
    const page = await tab()
    const open = await subscriptions(page)
    await page.reload()
    await write(page, 'Look.', '#send')
    await running
    for (let n = 1; n <= 7; n++) {
      await write(page, `Steer ${n}.`, '#send')
      await expect.poll(async () => (await agent.listQueued(thread)).length).toBe(n)
    }
    expect(await open()).toBe(1)
    await page.click('#abort')
    await expect.poll(async () => (await history()).at(-1)).toBe('assistant: Seen.')
    go()
    await expect.poll(() => lines(page)).toEqual(await history())
    expect((await history()).length).toBe(10)
    await expect.poll(() => page.textContent('#status')).toBe(kind === 'use-thread' ? 'idle' : 'ready')
    expect(await open()).toBe(1)
  })

  it.each(kinds)('[U1.9] %s: a send that is refused leaves the page as it was, and it goes on', async (kind) => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['One.', 'Two.']) })
    const { tab, history } = await opened(kind, agent)
    const [page, other] = [await tab(), await tab()]
    const open = await subscriptions(page)
    await page.reload()
    // The answer to the hook's first question, whether a run is active, would clear the error of a send.
    await expect.poll(open).toBe(1)
    if (kind === 'use-chat') await expect.poll(() => page.textContent('#status')).toBe('ready')
    const refusal = { status: 400, headers: { 'access-control-allow-origin': '*' }, contentType: 'application/json', body: '{"error":"No.","code":"invalid_argument"}' }
    await page.route('**/send-message*', (route) => route.fulfill(refusal))
    await write(page, 'Refused.', '#send')
    if (kind === 'use-chat') await expect.poll(() => page.textContent('#error')).toBe('No.')
    else await expect.poll(() => lines(page)).toEqual([])
    await page.unroute('**/send-message*')
    await write(other, 'From there.', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: From there.', 'assistant: One.'])
    await write(page, 'And from here.', '#send')
    for (const shown of [page, other]) await expect.poll(() => lines(shown)).toEqual(['user: From there.', 'assistant: One.', 'user: And from here.', 'assistant: Two.'])
    expect(await history()).toEqual(await lines(page))
    expect(await open()).toBe(1)
  })

  it('[U1.9] useThread: what was sent and is cleared, cancelled or not wanted does not stay on the page', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['I write ', 'and write'], hang: { parts: 2 } }]) })
    const { tab, history, thread } = await opened('use-thread', agent)
    const page = await tab()
    await write(page, 'Write.', '#send')
    const told = ['user: Write.', expect.stringMatching(/^assistant: I write/)]
    await expect.poll(() => lines(page)).toEqual(told)
    await write(page, 'Only if you rest.', '#if-idle')
    await expect.poll(() => lines(page)).toEqual(told)
    await write(page, 'Never mind.', '#send')
    await expect.poll(() => lines(page)).toEqual([...told, 'user: Never mind.'])
    await expect.poll(async () => (await agent.listQueued(thread)).length).toBe(1)
    // The page learns of queued messages with the next event.
    await write(page, 'Neither.', '#queue')
    await expect.poll(() => page.locator('#queued li').count()).toBe(2)
    await page.click('#cancel')
    await expect.poll(() => lines(page)).toEqual(told)
    await write(page, 'And this?', '#send')
    await expect.poll(async () => (await agent.listQueued(thread)).length).toBe(1)
    await page.click('#clear')
    await expect.poll(() => page.textContent('#status')).toBe('idle')
    await expect.poll(() => lines(page)).toEqual(await history())
    expect(await history()).toEqual(told)
  })

  it('[U1.10] useThread: a long thread is shown to its first message; useChat keeps what it loaded', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Ok.'], { loop: true }) })
    const { tab, history, thread, server } = await opened('use-thread', agent)
    for (let n = 0; n < 130; n++) await agent.generate(`Number ${n}.`, { memory: { thread: thread.threadId, resource: thread.resourceId } })
    const page = await tab()
    await expect.poll(async () => (await lines(page)).length).toBe(100)
    await write(page, 'One more.', '#send')
    await expect.poll(async () => (await lines(page)).length).toBe(102)
    await page.click('#older')
    await expect.poll(async () => (await lines(page)).length).toBe(200)
    await page.click('#older')
    await expect.poll(() => lines(page)).toEqual(await history())
    expect(await page.isDisabled('#older')).toBe(true)
    await page.goto(`${url()}/use-chat?${new URLSearchParams({ server: server.url, thread: thread.threadId, load: '1000' })}`)
    await expect.poll(() => lines(page)).toEqual(await history())
    await write(page, 'And another.', '#send')
    await expect.poll(async () => (await lines(page)).at(-2)).toBe('user: And another.')
    await expect.poll(() => page.textContent('#status')).toBe('ready')
    await expect.poll(() => lines(page)).toEqual(await history())
    expect((await history()).length).toBe(264)
  })

  it('[U1.3] useChat: a page that was loaded again amid an answer can still stop it', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['I write ', 'and write'], hang: { parts: 2 } }]) })
    const { tab, history, thread } = await opened('use-chat', agent)
    const page = await tab()
    await write(page, 'Write.', '#send')
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(/^assistant: I write/)
    await page.reload()
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(/^assistant: I write/)
    await page.click('#abort')
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
    await expect.poll(() => page.textContent('#status')).toBe('ready')
    await expect.poll(() => lines(page)).toEqual(await history())
  })

  it('[U1.11] useThread: another client is another server', async () => {
    const second = new Agent({ id: 'guide', model: scriptedModel(['There.']) })
    const there = await served({ guide: second }, { cors: { origin: [url()] } })
    const { tab } = await opened('use-thread', new Agent({ id: 'guide', model: scriptedModel(['Here.']) }), { query: { other: there.server.url } })
    const page = await tab()
    const open = await subscriptions(page)
    await page.reload()
    await write(page, 'Where?', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: Where?', 'assistant: Here.'])
    await page.click('#switch')
    await expect.poll(() => lines(page)).toEqual([])
    await write(page, 'And now?', '#send')
    await expect.poll(() => lines(page)).toEqual(['user: And now?', 'assistant: There.'])
    expect(await open()).toBe(1)
  })
})
