/**
 * What fewer bits lose: `npm run bench:recall:bits [-- --data <folder>]`. The questions of `bench:recall`, with vectors as they are, with eight bits a
 * number and with four, of which the nearest are compared with eight. Writes results/recall-bits.md.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { highest } from '../../src/recall/rank/best-first.ts'
import { quantize, type Bits } from '../../src/recall/rank/quantized-vectors.ts'
import { rank } from '../../src/recall/rank/rank.ts'
import { VectorSlots } from '../../src/recall/rank/vector-slots.ts'
import { conversationOf, readStored, type Conversation } from './conversations.ts'
import { mean, rankingOf } from './evaluate.ts'
import { madeMailboxes } from './made.ts'
import { cosinesOf, vectorsOf } from './vectors.ts'

const { values } = parseArgs({ options: { data: { type: 'string' } } })
const root = join(import.meta.dirname, '..', '..')
const folder = values.data ?? [join(root, '..', 'shared', 'data', 'locomo')].find((path) => existsSync(path))
if (folder === undefined || !existsSync(folder)) {
  process.stderr.write('There are no conversations to try it on. Name a folder with them: npm run bench:recall:bits -- --data <folder>\n')
  process.exit(1)
}

/** Heed compares so many of the nearest exactly where messages are a million; these sets have some hundreds. */
const refined = 16

async function cosinesWith(conversation: Conversation, bits: Bits): Promise<Float32Array[]> {
  const { turns, questions } = await vectorsOf(conversation, 'words')
  const slots = new VectorSlots(turns[0]?.length ?? 0, bits)
  for (const turn of turns) slots.add(quantize(turn))
  return questions.map((question) => slots.compare(question))
}

/** The first ten of each question, and which share of its answers they have. */
function found(conversation: Conversation, cosines: Float32Array[]): Array<{ ten: number[]; share: number }> {
  const evaluated = { ...conversation, cosines: { words: cosines, pieces: [] } }
  return conversation.questions.map(({ evidence, named }, at) => {
    const { postings, cosines: of, options } = rankingOf(evaluated, at, 'fused')
    const ten = rank(conversation.collection, postings, of, { ...options, limit: 10 }).map((one) => one.at)
    return { ten, share: evidence.filter((turn) => ten.includes(turn)).length / named }
  })
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`
const lines: string[] = []
for (const [name, stored] of [['conversations', readStored(folder)], ['mailboxes', madeMailboxes()]] as const) {
  const ways = new Map<string, Array<{ ten: number[]; share: number }>>()
  for (const one of stored) {
    const conversation = conversationOf(one, 'each')
    const [eight, four] = [await cosinesWith(conversation, 8), await cosinesWith(conversation, 4)]
    const both = four.map((cosines, at) => {
      const nearest = new Set(highest(cosines, refined))
      return cosines.map((cosine, turn) => (nearest.has(turn) ? (eight[at]?.[turn] ?? 0) : cosine))
    })
    const all = { 'as they are': await cosinesOf(conversation, 'words'), 'eight bits': eight, 'four bits': four, [`four bits, the nearest ${refined} with eight`]: both }
    for (const [way, cosines] of Object.entries(all)) ways.set(way, [...(ways.get(way) ?? []), ...found(conversation, cosines)])
  }
  const exact = ways.get('eight bits') ?? []
  for (const [way, results] of ways) {
    const same = results.map(({ ten }, at) => (ten.join() === exact[at]?.ten.join() ? 1 : 0))
    const kept = results.map(({ ten }, at) => ten.filter((turn) => exact[at]?.ten.includes(turn)).length / (exact[at]?.ten.length || 1))
    const line = `| ${name}, ${way} | ${percent(mean(results.map(({ share }) => share)))} | ${percent(mean(same))} | ${percent(mean(kept))} |`
    process.stdout.write(`${line}\n`)
    lines.push(line)
  }
}
writeFileSync(join(root, 'bench', 'results', 'recall-bits.md'), `# What fewer bits lose

Vectors with eight bits a number are those that the index stores. Where a resource has more of them than fit into \`recallMemoryBytes\`, they are
kept with four bits, and the nearest are compared with eight. Of the questions of [what recall finds](recall.md), with the local embedder and a thread for each session:
the share of the messages that answer a question among the ten best, the share of questions whose ten best are the same in the same order as with eight
bits, and how many of the ten are the same on average. Made by \`npm run bench:recall:bits\`.

| | recall@10 | same ten, in order | of the ten |
| --- | --- | --- | --- |
${lines.join('\n')}
`)
