/**
 * How much recall finds: `npm run bench:recall [-- --data <folder>] [-- --misses]`. Questions with the turns that answer them, of conversations
 * in a folder and of mailboxes that are made by rule: the share of those turns among the best, with weights that were chosen on all
 * conversations of the set but the one they are tried on. With `--misses`, prints the turns that were not found.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { defaultWeights, rank, weightsOfWords, type Weights } from '../../src/recall/rank/rank.ts'
import { conversationOf, readStored, type Stored } from './conversations.ts'
import { evaluate, interval, mean, rankingOf, type Evaluated, type Result, type Way } from './evaluate.ts'
import { madeMailboxes } from './made.ts'
import { cosinesOf } from './vectors.ts'
import { examplesOf, fitWeights } from './weights.ts'

const { values } = parseArgs({ options: { data: { type: 'string' }, misses: { type: 'boolean', default: false } } })
const root = join(import.meta.dirname, '..', '..')
const folder = values.data ?? [join(root, '..', 'shared', 'data', 'locomo')].find((path) => existsSync(path))
if (folder === undefined || !existsSync(folder)) {
  process.stderr.write('There are no conversations to try it on. Name a folder with them: npm run bench:recall -- --data <folder>\n')
  process.exit(1)
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`
const modes = ['each', 'one'] as const
const sets = [{ name: 'Conversations', stored: readStored(folder) }, { name: 'Mailboxes made by rule', stored: madeMailboxes() }]
const sections: string[] = []
const fitted: Array<{ name: string; way: Way; weights: Weights }> = []
const searches = ['words', 'fused, wasm', 'fused'] as const
const examplesOfAll: Record<(typeof searches)[number], ReturnType<typeof examplesOf>> = { words: [], 'fused, wasm': [], fused: [] }

for (const { name, stored } of sets) sections.push(await sectionOf(name, stored))
for (const way of searches) fitted.push({ name: 'both sets', way, weights: fitWeights(examplesOfAll[way]) })

async function sectionOf(name: string, stored: readonly Stored[]): Promise<string> {
  const byMode = await Promise.all(modes.map(async (threads) => {
    const found: Evaluated[] = []
    for (const one of stored) {
      const conversation = conversationOf(one, threads)
      found.push({ ...conversation, cosines: { words: await cosinesOf(conversation, 'words'), pieces: await cosinesOf(conversation, 'pieces') } })
    }
    return { threads, conversations: found }
  }))
  const examples = (way: Way, wanted: (id: string) => boolean) =>
    byMode.flatMap(({ conversations }) => conversations.filter(({ id }) => wanted(id)).flatMap((one) => examplesOf(one, way)))
  const heldOut = (way: Way) => new Map(stored.map(({ id }) => [id, fitWeights(examples(way, (other) => other !== id))]))
  const chosen = { words: heldOut('words'), 'fused, wasm': heldOut('fused, wasm'), fused: heldOut('fused') }
  for (const way of searches) {
    const all = examples(way, () => true)
    examplesOfAll[way].push(...all)
    fitted.push({ name, way, weights: fitWeights(all) })
  }
  const categories = [...new Set(stored.flatMap(({ qa }) => qa.map(({ category }) => category)))].toSorted()
  const head = ['', 'recall@10', '95 %', '@5', '@20', 'tokens', ...stored.map(({ id }) => id), ...categories]
  const rows = byMode.flatMap(({ threads, conversations }) => {
    const row = (label: string, results: readonly Result[][]) => rowOf(`${label}${threads === 'one' ? ', one thread' : ''}`, results, categories)
    const ways: Way[] = threads === 'each' ? ['plain words', 'plain vectors', 'neighbors', ...searches] : [...searches]
    if (values.misses && threads === 'each') for (const one of conversations) printMisses(one)
    return [
      ...ways.map((way) => row(way, conversations.map((one) => evaluate(one, way)))),
      ...searches.map((way) => row(`**${way}, weights chosen on the others**`, conversations.map((one) => evaluate(one, way, chosen[way].get(one.id))))),
    ]
  })
  const counted = stored.reduce((sum, { qa }) => sum + qa.length, 0)
  return `## ${name}\n\n${stored.length} of them, ${counted} questions.\n\n${tableOf(head, rows)}`
}

function rowOf(label: string, results: readonly Result[][], categories: readonly string[]): string[] {
  const all = results.flat()
  const shares = all.map(({ at10 }) => at10)
  const [low, high] = interval(shares)
  return [
    label, percent(mean(shares)), `${(low * 100).toFixed(1)}-${(high * 100).toFixed(1)}`, percent(mean(all.map(({ at5 }) => at5))),
    percent(mean(all.map(({ at20 }) => at20))), mean(all.map(({ tokens }) => tokens)).toFixed(0), ...results.map((each) => percent(mean(each.map(({ at10 }) => at10)))),
    ...categories.map((category) => percent(mean(all.filter((one) => one.category === category).map(({ at10 }) => at10)))),
  ]
}

function printMisses(conversation: Evaluated): void {
  for (const [at, { text, category, evidence }] of conversation.questions.entries()) {
    const { postings, cosines, options } = rankingOf(conversation, at, 'fused')
    const ranked = rank(conversation.collection, postings, cosines, { ...options, limit: conversation.collection.count }).map((one) => one.at)
    for (const turn of evidence) {
      const place = ranked.indexOf(turn)
      if (place < 0 || place >= 10) process.stdout.write(`${category}\t${place}\t${text}\t${conversation.texts[turn] ?? ''}\n`)
    }
  }
}

function tableOf(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const names = Object.keys(defaultWeights) as Array<keyof Weights>
const used = [{ name: 'in use', way: 'words' as const, weights: weightsOfWords }, { name: 'in use', way: 'fused' as const, weights: defaultWeights }]
const text = `# What recall finds

Of the turns that answer a question, the share among the ten best, on average over questions; with the interval in which 95 of 100 draws of as
many questions have it, the share among 5 and 20, the tokens of the ten, and the share by conversation and by kind of question. Each session
is a thread, or all sessions are one thread. "Plain" compares the message alone; "neighbors" takes the four nearest vectors, each with the
messages beside it, up to twelve messages; "words" and "fused" are the searches of recall without and with vectors,
"fused, wasm" that with the vectors of the engine in WebAssembly. Made by \`npm run bench:recall\`.

"Weights chosen on the others" is the number to believe: for each conversation, weights were fitted to the other conversations of its set
(\`bench/recall/weights.ts\`), in both kinds of threads. The mailboxes are made by \`bench/recall/made.ts\`.

${sections.join('\n\n')}

## Weights

Those in use, and what a fit to a whole set finds. A fit does not know where the weights are wrong for other data: those in use are rounded,
count the length of a message less, and hold for both sets.

${tableOf(['', ...names], [...used, ...fitted].map(({ name, way, weights }) => [`${way}, ${name}`, ...names.map((one) => weights[one].toFixed(2))]))}
`
process.stdout.write(`\n${text}`)
mkdirSync(join(root, 'bench', 'results'), { recursive: true })
writeFileSync(join(root, 'bench', 'results', 'recall.md'), text)
