import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { Agent, createTool, InMemoryStore } from '../../src/index.ts'
import { browserLane } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed } from '../thread/places.ts'

const found = await findProgram('chromium')

describe.skipIf('missing' in found)(`browserLane with a real browser${whySkipped(found)}`, () => {
  let browser: Browser
  let server: Server
  let base: string

  beforeAll(async () => {
    server = createServer((request, response) => response.setHeader('content-type', 'text/html').end(`<title>Page ${request.url}</title>`))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox'] })
  })

  afterAll(async () => {
    await browser?.close()
    server?.closeAllConnections()
    await new Promise((resolve) => server?.close(resolve))
  })

  async function tabs(context: BrowserContext, current: Page) {
    return Promise.all(context.pages().map(async (page, index) => ({ id: String(index), url: page.url(), title: await page.title(), active: page === current })))
  }

  it('[L1.5] tells the model all of it first, then what the agent\'s own tools changed in it, and nothing when nothing changed', async () => {
    const context = await browser.newContext()
    let current = await context.newPage()
    await current.goto(`${base}/start`)
    const visit = createTool({ id: 'visit', execute: async () => (await current.goto(`${base}/next`), 'ok') })
    const openTab = createTool({
      id: 'openTab',
      execute: async () => {
        current = await context.newPage()
        await current.goto(`${base}/other`)
        return 'ok'
      },
    })
    const idle = createTool({ id: 'idle', execute: () => 'ok' })
    const model = scriptedModel([...['visit', 'openTab', 'idle'].map((toolName) => ({ toolCalls: [{ toolName }] })), 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { visit, openTab, idle }, inputProcessors: [browserLane({ read: async () => ({ tabs: await tabs(context, current) }) })] })
    openHeed({ agent }, new InMemoryStore())
    await agent.generate('Browse.', { memory: { thread: 't', resource: 'u' } })
    const { signals } = await agent.listLaneHistory({ threadId: 't', resourceId: 'u', id: 'browser' })
    const told = signals.toReversed()
    expect(told.map(({ version, mode }) => [version, mode])).toEqual([[1, 'snapshot'], [2, 'delta'], [3, 'delta']])
    expect(told.map(({ value }) => value)).toMatchObject([
      { open: true, activeUrl: `${base}/start`, activeTitle: 'Page /start', tabCount: 1 },
      { activeUrl: `${base}/next`, activeTitle: 'Page /next', tabCount: 1 },
      { activeUrl: `${base}/other`, activeTitle: 'Page /other', tabCount: 2 },
    ])
    expect(told[1]?.delta).toMatchObject({ navigated: [{ id: '0', url: `${base}/next` }] })
    expect(told[2]?.delta).toMatchObject({ opened: [{ id: '1', url: `${base}/other` }], tabCount: 2 })
    const prompt = JSON.stringify(model.calls.at(-1)?.prompt)
    for (const path of ['/start', '/next', '/other']) expect(prompt).toContain(`${base}${path}`)
    expect(prompt.match(/<state/g)).toHaveLength(3)
    await context.close()
  })

  it('[L1.5] tells it all again in a later run when the window has lost it, with the tabs that are left', async () => {
    const context = await browser.newContext()
    const first = await context.newPage()
    await first.goto(`${base}/one`)
    const second = await context.newPage()
    await second.goto(`${base}/two`)
    const model = scriptedModel(() => 'Seen.')
    const agent = new Agent({ id: 'a', model, inputProcessors: [browserLane({ read: async () => ({ tabs: await tabs(context, first) }) })] })
    openHeed({ agent }, new InMemoryStore())
    const memory = { thread: 't', resource: 'u', options: { lastMessages: false as const } }
    await agent.generate('Look.', { memory })
    await second.close()
    await agent.generate('Look again.', { memory })
    const lane = await agent.getLane({ threadId: 't', resourceId: 'u', id: 'browser' })
    expect(lane).toMatchObject({ version: 2, mode: 'snapshot', value: { activeUrl: `${base}/one`, tabCount: 1 } })
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('/two')
    await context.close()
  })
})
