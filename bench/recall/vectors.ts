import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { localEmbedder } from '../../src/embed/index.ts'
import type { Conversation } from './conversations.ts'

const folder = join(tmpdir(), 'heed-bench-recall')

/** How near each turn is to each question. Vectors are made once and kept in a folder for temporary files. */
export async function cosinesOf({ id, texts, questions }: Conversation): Promise<Float32Array[]> {
  const all = [...texts, ...questions.map(({ text }) => text)]
  const vectors = await kept(id, all)
  const dimension = vectors.length / all.length
  return questions.map((_, at) => {
    const question = (texts.length + at) * dimension
    return Float32Array.from(texts, (__, turn) => {
      let sum = 0
      for (let n = 0; n < dimension; n += 1) sum += (vectors[turn * dimension + n] ?? 0) * (vectors[question + n] ?? 0)
      return sum
    })
  })
}

async function kept(id: string, texts: string[]): Promise<Float32Array> {
  const path = join(folder, `${id}-${createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 16)}.bin`)
  if (!existsSync(path)) {
    const vectors: number[] = []
    for (let start = 0; start < texts.length; start += 32) {
      if (process.stderr.isTTY) process.stderr.write(`\rconversation ${id}: ${start} of ${texts.length} texts `)
      vectors.push(...(await localEmbedder().doEmbed({ values: texts.slice(start, start + 32) })).embeddings.flat())
    }
    if (process.stderr.isTTY) process.stderr.write('\n')
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${path}.part`, new Uint8Array(Float32Array.from(vectors).buffer))
    renameSync(`${path}.part`, path)
  }
  const bytes = readFileSync(path)
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}
