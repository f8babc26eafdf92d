import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createGateway } from 'ai'
import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore } from '../../src/index.ts'
import { providerServer, type ProviderServer } from '../../src/testing/index.ts'
import { chunksOf, of, refuseStrayRejections } from './asking.ts'

const makers = [
  ['OpenAI, responses', (server: ProviderServer) => createOpenAI(server.openai).responses('gpt-5')],
  ['OpenAI, chat', (server: ProviderServer) => createOpenAI(server.openai).chat('gpt-5')],
  ['Anthropic', (server: ProviderServer) => createAnthropic(server.anthropic)('claude-sonnet-4-5')],
] as const

const pictures = [1, 2, 3].map((n) => Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, n]).toString('base64'))
const memory = { thread: 't', resource: 'u' }

describe.each(makers)('an agent on %s', (_, make) => {
  refuseStrayRejections()

  it('[G1.14] has what its provider cites: in the stream, in the result and in history', async () => {
    const sources = [{ url: 'https://bern.test/weather', title: 'Weather in Bern' }, { url: 'https://rain.test/', title: 'Rain' }]
    await using server = await providerServer({ script: [{ text: 'It rains.', sources }, 'Still.'] })
    const agent = new Agent({ id: 'a', model: make(server) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const stream = await agent.stream('Weather?', { memory })
    const cited = sources.map(({ url, title }) => ({ sourceType: 'url', url, title }))
    expect(of(await chunksOf(stream), 'source').map(({ payload }) => payload)).toMatchObject(cited)
    expect(await stream.sources).toMatchObject(cited)
    expect(await stream.text).toBe('It rains.')
    const { messages } = await (await agent.getMemory()).recall({ threadId: 't' })
    expect(messages.at(-1)?.content.parts.filter(({ type }) => type === 'source')).toMatchObject(cited.map((source) => ({ source })))
    expect((await agent.generate('And now?', { memory })).text).toBe('Still.')
    await heed.close()
  })

  it('[G1.14] sends files of every form of input to its provider, the same bytes each time', async () => {
    await using server = await providerServer({ script: ['A picture.', 'The same.'] })
    const agent = new Agent({ id: 'a', model: make(server) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    await agent.generate([{
      role: 'user',
      content: [
        { type: 'text', text: 'Look.' },
        { type: 'image', image: pictures[0], mediaType: 'image/png' },
        { type: 'file', data: Buffer.from(pictures[1] ?? '', 'base64'), mediaType: 'image/png' },
        { type: 'file', data: new URL('https://files.test/c.png'), mediaType: 'image/png' },
      ],
      // The first picture is one of the parts as well.
      experimental_attachments: [pictures[0], pictures[2]].map((data) => ({ url: `data:image/png;base64,${data}`, contentType: 'image/png' })),
    }], { memory })
    await agent.generate('Again.', { memory })
    const bodies = server.requests.map(({ body }) => JSON.stringify(body))
    for (const body of bodies) {
      for (const picture of pictures) expect(body.split(picture)).toHaveLength(2)
      expect(body.split('https://files.test/c.png')).toHaveLength(2)
    }
    await heed.close()
  })
})

describe('a model that makes files', () => {
  refuseStrayRejections()
  const [drawn = ''] = pictures
  const files = [{ mediaType: 'image/png', data: drawn }, { mediaType: 'image/webp', url: 'https://files.test/made.webp' }]

  it.each(['generate', 'stream'] as const)('[G1.14] over its wire, with %s: they are in the stream, the result, history, and in the prompts after it', async (how) => {
    await using server = await providerServer({ script: [{ text: 'Here.', files }, 'A cat.', 'A cat, still.'] })
    const agent = new Agent({ id: 'a', model: createGateway(server.gateway)('google/gemini-image') })
    const storage = new InMemoryStore()
    const heed = new Heed({ agents: { agent }, storage })
    const made = [{ mimeType: 'image/png', data: drawn }, { mimeType: 'image/webp', data: 'https://files.test/made.webp' }]
    if (how === 'generate') expect((await agent.generate('Draw.', { memory })).files).toMatchObject(made)
    else {
      const stream = await agent.stream('Draw.', { memory })
      expect(of(await chunksOf(stream), 'file').map(({ payload }) => payload)).toMatchObject(made)
      expect(await stream.files).toMatchObject(made)
      expect(await stream.text).toBe('Here.')
    }
    const { messages } = await (await agent.getMemory()).recall({ threadId: 't' })
    expect(messages.at(-1)?.content.parts.filter(({ type }) => type === 'file')).toMatchObject(made)

    await agent.generate('What is it?', { memory })
    await agent.generate('Sure?', { memory })
    const prompts = server.requests.map(({ body }) => body.prompt as Array<{ role: string; content: unknown }>)
    const said = { role: 'assistant', content: [
      { type: 'text', text: 'Here.' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: drawn } },
      { type: 'file', mediaType: 'image/webp', data: { type: 'url', url: 'https://files.test/made.webp' } },
    ] }
    expect(prompts[1]?.[1]).toEqual(said)
    expect(JSON.stringify(prompts[2]).startsWith(JSON.stringify(prompts[1]).slice(0, -1))).toBe(true)
    await heed.close()
  })

  it('[G1.14] with a tool of its provider: the picture is the result of the call, and its provider is reminded of it by its id', async () => {
    await using server = await providerServer({ script: [{ text: 'Here.', files: files.slice(0, 1) }, 'A cat.'] })
    const openai = createOpenAI(server.openai)
    const agent = new Agent({ id: 'a', model: openai.responses('gpt-5'), tools: { draw: openai.tools.imageGeneration({ outputFormat: 'png' }) } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const { toolResults, text } = await agent.generate('Draw.', { memory })
    expect(toolResults).toMatchObject([{ toolName: 'draw', result: { result: drawn } }])
    expect(text).toBe('Here.')
    expect(server.requests[0]?.body.tools).toMatchObject([{ type: 'image_generation', output_format: 'png' }])
    await agent.generate('What is it?', { memory })
    const input = (server.requests[1]?.body.input ?? []) as Array<{ type: string; id?: string }>
    expect(input.filter(({ type }) => type === 'item_reference').map(({ id }) => id)).toContain('ig_0_1')
    expect(JSON.stringify(input)).not.toContain(drawn)
    await heed.close()
  })
})
