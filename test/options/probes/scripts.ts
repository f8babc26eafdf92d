import { expect, onTestFinished } from 'vitest'
import type { ProviderServer, ProviderServerOptions, ScriptedAnswer } from '../../../src/testing/index.ts'
import { rejects, type Probe } from '../probe.ts'
import { recorder, testing } from '../walked.ts'

type Serve = (step: ScriptedAnswer, more?: Omit<ProviderServerOptions, 'script'>) => Promise<ProviderServer>

const served = async (options: ProviderServerOptions) => {
  const server = await testing.providerServer(options)
  onTestFinished(() => server.close())
  return server
}

/** The two calls that give a server its script. */
const doors: Record<string, Serve> = {
  'providerServer({ script })': (step, more) => served({ script: [step], ...more }),
  'ProviderServer.script': async (step, more = {}) => {
    const server = await served(more)
    recorder.function('ProviderServer.script', server.script)([step])
    return server
  },
}

/** Asks by the protocol of the gateway, which has every part of an answer. */
const ask = ({ url }: ProviderServer, streaming = true) =>
  fetch(`${url}/v4/ai/language-model`, { method: 'POST', body: '{}', headers: { 'ai-language-model-id': 'm', 'ai-language-model-streaming': String(streaming) } })

type Part = { type: string } & Record<string, unknown>
const partsIn = (text: string): Part[] => [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Part)
const received = async (server: ProviderServer) => partsIn(await (await ask(server)).text())
const typesOf = (parts: readonly Part[]) => parts.slice(2).map(({ type }) => type)

/** A promise that says when it is waited for. */
function gated() {
  const [entered, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const waited = { get: (target: Promise<void>, name: 'then') => (entered.resolve(), target[name].bind(target)) }
  return { gate: new Proxy(opened.promise, waited as ProxyHandler<Promise<void>>), entered: entered.promise, open: opened.resolve }
}

/** What arrived of a stream until the server ended it. */
async function untilClosed(server: ProviderServer, first: string): Promise<string> {
  let text = ''
  const { body } = await ask(server)
  try {
    for await (const piece of body ?? []) {
      text += new TextDecoder().decode(piece as Uint8Array)
      if (text.includes(first)) void server.close()
    }
  } catch {
    // The connection was destroyed, which the outcome of the request shows.
  }
  return text
}

const shownFor: Record<string, (serve: Serve) => Promise<void>> = {
  async 'what an answer has'(serve) {
    const parts = await received(await serve({
      text: ['It ', 'rains.'], reasoning: ['Hm.'], finishReason: 'length',
      toolCalls: [{ toolName: 'look', input: { at: 'door' }, toolCallId: 'c-1' }, { toolName: 'find', inputText: '{"a":1}' }],
      files: [{ mediaType: 'image/png', data: 'aGk=' }, { mediaType: 'image/jpeg', url: 'https://a.example/x.jpg' }],
      sources: [{ url: 'https://b.example', title: 'B', id: 's-1' }, { mediaType: 'application/pdf', title: 'Doc', filename: 'doc.pdf' }],
      usage: { inputTokens: 11, outputTokens: 12, reasoningTokens: 3, cachedInputTokens: 4, cacheWriteTokens: 5 },
    }))
    const of = (...types: string[]) => parts.filter(({ type }) => types.includes(type))
    expect(of('text-delta', 'reasoning-delta').map(({ delta }) => delta)).toEqual(['Hm.', 'It ', 'rains.'])
    expect(of('tool-call')).toMatchObject([{ toolName: 'look', input: '{"at":"door"}', toolCallId: 'c-1' }, { toolName: 'find', input: '{"a":1}' }])
    expect(of('file')).toMatchObject([{ mediaType: 'image/png', data: { data: 'aGk=' } }, { mediaType: 'image/jpeg', data: { url: 'https://a.example/x.jpg' } }])
    expect(of('source')).toMatchObject([{ url: 'https://b.example', title: 'B', id: 's-1' }, { mediaType: 'application/pdf', title: 'Doc', filename: 'doc.pdf' }])
    expect(of('finish')).toMatchObject([{
      finishReason: { unified: 'length' }, usage: { inputTokens: { total: 11, cacheRead: 4, cacheWrite: 5 }, outputTokens: { total: 12, reasoning: 3 } },
    }])
  },
  async 'its parts, as they are'(serve) {
    const parts = [{ type: 'text-start', id: 'p' }, { type: 'text-delta', id: 'p', delta: 'Raw.' }, { type: 'text-end', id: 'p' }] as const
    expect((await received(await serve({ parts }))).slice(2)).toEqual(parts)
  },
  async 'an error in place of it'(serve) {
    const response = await ask(await serve({ error: { status: 418, message: 'No tea.', type: 'teapot', headers: { 'x-why': 'tea' } } }))
    expect([response.status, response.headers.get('x-why'), await response.json()]).toEqual([418, 'tea', { error: { message: 'No tea.', type: 'teapot' } }])
  },
  async 'an error within it'(serve) {
    const step: ScriptedAnswer = { text: 'Long.', errorAfter: { parts: 1, error: { status: 418, message: 'No tea.', type: 'teapot', headers: { 'x-why': 'tea' } } } }
    expect(typesOf(await received(await serve(step)))).toEqual(['text-start', 'error'])
    const response = await ask(await serve(step), false)
    expect([response.status, response.headers.get('x-why'), await response.json()]).toEqual([418, 'tea', { error: { message: 'No tea.', type: 'teapot' } }])
  },
  async 'the time before it'(serve) {
    const clock = testing.virtualClock()
    const server = await serve({ text: 'Late.', delayMs: 60_000 }, { clock })
    const asked = ask(server)
    asked.catch(() => {})
    await expect.poll(() => clock.pending).toBe(1)
    await clock.advance(60_000)
    expect((await asked).status).toBe(200)
  },
  async 'gates before and within it'(serve) {
    for (const parts of [0, 1]) {
      const { gate, entered, open } = gated()
      const server = await serve({ text: 'Held.', gate: parts === 0 ? gate : { parts, until: gate } })
      const asked = ask(server)
      asked.catch(() => {})
      await entered
      const response = parts === 0 ? undefined : await asked
      const reader = response?.body?.pipeThrough(new TextDecoderStream()).getReader()
      let before = ''
      while (reader && !before.includes('text-start')) before += (await reader.read()).value ?? ''
      expect(typesOf(partsIn(before))).toEqual(parts === 0 ? [] : ['text-start'])
      open()
      expect((await asked).status).toBe(200)
    }
  },
  async 'no end of it'(serve) {
    const whole = await serve({ text: ['Long.'], hang: true })
    expect(await untilClosed(whole, 'Long.')).not.toContain('"finish"')
    expect(await whole.requests[0]?.outcome).toBe('disconnected')
    const part = await serve({ text: ['Long.'], hang: { parts: 1 } })
    expect(await untilClosed(part, 'text-start')).not.toContain('text-delta')
  },
}

export const scripts: Probe[] = [
  ...Object.entries(doors).flatMap(([door, serve]) => Object.entries(shownFor).map(([what, show]) => ({ title: `${door}: ${what}`, run: () => show(serve) }))),
  {
    title: 'providerServer: the pace of its answers',
    async run() {
      const clock = testing.virtualClock()
      const server = await served({ script: [{ text: ['Slow.'] }], pace: { deltaMs: 60_000 }, clock })
      const asked = ask(server)
      await expect.poll(() => clock.pending).toBe(1)
      await clock.advance(60_000)
      expect(await (await asked).text()).toContain('Slow.')
      await rejects(() => testing.providerServer({ pace: { deltaMs: -1 } }), 'deltaMs')
    },
  },
]
