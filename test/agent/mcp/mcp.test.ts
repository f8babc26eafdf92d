import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createMCPClient, type MCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'

const server = join(import.meta.dirname, 'server.ts')

async function overStdio(): Promise<MCPClient> {
  return createMCPClient({ transport: new StdioTransport({ command: process.execPath, args: [server] }) })
}

async function overHttp(): Promise<MCPClient> {
  const child = spawn(process.execPath, [server, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  onTestFinished(async () => {
    child.kill()
    await gone
  })
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return createMCPClient({ transport: { type: 'http', url } })
}

const call = (toolName: string, input: unknown) => ({ toolCalls: [{ toolName, input }] })

describe.each([['stdio', overStdio], ['HTTP', overHttp]] as const)('tools of a real MCP server over %s', (_, connect) => {
  async function connected() {
    const client = await connect()
    onTestFinished(() => client.close())
    return client.tools()
  }

  it('[G4.1] are offered with the schemas of the server, and answer with what is structured, with text and pictures', async () => {
    const tools = await connected()
    const model = scriptedModel([call('weather', { city: 'Bern' }), call('picture', { city: 'Bern' }), 'Cold.'])
    const { toolResults, text } = await new Agent({ id: 'a', model, tools }).generate('How is Bern?')
    expect(text).toBe('Cold.')
    expect(model.calls[0]?.tools?.map(({ name }) => name).toSorted()).toEqual(['book', 'forever', 'picture', 'vanish', 'weather'])
    expect(model.calls[0]?.tools?.find(({ name }) => name === 'weather')).toMatchObject({ description: 'The weather in a city.', inputSchema: { properties: { city: { type: 'string' } }, required: ['city'] } })
    expect(toolResults).toMatchObject([{ result: { structuredContent: { city: 'Bern', celsius: 9 } } }, { result: { content: [{ type: 'text', text: 'This is Bern.' }, { type: 'image', mimeType: 'image/png' }] } }])
    const shown = JSON.stringify(model.calls[2]?.prompt.at(-1))
    expect(shown).toContain('This is Bern.')
    expect(shown).toContain('image/png')
    // The picture is a picture to the model, not its letters in a text.
    expect(model.calls[2]?.prompt.at(-1)).toMatchObject({ content: [{ output: { type: 'content', value: [{ type: 'text' }, { type: 'file', mediaType: 'image/png' }] } }] })
  })

  it('[G4.1] tell the model what went wrong: with its input, at the server, or on the way', async () => {
    const tools = await connected()
    const model = scriptedModel([{ toolCalls: [{ toolName: 'weather', input: { town: 'Bern' } }, { toolName: 'book', input: { nights: 2 } }, { toolName: 'vanish', input: {} }] }, 'Sorry.'])
    const { toolResults } = await new Agent({ id: 'a', model, tools }).generate('Book.')
    expect(toolResults).toMatchObject([
      { toolName: 'weather', isError: true, result: expect.stringContaining("must have required property 'city'") },
      { toolName: 'book', result: { isError: true, content: [{ text: 'Fully booked.' }] } },
      { toolName: 'vanish', isError: true, result: expect.stringContaining('Unknown tool: vanish') },
    ])
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('Fully booked.')
  })

  it('[G4.1] end with an abort, and can wait for approval like others', async () => {
    const tools = await connected()
    const agent = new Agent({ id: 'a', model: scriptedModel([call('weather', { city: 'Bern' }), 'Cold.', call('forever', {})]), tools })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    const memory = { thread: 't1', resource: 'user-1' }
    const asked = await agent.generate('Go.', { memory, requireToolApproval: true })
    expect(asked.suspended).toMatchObject([{ toolName: 'weather', kind: 'approval' }])
    expect((await (await agent.approveToolCall({ runId: asked.runId })).result).toolResults).toMatchObject([{ result: { structuredContent: { celsius: 9 } } }])
    const stop = new AbortController()
    const stream = await agent.stream('Wait.', { memory, abortSignal: stop.signal })
    for await (const chunk of stream.fullStream) if (chunk.type === 'tool-call') stop.abort()
    expect((await stream.result).finishReason).toBe('aborted')
  })
})
