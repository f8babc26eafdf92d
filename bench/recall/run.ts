/**
 * How much recall finds: `npm run bench:recall [-- --data <folder>] [-- --choose]`. Questions with the turns that answer them; the share of
 * those turns among the ten best, per conversation. With `--choose`, weights are chosen on all conversations but the one they are tried on.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { localEmbedder } from '../../src/embed/index.ts'
import { readConversations } from './conversations.ts'
import { chooseWeights, mean, recallAt10, type Evaluated } from './evaluate.ts'
import { cosinesOf } from './vectors.ts'

const { values } = parseArgs({ options: { data: { type: 'string' }, choose: { type: 'boolean', default: true } }, allowNegative: true })
const root = join(import.meta.dirname, '..', '..')
const folder = values.data ?? [join(root, '..', 'shared', 'data', 'locomo')].find((path) => existsSync(path))
if (folder === undefined || !existsSync(folder)) {
  process.stderr.write('There are no conversations to try it on. Name a folder with them: npm run bench:recall -- --data <folder>\n')
  process.exit(1)
}

const conversations: Evaluated[] = []
for (const conversation of readConversations(folder)) conversations.push({ ...conversation, cosines: await cosinesOf(conversation) })
await localEmbedder().close()

const percent = (share: number) => `${(share * 100).toFixed(1)} %`
const ways = ['plain words', 'plain vectors', 'words', 'vectors', 'fused'] as const
const perWay = ways.map((way) => conversations.map((conversation) => recallAt10(conversation, way)))
const rows = ways.map((way, at) => rowOf(way, perWay[at] ?? []))
if (values.choose) rows.push(rowOf('fused, weights chosen on the others', leaveOneOut()))

function rowOf(name: string, shares: ReadonlyArray<ReadonlyArray<{ share: number; category: number }>>): string[] {
  const each = shares.map(mean)
  const ofCategory = (category: number) => mean(shares.flat().filter((one) => one.category === category))
  return [name, ...each.map(percent), percent(mean(shares.flat())), percent(Math.min(...each)), ...[1, 2, 3, 4].map((category) => percent(ofCategory(category)))]
}

function leaveOneOut() {
  let step = 0
  return conversations.map((held) => {
    const weights = chooseWeights(conversations.filter((one) => one !== held), () => {
      step += 1
      if (process.stderr.isTTY) process.stderr.write(`\rchoosing weights: ${step} tried `)
    })
    return recallAt10(held, 'fused', weights)
  })
}

const head = ['recall@10', ...conversations.map(({ id }) => id), 'all', 'worst', 'multi-hop', 'temporal', 'open', 'single-hop']
const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
const questions = conversations.reduce((sum, { questions: { length } }) => sum + length, 0)
const text = `# What recall finds

Of ${questions} questions about ${conversations.length} conversations: the share of the turns that answer them among the ten best, on average. "Plain" compares
the message alone; "words", "vectors" and "fused" also count the message before it, its neighbors and its thread. Made by \`npm run bench:recall\`.

${table}
`
process.stdout.write(`\n${text}`)
mkdirSync(join(root, 'bench', 'results'), { recursive: true })
writeFileSync(join(root, 'bench', 'results', 'recall.md'), text)
