import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveStudioDemo } from '../../src/cli/studio-demo/studio-demo.ts'
import { requests, tour } from '../../src/cli/studio-demo/tour.ts'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, InMemoryStore } from '../../src/index.ts'
import { studio } from '../../src/studio/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { everyLook, violations } from './accessible.ts'
import { builtStudio, missing, rows, studioBrowser, why, write } from './opened.ts'

const views: Record<string, string> = {
  '/threads': 'h1', '/attention': '.approval', '/inbox': '.notification', '/agents': '.card', '/agents/operations': '.tool', '/schedules': 'tbody tr',
  '/watches': '.verdicts', '/threads/release-2.1.0': '.row-agent', '/threads/release-2.1.0?panel=queue': '.panel-body > *', '/threads/release-2.1.0?panel=inbox': '.notification',
  '/threads/release-2.1.0?panel=lanes': '.lane .json', '/threads/release-2.1.0?panel=watches': '.verdicts', '/threads/release-2.1.0?panel=memory': '.panel-body .card',
  '/threads/release-2.1.0?panel=recall': '.panel-body .empty', '/threads/release-2.1.0?panel=prompt': '.parts', '/nowhere': 'h1',
  '/threads/release-2.1.0?panel=runs': '.run', '/threads/release-2.1.0/timeline': '.timeline', '/threads/release-2.1.0/timeline?as=table': '.moments', '/processes': 'tbody tr',
}

describe.skipIf(missing)(`the views of Studio${why}`, () => {
  const { newPage, opened } = studioBrowser()
  let demo: Awaited<ReturnType<typeof serveStudioDemo>> | undefined
  const sent = Promise.withResolvers<void>()
  const scope = { threadId: tour.threadId, resourceId: tour.resourceId }
  const url = () => `${demo?.url}/studio`

  beforeAll(async () => {
    demo = await serveStudioDemo({ storage: new InMemoryStore(), studio: studio({ folder: await builtStudio() }), testMs: 1, deltaMs: 0, port: 0, whileTestsRun: () => sent.promise })
  }, 120_000)
  afterAll(() => demo?.close())

  it('[Y4.1] the demo is played by the six clicks of its tour, without a key', async () => {
    const page = await newPage()
    await page.goto(demo?.studioUrl ?? '')
    const next = () => page.locator('.tour .primary').click()
    expect(await page.locator('.tour b').textContent()).toBe('1 of 6: Ask.')
    await next()
    await page.locator('.row-tool').nth(1).waitFor()
    await next()
    await expect.poll(() => page.locator('.panel .queue .clip').allTextContents()).toContain(requests.followUp)
    await next()
    await page.locator('.panel .notification').waitFor()
    sent.resolve()
    await page.locator('.approvals .approval').waitFor()
    expect(await page.locator('.approvals .fields tr').allTextContents()).toEqual(['version2.1.0', 'channels["stable"]'])
    await next()
    await expect.poll(() => rows(page)).toContain('agent: 2.1.0 is live on stable. Beta stays on 2.0.4.')
    await expect.poll(async () => (await rows(page)).filter((row) => row.includes('2.1.0 is out: search is faster'))).toHaveLength(1)
    await expect.poll(async () => (await rows(page)).some((row) => row.startsWith('agent: CI failed on main'))).toBe(true)
    await next()
    await page.locator('.row-watch').waitFor()
    expect(await page.locator('.row-watch .outside pre').textContent()).toBe('482913')
    await expect.poll(async () => (await rows(page)).at(-1)).toMatch(/^agent: The code 482913 came/)
    await expect.poll(() => page.locator('.panel .verdict').allTextContents()).toEqual(['rejected', 'matched'])
    expect(await page.locator('main').textContent()).not.toContain('Ignore all previous')
    await next()
    await page.locator('.panel .parts').waitFor()
    expect(await page.locator('.tour b').textContent()).toBe('That was the tour.')
  })

  it('[Y3.1] axe finds nothing in any view, in both themes and on a phone', async () => {
    const agent = new HeedClient({ baseUrl: demo?.url ?? '' }).getAgent('operations')
    await agent.schedules.create({ ...scope, message: 'Report.', every: 3_600_000 })
    await agent.sendMessage({ message: requests.ask, threadId: 'second', resourceId: 'demo-user' })
    await expect.poll(async () => (await agent.listSuspendedRuns()).runs.length).toBe(1)
    const [run] = (await agent.listRuns({ ...scope, perPage: 1 })).runs
    const ofStep = `/threads/${scope.threadId}/runs/${run?.runId}/steps/0`
    const [signal] = (await agent.listSignals({ ...scope, limit: 1 })).signals
    const all = { ...views, [ofStep]: '.parts', [`${ofStep}?as=raw`]: '.raw-prompt', [`/threads/${scope.threadId}/signals/${signal?.id}`]: '.facts' }
    await everyLook(newPage, url(), all)
    const page = await newPage()
    await page.goto(`${url()}/threads`)
    await page.locator('h1').waitFor()
    await page.keyboard.press('?')
    await page.locator('dialog[open]').waitFor()
    expect(await violations(page)).toEqual([])
  })

  it('[Y3.2] each view has an address, and the keyboard opens it', async () => {
    const page = await newPage()
    await page.goto(url())
    await page.locator('h1').waitFor()
    for (const [key, title, path] of [['x', 'Attention', 'attention'], ['i', 'Inbox', 'inbox'], ['a', 'Agents', 'agents'], ['s', 'Schedules', 'schedules'], ['w', 'Watches', 'watches'], ['t', 'Threads', 'threads']] as const) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await expect.poll(() => page.locator('main h1').textContent()).toBe(title)
      expect(new URL(page.url()).pathname).toBe(`/studio/${path}`)
    }
    await page.keyboard.press('/')
    await page.keyboard.type('release')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await page.reload()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    expect(await page.getByLabel('Search threads').inputValue()).toBe('release')
    await page.locator('tbody a').first().focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => page.getByRole('heading', { level: 1, name: 'Release 2.1.0' }).count()).toBe(1)
    await page.locator('.row-user').first().waitFor()
    await page.locator('main').focus()
    await page.keyboard.press('l')
    await expect.poll(() => new URL(page.url()).searchParams.get('panel')).toBe('lanes')
    await page.keyboard.press('c')
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Message')
  })

  it('[Y3.3] [Y3.6] the panels change what they show: notifications, working memory, schedules, and any kind of signal; recall says why it found what', async () => {
    const client = new HeedClient({ baseUrl: demo?.url ?? '' })
    const page = await newPage()
    await page.goto(`${url()}/threads/panels?agent=operations&resource=demo-user`)
    await write(page, 'Hello.')
    await expect.poll(async () => (await rows(page)).length).toBe(2)
    await page.getByRole('button', { name: 'Signal…' }).click()
    await page.getByLabel('notification').check()
    await page.getByLabel('Text').fill('The disk is nearly full.')
    await page.getByLabel('Priority').selectOption('low')
    await page.locator('dialog').getByRole('button', { name: 'Send', exact: true }).click()
    await expect.poll(() => page.locator('dialog [role=status]').textContent()).toBe('Decided: summarize (idle-low-summary)')
    await page.locator('dialog').getByRole('button', { name: 'Close' }).click()
    await page.getByRole('tab', { name: /Inbox/ }).click()
    await expect.poll(() => page.locator('.panel .decision').textContent()).toContain('summarize (idle-low-summary')
    expect(await page.locator('.panel .outside pre').textContent()).toBe('The disk is nearly full.')
    await page.locator('.panel').getByRole('button', { name: 'Dismiss' }).click()
    await expect.poll(() => page.locator('.panel .notification .chip').first().textContent()).toBe('dismissed')
    await page.getByRole('tab', { name: 'Memory' }).click()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Working memory').fill('Deploys on Tuesdays.')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => page.locator('.panel .json').first().textContent()).toBe('Deploys on Tuesdays.')
    const memory = client.getAgent('operations').memory({ resourceId: 'demo-user' })
    expect(await memory.getWorkingMemory({ threadId: 'panels' })).toBe('Deploys on Tuesdays.')
    await memory.saveMessages({ messages: [{ id: 'key', createdAt: new Date(), role: 'user', content: 'The spare key is under the flowerpot.', threadId: 'panels', resourceId: 'demo-user' }] })
    await page.getByRole('tab', { name: 'Recall' }).click()
    await page.getByLabel('What to recall').fill('spare key')
    await page.getByRole('button', { name: 'Search' }).click()
    const found = page.locator('.panel .history li').filter({ hasText: 'flowerpot' })
    await found.locator('summary').click()
    expect(await found.locator('dt').first().textContent()).toMatch(/words of the question.*“spare”, “key”|words of the question.*“key”, “spare”/)
    expect(await found.locator('dd').first().textContent()).toMatch(/^\+0\.\d\d$/)
    expect(await found.locator('.why p').textContent()).toMatch(/^Found, at place \d+ of the messages that fit\./)
    expect(await violations(page)).toEqual([])
  })

  it('[Y1.2] asks for a key where the server needs one, and keeps it in memory alone', async () => {
    const key = 'a-key-of-sixteen-or-more'
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']) })
    const { open } = await opened({ guide: agent }, { auth: apiKeys({ [key]: { id: 'ops', resources: ['user-1'] } }) })
    const page = await open('/threads/t1?agent=guide')
    await page.getByLabel('Key').fill('not-the-key-of-this-server')
    await page.getByRole('button', { name: 'Open' }).click()
    await expect.poll(() => page.locator('#key-note').textContent()).toBe('The server rejected this key.')
    expect(await violations(page)).toEqual([])
    await page.getByLabel('Key').fill(key)
    await page.getByRole('button', { name: 'Open' }).click()
    await write(page, 'Hi.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Hello.')
    const kept = await page.evaluate(() => JSON.stringify([location.href, document.cookie, Object.entries(localStorage), Object.entries(sessionStorage)]))
    expect(kept).not.toContain(key)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Key').waitFor()
  })
})
