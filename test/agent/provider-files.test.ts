import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
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

  it('[G1.14] is told what its provider cites: in the stream, in the result and in history', async () => {
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
