/**
 * How much recall finds on each store: `npm run bench:recall:stores [-- --data <folder>]`. The same conversations and questions as `bench:recall`,
 * stored as messages and searched through the index of a file, of a PostgreSQL server that this starts, and through a client of libSQL.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createClient } from '@libsql/client'
import type { TextEmbedder } from '../../src/recall/embedder.ts'
import type { SqlStore } from '../../src/store/sql/store.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { startServer } from '../../test/postgres/server.ts'
import { conversationOf, readStored, type Conversation } from './conversations.ts'
import { embedTexts } from './vectors.ts'

const { values } = parseArgs({ options: { data: { type: 'string' } } })
const root = join(import.meta.dirname, '..', '..')
const folder = values.data ?? [join(root, '..', 'shared', 'data', 'locomo'), join(root, '..', '..', 'shared', 'data', 'locomo')].find((path) => existsSync(path))
if (folder === undefined || !existsSync(folder)) {
  process.stderr.write('There are no conversations to try it on. Name a folder with them: npm run bench:recall:stores -- --data <folder>\n')
  process.exit(1)
}

/** What a store finds for a question: the share of the turns that answer it among the ten best, and these with their scores. */
interface Found {
  share: number
  hits: string
}

/** The vectors of the words, which are made once. */
const embedder: TextEmbedder = { id: 'bench/words', maxBatch: 64, embed: (texts) => embedTexts(texts, 'words') }

async function save(store: SqlStore, { id, texts, collection }: Conversation): Promise<string> {
  const resourceId = `conversation-${id}`
  const threads = Map.groupBy(texts.keys(), (at) => collection.session[at] ?? 0)
  for (const [session, turns] of threads) {
    const threadId = `${resourceId}-${session}`
    await store.createThread({ id: threadId, resourceId, now: Date.now() })
    const messages = turns.map((at) => ({
      id: `${resourceId}-${at}`, role: 'user' as const, createdAt: new Date(collection.createdAt[at] ?? 0), threadId, resourceId,
      content: { format: 2 as const, parts: [{ type: 'text' as const, text: texts[at] ?? '' }] },
    }))
    await store.saveMessages([{ scope: { threadId, resourceId }, messages }])
  }
  return resourceId
}

async function ask(store: SqlStore, resourceId: string, { questions }: Conversation, withVectors: boolean): Promise<Found[]> {
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('the store has no recall')
  if (withVectors) {
    recall.embedWith(embedder)
    await recall.search({ resourceId, text: 'first', limit: 1, embedder })
    await recall.reindex()
  }
  const found: Found[] = []
  for (const { text, evidence, named } of questions) {
    const hits = await recall.search({ resourceId, text, limit: 10, ...(withVectors && { embedder }) })
    const at = new Set(hits.map(({ messageId }) => Number(messageId.split('-').at(-1))))
    found.push({ share: evidence.filter((turn) => at.has(turn)).length / named, hits: hits.map(({ messageId, score }) => `${messageId} ${score.toFixed(6)}`).join() })
  }
  return found
}

const work = mkdtempSync(join(tmpdir(), 'heed-recall-stores-'))
const data = join(tmpdir(), `heed-recall-stores-pg-${process.pid}`)
const server = await startServer(data, {}, { trusting: true })
const conversations = readStored(folder).map((one) => conversationOf(one, 'each'))
const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / (list.length || 1)
const percent = (list: readonly Found[]) => `${(mean(list.map(({ share }) => share)) * 100).toFixed(1)} %`
const lines: string[] = []
const known = new Map<string, Found[]>()
try {
  const throughClient = `file:${join(work, 'client.db')}`
  const stores: Array<[string, SqlStore]> = [
    ['a file', new LibSQLStore({ url: `file:${join(work, 'recall.db')}` })],
    ['PostgreSQL', new PostgresStore({ connectionString: server.url, schemaName: 'recall', max: 4 })],
    ['a client of libSQL', new LibSQLStore({ url: throughClient, client: createClient({ url: throughClient }) })],
  ]
  for (const [name, store] of stores) {
    await store.open()
    const began = performance.now()
    const saved: Array<[string, Conversation]> = []
    for (const conversation of conversations) saved.push([await save(store, conversation), conversation])
    for (const way of ['words', 'words and vectors'] as const) {
      const each: Found[][] = []
      for (const [resourceId, conversation] of saved) each.push(await ask(store, resourceId, conversation, way !== 'words'))
      const all = each.flat()
      const first = known.get(way) ?? all
      known.set(way, first)
      const same = all.filter(({ hits }, at) => hits === first[at]?.hits).length
      const line = `| ${name}, ${way} | ${[...each.map(percent), percent(all)].join(' | ')} | ${same} of ${all.length} |`
      process.stdout.write(`${line} ${Math.round((performance.now() - began) / 1000)} s\n`)
      lines.push(line)
    }
    await store.close()
  }
} finally {
  await server.stop()
  for (const used of [work, data]) rmSync(used, { recursive: true, force: true })
}
const head = ['recall@10', ...conversations.map(({ id }) => id), 'all', 'the same as on a file']
const questions = conversations.reduce((sum, { questions: { length } }) => sum + length, 0)
writeFileSync(join(root, 'bench', 'results', 'recall-stores.md'), `# What recall finds on each store

${questions} questions about ${conversations.length} conversations, asked through \`search\` of the store, by words and with vectors of the local embedder: the share of
the turns that answer them among the ten best, and for how many questions the ten, their order and their scores, to six digits, are those of a file. Through a client of libSQL
the index is in the database, as on a libSQL server. Made by \`npm run bench:recall:stores\`.

| ${head.join(' | ')} |
| ${head.map(() => '---').join(' | ')} |
${lines.join('\n')}
`)
