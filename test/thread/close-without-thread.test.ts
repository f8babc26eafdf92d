import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const never = () => new Promise<never>(() => {})
const opened = (agent: Agent) => new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
const unsaved = { memory: { thread: 'thread-1', resource: 'user-1', options: { save: false } } }
const calls = [{ name: 'without a thread', options: {} }, { name: 'that is not saved', options: unsaved }]

describe.each(calls)('closing amid a run $name', ({ options }) => {
  it('ends it with `closed` and rejects later calls', async () => {
    const model = scriptedModel([{ text: 'Half', hang: true }], { loop: true })
    const agent = new Agent({ id: 'guide', model })
    const heed = opened(agent)
    const stream = await agent.stream('Go.', options)
    const texts: string[] = []
    const reading = (async () => {
      for await (const text of stream.textStream) {
        texts.push(text)
        void heed.close()
      }
    })()
    await expect(reading).rejects.toMatchObject({ code: 'closed' })
    await expect(stream.result).rejects.toMatchObject({ code: 'closed' })
    expect(texts).toEqual(['Half'])
    await heed.close()
    await expect(agent.generate('Late.', options)).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.stream('Late.', options)).rejects.toMatchObject({ code: 'closed' })
    expect(model.callCount).toBe(1)
  })

  it('does not wait for a tool or an agent function that never settles', async () => {
    const begun = Promise.withResolvers<void>()
    const tools = { wait: createTool({ id: 'wait', execute: () => (begun.resolve(), never()) }) }
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'wait' }] }]), tools })
    const heed = opened(agent)
    const result = expect(agent.generate('Go.', options)).rejects.toMatchObject({ code: 'closed' })
    await begun.promise
    await heed.close()
    await result

    const asked = Promise.withResolvers<void>()
    const undecided = new Agent({ id: 'undecided', model: scriptedModel([]), instructions: () => (asked.resolve(), never()) })
    const other = opened(undecided)
    const waiting = expect(undecided.generate('Go.', options)).rejects.toMatchObject({ code: 'closed' })
    await asked.promise
    await other.close()
    await waiting
  })

  it('leaves no connection to a provider open', async () => {
    let connected = 0
    const closed = Promise.withResolvers<void>()
    const server = createServer((request, response) => {
      connected++
      response.on('close', () => {
        connected--
        closed.resolve()
      })
      request.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'half' } }] }
      response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = server.address() as AddressInfo
      const agent = new Agent({ id: 'guide', model: createOpenAI({ apiKey: 'k', baseURL: `http://127.0.0.1:${port}/v1` }).chat('m') })
      const heed = opened(agent)
      const stream = await agent.stream('Go.', options)
      for await (const text of stream.textStream) if (text === 'half') break
      expect(connected).toBe(1)
      await heed.close()
      await closed.promise
      expect(connected).toBe(0)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
