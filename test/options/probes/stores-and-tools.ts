import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { CompositeStore, InMemoryStore, Memory, ToolContext } from '../../../src/index.ts'
import type { LibSQLClient } from '../../../src/store/sqlite/index.ts'
import { open, rejects, type Probe } from '../probe.ts'
import { duckdb, heed, lancedb, libsql, testing } from '../walked.ts'

const { createConsoleLogger, createNotificationInboxTool, createTool, fromUIMessages, HeedError, isHeedError, MessageList, ModelRouterEmbeddingModel, ToolError } = heed
const { DuckDBVector } = duckdb
const { LanceDBVector } = lancedb
const { LibSQLStore, LibSQLVector, NotificationsLibSQL } = libsql
const { virtualClock } = testing

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'heed-options-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return `file:${join(folder, 'heed.db')}`
}

async function withMessage(storage: InMemoryStore | CompositeStore, createdAt = new Date('2026-01-01')): Promise<Memory> {
  const memory = new heed.Memory({ storage })
  await memory.createThread({ threadId: 't', resourceId: 'u' })
  await memory.saveMessages({ threadId: 't', messages: [{ id: 'm-1', role: 'user', content: 'Hi.', createdAt }] })
  return memory
}

export const storesAndTools: Probe[] = [
  {
    title: 'the options of stores',
    async run() {
      const clock = virtualClock(Date.UTC(2026, 5, 1))
      const retention = { messages: '1d', threads: '1d', records: '1d' } as const
      const store = new heed.InMemoryStore({ id: 'mine', clock, retention })
      onTestFinished(() => store.close())
      expect([store.id, store.retention, store.now()]).toEqual(['mine', retention, clock.now()])
      const memory = await withMessage(store)
      const now = clock.now()
      expect(await store.prune({ now: 0 })).toMatchObject({ messages: 0, threads: 0 })
      await expect(store.prune({ now, signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped')
      const pruned: unknown[] = []
      expect(await store.prune({ now, retention: { messages: '1d' }, onPruned: (gone) => void pruned.push(...gone.messages) })).toMatchObject({ messages: 1, threads: 0 })
      expect(pruned).toHaveLength(1)
      expect((await memory.recall({ threadId: 't' })).messages).toEqual([])
      expect(await store.prune({ now: now + 172_800_000, retention: { threads: '1d', records: '1d' } })).toMatchObject({ threads: 1, records: 0 })
      for (const kind of ['threads', 'messages', 'records']) await rejects(() => new heed.InMemoryStore({ retention: { [kind]: 'soon' } }), kind)

      const url = temporaryFile()
      const file = new LibSQLStore({ id: 'file', url, clock, retention, namespace: 'shop', busyTimeout: 5, recallMemoryBytes: 0 })
      onTestFinished(() => file.close())
      await file.open()
      expect([file.id, file.url, file.namespace, file.retention]).toEqual(['file', url, 'shop', retention])
      expect(file.now()).toBe(clock.now())
      // Without memory for vectors, words are compared; with it, meaning too.
      for (const [recallMemoryBytes, found] of [[0, 0], [1_000_000, 1]] as const) {
        const small = new heed.InMemoryStore({ recallMemoryBytes })
        onTestFinished(() => small.close())
        await withMessage(small)
        const recall = await small.getStore('recall')
        const embedder = { id: 'test/even', maxBatch: 8, embed: async (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 0)) }
        await recall?.search({ threadId: 't', text: 'none of these words', limit: 1, embedder })
        await recall?.reindex()
        expect(await recall?.search({ threadId: 't', text: 'none of these words', limit: 1, embedder })).toHaveLength(found)
      }
      await rejects(() => new heed.InMemoryStore({ recallMemoryBytes: -1 }), 'recallMemoryBytes')
      const asked: string[] = []
      const client: LibSQLClient = { transaction: (mode) => (asked.push(mode), Promise.reject(new Error('away'))), close() {} }
      await expect(new LibSQLStore({ url: 'https://db.example', client }).open()).rejects.toThrow('away')
      expect(asked.length).toBeGreaterThan(0)
      for (const [options, name] of [[{ authToken: 1 }, 'authToken'], [{ busyTimeout: -1 }, 'busyTimeout'], [{ recallMemoryBytes: 0.5 }, 'recallMemoryBytes'], [{ namespace: '' }, 'namespace'], [{ id: '' }, 'id']] as const)
        await rejects(() => new LibSQLStore({ url, ...options } as never), name)
      await rejects(() => new LibSQLStore({ url: 'nowhere' }), 'url')

      const notifications = new NotificationsLibSQL({ url: temporaryFile() })
      const composite = new heed.CompositeStore({ id: 'both', domains: { notifications, schedules: false }, default: new heed.InMemoryStore(), retention })
      onTestFinished(() => composite.close())
      expect([composite.id, composite.retention, await composite.getStore('notifications'), await composite.getStore('schedules')]).toEqual(['both', retention, notifications, undefined])
      await withMessage(composite)
      expect(await composite.prune({ now, retention: { messages: '1d' } })).toMatchObject({ messages: 1 })
    },
  },
  {
    title: 'the options of vectors',
    async run() {
      const url = temporaryFile()
      const store = new LibSQLVector({ id: 'v', url })
      onTestFinished(() => store.close())
      expect([store.id, store.url]).toEqual(['v', url])
      const indexName = 'notes'
      await store.createIndex({ indexName, dimension: 2, metric: 'euclidean', indexConfig: { type: 'flat' } })
      expect(await store.describeIndex({ indexName })).toEqual({ dimension: 2, metric: 'euclidean', count: 0 })
      await rejects(() => store.createIndex({ indexName: 'other', dimension: 2, indexConfig: { type: 'hnsw' } as never }), 'type')
      await store.upsert({ indexName, vectors: [[1, 0], [0, 1], [1, 1]], ids: ['a', 'b', 'c'], metadata: [{ n: 1 }, { n: 2 }, { n: 3 }] })
      const found = async (more: object) => (await store.query({ indexName, queryVector: [1, 0], ...more })).map(({ id }) => id)
      expect([await found({ topK: 1 }), await found({ filter: { n: 2 } }), await found({ minScore: 0.99 })]).toEqual([['a'], ['b'], ['a']])
      expect((await store.query({ indexName, queryVector: [1, 0], topK: 1, includeVector: true }))[0]?.vector).toEqual([1, 0])
      expect(await store.updateVector({ indexName, id: 'a', update: { vector: [0, 5], metadata: { n: 9 } } })).toBe(1)
      expect(await store.query({ indexName, queryVector: [1, 0], filter: { n: 9 }, includeVector: true })).toMatchObject([{ id: 'a', vector: [0, 5] }])
      expect(await store.updateVector({ indexName, ids: ['a', 'b'], update: { metadata: { n: 8 } } })).toBe(2)
      expect(await store.updateVector({ indexName, filter: { n: 8 }, update: { metadata: { n: 7 } } })).toBe(2)
      await store.upsert({ indexName, vectors: [[2, 2]], ids: ['d'], deleteFilter: { n: 7 } })
      expect((await found({})).toSorted()).toEqual(['c', 'd'])
      expect(await store.deleteVector({ indexName, id: 'd' })).toBe(true)
      await store.upsert({ indexName, vectors: [[2, 2], [3, 3], [4, 4]], ids: ['e', 'f', 'g'], metadata: [{ k: 1 }, { k: 1 }, { k: 2 }] })
      expect([await store.deleteVectors({ indexName, id: 'c' }), await store.deleteVectors({ indexName, ids: ['e'] }), await store.deleteVectors({ indexName, filter: { k: 1 } })]).toEqual([1, 1, 1])
      await store.deleteIndex({ indexName })
      expect(await store.listIndexes()).toEqual([])
    },
  },
  {
    title: 'the options of vector databases',
    async run() {
      const folder = temporaryFile().slice('file:'.length)
      for (const open of [() => new DuckDBVector({ id: 'v', path: `${folder}.duckdb` }), () => new LanceDBVector({ id: 'v', uri: `${folder}.lance` })]) {
        const first = open()
        expect(first.id).toBe('v')
        await first.createIndex({ indexName: 'notes', dimension: 2 })
        await first.close()
        const again = open()
        onTestFinished(() => again.close())
        expect(await again.listIndexes()).toEqual(['notes'])
      }
    },
  },
  {
    title: 'the configuration of a tool',
    async run() {
      const heard: string[] = []
      const look = createTool({
        id: 'look', description: 'Looks.', inputSchema: z.object({ at: z.string() }), outputSchema: z.object({ seen: z.string() }), strict: true,
        inputExamples: [{ input: { at: 'door' } }], providerOptions: { test: { a: 1 } }, timeoutMs: 60_000, idempotent: true,
        execute: ({ at }) => ({ seen: at }), toModelOutput: ({ seen }) => ({ type: 'text', value: `saw ${seen}` }),
        onInputStart: () => void heard.push('start'), onInputDelta: ({ inputTextDelta }) => void heard.push(inputTextDelta), onInputAvailable: ({ input }) => void heard.push(input.at),
        transform: { display: { output: () => 'hidden' } },
      })
      const wrong = createTool({ id: 'wrong', outputSchema: z.object({ seen: z.string() }), execute: () => ({}) as never })
      const slow = createTool({ id: 'slow', timeoutMs: 1, execute: (_, { abortSignal }) => new Promise((resolve) => { abortSignal.addEventListener('abort', () => resolve('late')) }) })
      const { agent, model, lastText } = open({ tools: { look, wrong, slow } }, [
        { toolCalls: [{ toolName: 'look', input: { at: 'gate' } }] }, { toolCalls: [{ toolName: 'wrong' }] }, { toolCalls: [{ toolName: 'slow' }] }, { toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.',
      ])
      const stream = await agent.stream('Go.')
      const results: unknown[] = []
      for await (const chunk of stream.fullStream) if (chunk.type === 'tool-result') results.push(chunk.payload.result)
      expect(results).toEqual(['hidden'])
      expect(model.calls[0]?.tools?.[0]).toMatchObject({ name: 'look', description: 'Looks.', strict: true, inputExamples: [{ input: { at: 'door' } }], providerOptions: { test: { a: 1 } }, inputSchema: { required: ['at'] } })
      expect(heard.join(' ')).toMatch(/^start .*gate.* gate start/)
      expect([lastText(1), lastText(2), lastText(3), lastText(4)]).toEqual([expect.stringContaining('saw gate'), expect.stringContaining('seen'), expect.stringContaining('1 ms'), expect.stringContaining('at')])
      expect([look.id, look.idempotent, wrong.idempotent]).toEqual(['look', true, false])

      const asking = (execute: (context: ToolContext) => unknown) => createTool({ id: 'ask', suspendSchema: z.object({ q: z.string() }), resumeSchema: z.number(), requireApproval: false, execute: (_, context) => execute(context as never) as string })
      const ask = open({ tools: { ask: asking(({ resumeData, suspend }) => (resumeData === undefined ? suspend({ q: 'How many?' }) : `${String(resumeData)} of them`)) } }, [{ toolCalls: [{ toolName: 'ask' }] }, 'Done.'])
      const thread = { threadId: 'thread-1', resourceId: 'user-1' }
      ask.agent.sendMessage('Go.', thread)
      await expect.poll(async () => (await ask.agent.activeRun(thread))?.status).toBe('suspended')
      await rejects(() => ask.agent.sendStreamResume({ ...thread, resumeData: 'many' }), 'number')
      await ask.agent.sendStreamResume({ ...thread, resumeData: 3 })
      await ask.idle()
      expect(ask.lastText()).toContain('3 of them')
      const bad = open({ tools: { ask: asking(({ suspend }) => suspend({ x: 1 })) } }, [{ toolCalls: [{ toolName: 'ask' }] }, 'Done.'])
      expect((await bad.agent.generate('Go.')).text).toBe('Done.')
      expect(bad.lastText()).toContain('q')
      const pay = open({ tools: { pay: createTool({ id: 'pay', requireApproval: (input) => input !== undefined, execute: () => 'paid' }) } }, [{ toolCalls: [{ toolName: 'pay' }] }, 'Done.'])
      expect((await pay.agent.generate('Go.')).finishReason).toBe('suspended')
    },
  },
  {
    title: 'the options of the inbox tool, of the logger, of errors and of messages',
    async run() {
      const storage = await new heed.InMemoryStore().getStore('notifications')
      expect(createNotificationInboxTool({ storage }).id).toBe('notification-inbox')
      await rejects(() => createNotificationInboxTool({ storage: undefined }), 'storage')

      const lines: string[] = []
      const write = (line: string) => void lines.push(line)
      createConsoleLogger({ level: 'info', json: true, write }).info('one', { a: 1 })
      createConsoleLogger({ write }).info('two')
      createConsoleLogger({ write }).warn('three')
      expect(lines.map((line) => (line.startsWith('{') ? (JSON.parse(line) as { message: string }).message : line))).toEqual(['one', 'heed warn: three\n'])
      createConsoleLogger({ progress: true, write }).progress?.('indexing', { done: 1, total: 2 })
      expect(lines.at(-1)).toContain('50 %')
      expect(createConsoleLogger({ progress: false }).progress).toBeUndefined()
      for (const [options, name] of [[{ level: 'loud' }, 'level'], [{ json: 'yes' }, 'json'], [{ write: 1 }, 'write'], [{ progress: 1 }, 'progress'], [{ progress: true, json: true }, 'progress']] as const) await rejects(() => createConsoleLogger(options as never), name)

      const cause = new Error('why')
      const error = new HeedError('closed', 'It is closed.', { retryable: true, cause, details: { a: 1 } })
      expect([isHeedError(error), error.retryable, error.cause, error.details]).toEqual([true, true, cause, { a: 1 }])
      expect(new ToolError('Not today.', { cause })).toMatchObject({ code: 'tool_error', message: 'Not today.', cause })

      const now = () => new Date(7)
      const shown = [{ role: 'user', parts: [{ type: 'text', text: 'Hi.' }], metadata: { signal: { type: 'reactive', tagName: 'note', contents: 'x' } } }]
      expect(fromUIMessages(shown, { now, newId: () => 'new', signals: true })[0]).toMatchObject({ id: 'new', createdAt: new Date(7), role: 'signal' })
      expect(fromUIMessages(shown, { now, newId: () => 'new' })[0]?.role).toBe('user')
      await rejects(() => fromUIMessages(shown, {} as never), 'now')
      const [message] = new MessageList({ newId: () => 'made', now }).add('Hi.', 'input').get.all.db()
      expect([message?.id, message?.createdAt]).toEqual(['made', new Date(7)])
      const model = new ModelRouterEmbeddingModel({ providerId: 'openai', modelId: 'text-embedding-3-small' })
      expect([model.provider, model.modelId]).toEqual(['openai', 'text-embedding-3-small'])
    },
  },
]
