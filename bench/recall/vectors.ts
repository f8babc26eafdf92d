import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { localEmbedder } from '../../src/embed/index.ts'
import type { Conversation } from './conversations.ts'

/** Vectors are made once and kept in a folder for temporary files: a hash of the text, then its numbers. */
const folder = join(tmpdir(), 'heed-bench-recall')
const path = join(folder, 'vectors.bin')
const dimension = 384
const hashBytes = 16
const recordBytes = hashBytes + 4 * dimension

let vectors: Map<string, Float32Array> | undefined

/** How near each turn is to each question. */
export async function cosinesOf({ id, texts, questions }: Conversation): Promise<Float32Array[]> {
  await embed(id, [...texts, ...questions.map(({ text }) => text)])
  const turns = texts.map(vectorOf)
  return questions.map(({ text }) => {
    const question = vectorOf(text)
    return Float32Array.from(turns, (turn) => {
      let sum = 0
      for (let n = 0; n < dimension; n += 1) sum += (turn[n] as number) * (question[n] as number)
      return sum
    })
  })
}

function vectorOf(text: string): Float32Array {
  const vector = vectors?.get(hashOf(text))
  if (!vector) throw new Error(`no vector was made of: ${text}`)
  return vector
}

async function embed(id: string, texts: readonly string[]): Promise<void> {
  vectors ??= readVectors()
  const missing = [...new Set(texts)].filter((text) => !vectors?.has(hashOf(text)))
  for (let start = 0; start < missing.length; start += 32) {
    if (process.stderr.isTTY) process.stderr.write(`\rconversation ${id}: ${start} of ${missing.length} texts `)
    const some = missing.slice(start, start + 32)
    const { embeddings } = await localEmbedder().doEmbed({ values: some })
    mkdirSync(folder, { recursive: true })
    appendFileSync(path, Buffer.concat(some.map((text, at) => record(text, Float32Array.from(embeddings[at] ?? [])))))
    for (const [at, text] of some.entries()) vectors.set(hashOf(text), Float32Array.from(embeddings[at] ?? []))
  }
}

function record(text: string, vector: Float32Array): Buffer {
  return Buffer.concat([Buffer.from(hashOf(text), 'hex'), Buffer.from(vector.buffer)])
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 2 * hashBytes)
}

/** What an interrupted run wrote of a last record is left out. */
function readVectors(): Map<string, Float32Array> {
  const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
  const found = new Map<string, Float32Array>()
  for (let at = 0; at + recordBytes <= bytes.length; at += recordBytes) {
    const numbers = bytes.buffer.slice(bytes.byteOffset + at + hashBytes, bytes.byteOffset + at + recordBytes)
    found.set(bytes.toString('hex', at, at + hashBytes), new Float32Array(numbers))
  }
  return found
}
