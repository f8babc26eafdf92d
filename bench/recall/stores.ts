/**
 * How much recall finds on each store: `npm run bench:recall:stores [-- --data <folder>]`. The same conversations and questions as `bench:recall`,
 * stored as messages and searched by words through the index of a file and of a PostgreSQL server that this starts.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { SqlStore } from '../../src/store/sql/store.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { startServer } from '../../test/postgres/server.ts'
import { readConversations, type Conversation } from './conversations.ts'

const { values } = parseArgs({ options: { data: { type: 'string' } } })
const root = join(import.meta.dirname, '..', '..')
const folder = values.data ?? [join(root, '..', 'shared', 'data', 'locomo'), join(root, '..', '..', 'shared', 'data', 'locomo')].find((path) => existsSync(path))
if (folder === undefined || !existsSync(folder)) {
  process.stderr.write('There are no conversations to try it on. Name a folder with them: npm run bench:recall:stores -- --data <folder>\n')
  process.exit(1)
}

/** The share of the turns that answer each question among the ten best, over all questions of the conversation. */
async function shares(store: SqlStore, conversation: Conversation): Promise<number[]> {
  const resourceId = `conversation-${conversation.id}`
  const threads = Map.groupBy(conversation.texts.keys(), (at) => conversation.collection.thread[at] ?? 0)
  for (const [session, turns] of threads) {
    const threadId = `${resourceId}-${session}`
    await store.createThread({ id: threadId, resourceId, now: Date.now() })
    const messages = turns.map((at) => ({
      id: `${resourceId}-${at}`, role: 'user' as const, createdAt: new Date(1_700_000_000_000 + at * 60_000), threadId, resourceId,
      content: { format: 2 as const, parts: [{ type: 'text' as const, text: conversation.texts[at] ?? '' }] },
    }))
    await store.saveMessages([{ scope: { threadId, resourceId }, messages }])
  }
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('the store has no recall')
  const found: number[] = []
  for (const { text, evidence, named } of conversation.questions) {
    const hits = await recall.search({ resourceId, text, limit: 10 })
    const at = new Set(hits.map(({ messageId }) => Number(messageId.split('-').at(-1))))
    found.push(evidence.filter((turn) => at.has(turn)).length / named)
  }
  return found
}

const work = mkdtempSync(join(tmpdir(), 'heed-recall-stores-'))
const data = join(tmpdir(), `heed-recall-stores-pg-${process.pid}`)
const server = await startServer(data, {}, { trusting: true })
const conversations = readConversations(folder)
const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / (list.length || 1)
const lines: string[] = []
try {
  const stores: Array<[string, SqlStore]> = [
    ['a file', new LibSQLStore({ url: `file:${join(work, 'recall.db')}` })],
    ['PostgreSQL', new PostgresStore({ connectionString: server.url, schemaName: 'recall', max: 4 })],
  ]
  for (const [name, store] of stores) {
    await store.open()
    const began = performance.now()
    const each: number[][] = []
    for (const conversation of conversations) each.push(await shares(store, conversation))
    await store.close()
    const percent = (list: readonly number[]) => `${(mean(list) * 100).toFixed(1)} %`
    const line = `| ${name} | ${[...each.map(percent), percent(each.flat())].join(' | ')} |`
    process.stdout.write(`${line} ${Math.round((performance.now() - began) / 1000)} s\n`)
    lines.push(line)
  }
} finally {
  await server.stop()
  for (const used of [work, data]) rmSync(used, { recursive: true, force: true })
}
const head = ['recall@10', ...conversations.map(({ id }) => id), 'all']
const questions = conversations.reduce((sum, { questions: { length } }) => sum + length, 0)
writeFileSync(join(root, 'bench', 'results', 'recall-stores.md'), `# What recall finds on each store

${questions} questions about ${conversations.length} conversations, asked through \`search\` of the store, by words: the share of the turns that
answer them among the ten best. Made by \`npm run bench:recall:stores\`.

| ${head.join(' | ')} |
| ${head.map(() => '---').join(' | ')} |
${lines.join('\n')}
`)
