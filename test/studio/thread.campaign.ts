import { describe, expect, it } from 'vitest'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { held } from '../browser/browsing.ts'
import { missing, rows, studioBrowser, why, write } from './opened.ts'

const target = { threadId: 't1', resourceId: 'user-1' }
const at = '/threads/t1?agent=guide&resource=user-1'

describe.skipIf(missing)(`a thread in Studio${why}`, () => {
  const { opened } = studioBrowser()

  it('[Y2.1] two pages show the same as it happens, and a reload amid an answer continues it', async () => {
    const go = Promise.withResolvers<void>()
    const { look, running, go: goOn } = held()
    const model = scriptedModel([
      { reasoning: 'Trains are fast.', text: 'I look.', toolCalls: [{ toolName: 'look', input: { where: 'Bern' } }] },
      { text: ['By **train** ', 'at nine.'], gate: { parts: 2, until: go.promise } },
    ])
    const { open } = await opened({ guide: new Agent({ id: 'guide', name: 'Guide', model, tools: { look } }) })
    const page = await open(at)
    await write(page, 'Plan a trip.')
    await running
    const began = ['user: Plan a trip.', 'reasoning: Reasoning', 'agent: I look.', 'tool: look{"where":"Bern"}started']
    await expect.poll(() => rows(page)).toEqual(began)
    const other = await open(at)
    await expect.poll(() => rows(other)).toEqual(began)
    goOn()
    const half = [...began.slice(0, 3), 'tool: look{"where":"Bern"}→ okdone', 'agent: By train']
    await expect.poll(() => rows(page)).toEqual(half)
    await page.reload()
    await expect.poll(() => rows(page)).toEqual(half)
    expect(await page.locator('.thread-head .status').textContent()).toBe('running')
    go.resolve()
    const all = [...half.slice(0, 4), 'agent: By train at nine.']
    await expect.poll(() => rows(page)).toEqual(all)
    await expect.poll(() => rows(other)).toEqual(all)
    await expect.poll(() => other.locator('.thread-head .status').textContent()).toBe('idle')
    expect(await page.locator('.markdown strong').textContent()).toBe('train')
  })

  it('[Y2.2] sends now, queues, edits, reorders and cancels what is queued, interrupts, and stops', async () => {
    const { look, running, go } = held()
    const model = scriptedModel([
      { text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', 'Third, edited.',
      { text: ['I write ', 'and write'], hang: { parts: 2 } }, 'Interrupted.', { text: ['Again ', 'and again'], hang: { parts: 2 } },
    ])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    const { open } = await opened({ guide: agent })
    const page = await open(at)
    await write(page, 'Plan a trip.')
    await running
    await write(page, 'I prefer trains.')
    for (const text of ['First', 'Second', 'Third']) await write(page, text, 'Queue')
    const queue = page.locator('.panel .queue li')
    await expect.poll(() => queue.locator('.clip').allTextContents()).toEqual(['I prefer trains.', 'First', 'Second', 'Third'])
    await queue.filter({ hasText: 'Third' }).getByRole('button', { name: 'Earlier' }).click()
    await expect.poll(() => queue.locator('.clip').allTextContents()).toEqual(['I prefer trains.', 'First', 'Third', 'Second'])
    await queue.filter({ hasText: 'First' }).getByRole('button', { name: 'Cancel' }).click()
    await queue.filter({ hasText: 'Second' }).getByRole('button', { name: 'Cancel' }).click()
    await queue.filter({ hasText: 'Third' }).getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Edit the queued message').fill('Third, but better')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => queue.locator('.clip').allTextContents()).toEqual(['I prefer trains.', 'Third, but better'])
    expect((await agent.listQueued(target)).map(({ kind, signal }) => [kind, signal?.contents])).toEqual([['enter', 'I prefer trains.'], ['turn', 'Third, but better']])
    go()
    await expect.poll(async () => (await rows(page)).slice(-3)).toEqual(['agent: By train.', 'user: Third, but better', 'agent: Third, edited.'])
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
    await write(page, 'Write.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: I write')
    await write(page, 'Stop that.', 'Interrupt')
    await expect.poll(async () => (await rows(page)).slice(-2)).toEqual(['user: Stop that.', 'agent: Interrupted.'])
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
    await write(page, 'Again.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Again')
    await page.getByRole('button', { name: 'Stop' }).click()
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
  })

  it('[Y2.2] says why a run could not be stopped', async () => {
    const key = 'a-key-of-one-who-only-reads'
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['I write ', 'and write'], hang: { parts: 2 } }]) })
    const { open } = await opened({ guide: agent }, { auth: apiKeys({ [key]: { id: 'reader', resources: ['user-1'], scopes: ['read'] } }) })
    await agent.sendMessage('Write.', target).outcome
    const page = await open(at)
    await page.getByLabel('Key').fill(key)
    await page.getByRole('button', { name: 'Open' }).click()
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: I write')
    await page.getByRole('button', { name: 'Stop' }).click()
    await expect.poll(() => page.locator('.composer .failed code').textContent()).toBe('forbidden')
    expect(await page.locator('.thread-head .status').textContent()).toBe('running')
    agent.abortThreadStream(target)
  })

  it('[Y2.3] approves and declines the exact call with a reason, on the thread and in the list of all threads', async () => {
    const paid: unknown[] = []
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async (input) => (paid.push(input), 'paid') })
    const call = (amount: number) => ({ toolCalls: [{ toolName: 'pay', input: { amount, to: '<b>Ann</b>' } }] })
    const model = scriptedModel([call(1), 'Paid.', call(2), 'Not paid.', call(3), 'Paid too.'])
    const { open } = await opened({ guide: new Agent({ id: 'guide', model, tools: { pay } }) })
    const page = await open(at)
    await write(page, 'Pay.')
    const card = page.locator('.approvals .approval')
    await expect.poll(() => card.locator('.fields tr').allTextContents()).toEqual(['amount1', 'to<b>Ann</b>'])
    await card.focus()
    await page.keyboard.press('Control+Enter')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Paid.')
    expect(paid).toEqual([{ amount: 1, to: '<b>Ann</b>' }])
    await write(page, 'Pay again.')
    await card.waitFor()
    await page.reload()
    await card.getByLabel('Reason to decline').fill('Too much.')
    await card.getByRole('button', { name: 'Decline' }).click()
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Not paid.')
    await page.locator('.row-tool summary').last().click()
    expect(await page.locator('.row-tool').last().textContent()).toContain('Too much. By local.')
    await write(page, 'And again.')
    const list = await open('/attention')
    await expect.poll(() => list.locator('.approval .fields tr').allTextContents()).toEqual(['amount3', 'to<b>Ann</b>'])
    await list.getByRole('button', { name: 'Approve' }).click()
    await expect.poll(() => list.locator('.empty-title').textContent()).toBe('Nothing waits for a decision.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Paid too.')
    expect(paid).toHaveLength(2)
  })

  it('[Y2.4] shows markup, scripts, links and images of any text as text', async () => {
    const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\n\n[click](javascript:window.hacked=1) ![photo](https://evil.example/x.png) <a href="https://evil.example">a</a>'
    const look = createTool({ id: 'look', execute: async () => evil })
    const model = scriptedModel([{ reasoning: evil, text: evil, toolCalls: [{ toolName: 'look', input: { evil } }] }, evil])
    const agent = new Agent({ id: 'guide', name: evil, model, tools: { look }, notifications: { deliveryPolicy: { default: 'persist' } } })
    const { open, client } = await opened({ guide: agent })
    const guide = client.getAgent('guide')
    await guide.memory({ resourceId: 'user-1' }).createThread({ threadId: 't1', title: evil })
    await guide.sendStateSignal({ state: { id: 'browser', cacheKey: '1', contents: evil, value: { evil } }, ...target, ifIdle: { behavior: 'persist' } })
    await guide.sendSignal({ signal: { type: 'system-reminder', contents: evil, attributes: { evil } }, ...target, ifIdle: { behavior: 'persist' } })
    await guide.notifications.send({ notification: { source: 'ci', kind: 'x', summary: evil, priority: 'low' }, ...target })
    const page = await open(at)
    await write(page, evil)
    await expect.poll(async () => (await rows(page)).length).toBeGreaterThan(6)
    for (const summary of await page.locator('.row > summary').all()) await summary.click()
    for (const panel of ['inbox', 'lanes', 'queue']) {
      await page.getByRole('tab', { name: panel }).click()
      await page.locator('.panel-body > *').first().waitFor()
    }
    expect(await page.locator('.row-user .plain').last().textContent()).toBe(evil)
    expect(await page.evaluate(() => (window as { hacked?: number }).hacked)).toBeUndefined()
    expect(await page.locator('main img, main script, main a[href^="javascript"], main a[href*="evil"]').count()).toBe(0)
    expect(await page.locator('.markdown .chip').first().textContent()).toContain('https://evil.example/x.png')
  })

  it('[Y2.5] forks a thread from a message, and leaves the source as it is', async () => {
    const model = scriptedModel(['One.', 'Two.', 'Three.'])
    const { open, client } = await opened({ guide: new Agent({ id: 'guide', model }) })
    const page = await open(at)
    for (const [text, answer] of [['First', 'One.'], ['Second', 'Two.']] as const) {
      await write(page, text)
      await expect.poll(async () => (await rows(page)).at(-1)).toBe(`agent: ${answer}`)
    }
    await page.locator('.slot').nth(1).hover()
    await page.locator('.slot').nth(1).getByRole('button', { name: 'More about this row' }).click()
    await page.getByRole('button', { name: 'Fork from here' }).click()
    await expect.poll(() => page.locator('.thread-name h1').textContent()).toBe('Fork of t1')
    await expect.poll(() => rows(page)).toEqual(['user: First', 'agent: One.'])
    await write(page, 'Another way')
    await expect.poll(() => rows(page)).toEqual(['user: First', 'agent: One.', 'user: Another way', 'agent: Three.'])
    const source = await client.memory({ resourceId: 'user-1' }).listMessages({ threadId: 't1' })
    expect(source.uiMessages).toHaveLength(4)
  })

  it('[Y2.6] says when it is not connected, keeps what is typed, and sends a message once after it is back', async () => {
    const model = scriptedModel(['Hello.', 'Again.'])
    const { open, client } = await opened({ guide: new Agent({ id: 'guide', model }) }, { heartbeatMs: 500 })
    const page = await open(at)
    await write(page, 'Hi.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Hello.')
    await page.getByLabel('Message', { exact: true }).fill('A draft')
    await page.context().setOffline(true)
    await write(page, 'Are you there?')
    await expect.poll(() => page.locator('.row-user .failed').textContent()).toContain('Not sent:')
    await page.getByLabel('Message', { exact: true }).fill('A draft')
    await page.context().setOffline(false)
    await page.getByRole('button', { name: 'Send again' }).click()
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Again.')
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('A draft')
    const { uiMessages } = await client.memory({ resourceId: 'user-1' }).listMessages({ threadId: 't1' })
    expect(uiMessages).toHaveLength(4)
  })
})
