/**
 * What the model gets: `npm run bench:recall:blocks [-- --data <folder>]`. The tokens of a block with the ten best messages for a question and their
 * neighbors, as Heed writes it and in plainer manners, on average over the questions of the conversations. Writes results/recall-blocks.md.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { recallBlock, type RecalledMessage, type RecalledPassage } from '../../src/memory/semantic/block.ts'
import { estimateTokens } from '../../src/prompt/tokens.ts'
import { rank, type Reasons } from '../../src/recall/rank/rank.ts'
import { conversationOf, readStored, type Conversation } from './conversations.ts'
import { mean, rankingOf } from './evaluate.ts'
import { madeMailboxes } from './made.ts'
import { cosinesOf } from './vectors.ts'

const { values } = parseArgs({ options: { data: { type: 'string' } } })
const root = join(import.meta.dirname, '..', '..')
const folder = values.data ?? join(root, '..', 'shared', 'data', 'locomo')
if (!existsSync(folder)) {
  process.stderr.write('There are no conversations to try it on. Name a folder with them: npm run bench:recall:blocks -- --data <folder>\n')
  process.exit(1)
}

const hits = 10
const titles = 'A conversation of two people'

/** The tokens of the ten hits of a question with one neighbor before and after each, in each manner. */
function tokensOf({ collection, texts }: Conversation, found: ReadonlyArray<{ at: number; score: number; reasons: Reasons }>, question: string): number[] {
  const { previous, next, createdAt, session } = collection
  const around = (at: number) => [previous[at] ?? -1, at, next[at] ?? -1].filter((one) => one >= 0)
  const day = (at: number) => new Date(createdAt[at] ?? 0).toISOString().slice(0, 10)
  const alone = found.map(({ at }) => around(at).map((one) => `${day(one)} · ${titles} · user: ${texts[one] ?? ''}`).join('\n')).join('\n')
  const once = [...new Set(found.flatMap(({ at }) => around(at)))].map((one) => `${day(one)} · ${titles} · user: ${texts[one] ?? ''}`).join('\n')
  const byAt = new Map(found.map((one) => [one.at, one]))
  const passages: Array<RecalledPassage & { messages: RecalledMessage[] }> = []
  let last = -2
  for (const at of [...new Set(found.flatMap((one) => around(one.at)))].toSorted((a, b) => a - b)) {
    const hit = byAt.get(at)
    const text = texts[at] ?? ''
    const message: RecalledMessage = {
      message: { id: String(at), role: 'user', createdAt: new Date(createdAt[at] ?? 0), content: { format: 2, parts: [{ type: 'text', text }] } },
      seq: at, ...(hit && { hit: { score: hit.score, reasons: hit.reasons, text } }),
    }
    const passage = passages.at(-1)
    if (passage && previous[at] === last) passage.messages.push(message)
    else passages.push({ threadId: String(session[at]), title: titles, messages: [message] })
    last = at
  }
  const block = recallBlock(passages, { threadId: 'asking', question, maxTokens: 100_000 })?.text ?? ''
  return [alone, once, block].map(estimateTokens)
}

const rows: string[] = []
for (const [name, stored] of [['conversations', readStored(folder)], ['mailboxes', madeMailboxes()]] as const) {
  for (const threads of ['each', 'one'] as const) {
    const measured: number[][] = []
    for (const one of stored) {
      const conversation = conversationOf(one, threads)
      const evaluated = { ...conversation, cosines: { words: await cosinesOf(conversation, 'words'), pieces: [] } }
      for (const [at, { text }] of conversation.questions.entries()) {
        const { postings, cosines, options } = rankingOf(evaluated, at, 'fused')
        measured.push(tokensOf(conversation, rank(conversation.collection, postings, cosines, { ...options, limit: hits }), text))
      }
    }
    const of = (manner: number) => mean(measured.map((one) => one[manner] ?? 0)).toFixed(0)
    rows.push(`| ${name}, ${threads === 'each' ? 'a thread for each session' : 'one thread'} | ${of(0)} | ${of(1)} | ${of(2)} |`)
  }
}
const text = `# What the model gets

Tokens for a question: its ten best messages, each with the one before and the one after it. Made by \`npm run bench:recall:blocks\`.

| | each hit with its neighbors, a time and thread for each message | the same, each message once | a block of Heed |
|---|---|---|---|
${rows.join('\n')}
`
process.stdout.write(text)
writeFileSync(join(root, 'bench', 'results', 'recall-blocks.md'), text)
