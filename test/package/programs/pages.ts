import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readUIMessageStream, type UIMessage } from 'ai'
import { chromium, type Page } from 'playwright-core'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { rolldown } from 'rolldown'
import { Agent, createTool } from 'heed'
import { HeedChatTransport } from 'heed/ai-sdk'
import { useThread } from 'heed/react'
import { scriptedModel } from 'heed/testing'
import { served, thread } from './parts/serving.ts'
import { until } from './parts/until.ts'

/** A page as an application bundles it. */
async function bundled(page: string): Promise<string> {
  const build = await rolldown({
    input: join(import.meta.dirname, 'pages', `${page}.ts`),
    platform: 'browser',
    // Packages say where they run; a page is one place. What no browser has is an error.
    onLog: (_level, log) => assert.ok(!/node:/.test(log.message), log.message),
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  })
  const { output } = await build.generate({ format: 'esm', minify: true })
  await build.close()
  assert.deepEqual(output.flatMap((file) => (file.type === 'chunk' ? file.imports : [])), [])
  return output[0].code
}

const pages = ['use-thread', 'use-chat'] as const
const scripts = new Map<string, string>()

test('pages with useThread and useChat are bundled without anything of Node', async () => {
  for (const page of pages) scripts.set(page, await bundled(page))
})

const path = process.env.HEED_CHROMIUM
const options = path ? {} : { skip: 'Chromium is not installed' }
for (const kind of pages) {
  test(`a page with ${kind} sends, shows the run as it is written, and approves a call`, options, async () => {
    const site = createServer((request, response) => {
      const isScript = request.url?.endsWith('.js') ?? false
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
      const html = `<!doctype html><meta charset="utf-8"><body><script type="module" src="/${kind}.js"></script>`
      response.end(isScript ? scripts.get(kind) : html)
    })
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    after(() => void site.close())
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const model = scriptedModel(['Hello.', { toolCalls: [{ toolName: 'pay', input: {} }] }, 'Paid.'])
    const agent = new Agent({ id: 'guide', model, tools: { pay } })
    const { server } = await served(agent, { cors: { origin: [url] } })
    const browser = await chromium.launch({ executablePath: path as string, args: ['--no-sandbox'] })
    try {
      const page = await browser.newPage()
      await page.goto(`${url}/${kind}?${new URLSearchParams({ server: server.url, thread: 't1' })}`)
      const lines = () => page.locator('#messages li').allTextContents()
      await write(page, 'Hi.')
      await until(lines, ['user: Hi.', 'assistant: Hello.'])
      await write(page, 'Pay.')
      await page.click('.approve')
      await until(lines, ['user: Hi.', 'assistant: Hello.', 'user: Pay.', 'assistant: [tool-pay output-available]|Paid.'])
      await page.reload()
      await until(lines, ['user: Hi.', 'assistant: Hello.', 'user: Pay.', 'assistant: [tool-pay output-available]|Paid.'])
    } finally {
      await browser.close()
      site.closeAllConnections()
    }
  })
}

async function write(page: Page, text: string): Promise<void> {
  await page.fill('#text', text)
  await page.click('#send')
}

test('useThread is rendered on a server', () => {
  const Shown = () => createElement('p', null, useThread({ ...thread, agent: 'guide', client: { baseUrl: 'http://heed.test' } }).status)
  assert.match(renderToString(createElement(Shown)), /^<p>\w+<\/p>$/)
})

test('the transport of useChat streams the parts of a run', async () => {
  const look = createTool({ id: 'look', execute: async () => ({ seen: true }) })
  const model = scriptedModel([{ text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.'])
  const agent = new Agent({ id: 'guide', model, tools: { look } })
  const { client } = await served(agent)
  const transport = new HeedChatTransport({ agent: client.getAgent('guide'), resourceId: thread.resourceId })
  const messages: UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }]
  const stream = await transport.sendMessages({ trigger: 'submit-message', chatId: thread.threadId, abortSignal: undefined, messages })
  let last: UIMessage | undefined
  for await (const message of readUIMessageStream({ stream: stream as unknown as ReadableStream<never> })) last = message
  assert.deepEqual(last?.parts.map(({ type }) => type), ['step-start', 'text', 'tool-look', 'step-start', 'text'])
})
