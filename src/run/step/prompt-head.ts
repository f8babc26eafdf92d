import { createHash } from 'node:crypto'
import type { SystemMessage } from '../../prompt/system.ts'
import type { ToolSet } from '../tools/tool-set.ts'

/** What a prompt begins with, as it is stored once for all calls that have it: see `PromptHead` of the store. */
export interface CallHead {
  hash: string
  text: string
  tools: { hash: string; text: string }
}

type Definitions = ToolSet['definitions']

/** The hashes of texts that were used last. An agent has few of them, unless its instructions differ in each run. */
const hashes = new Map<string, string>()
const maxHashes = 500
const maxHashedLength = 100_000

const ofTools = new WeakMap<Definitions, CallHead['tools']>()

export function callHead(system: readonly SystemMessage[], tags: readonly string[], tools: Definitions): CallHead {
  let described = ofTools.get(tools)
  if (!described) {
    const text = JSON.stringify(tools)
    ofTools.set(tools, (described = { hash: hashOf(text), text }))
  }
  const text = JSON.stringify(tags.length === 0 ? { system } : { system, tags })
  return { hash: hashOf(text + described.hash), text, tools: described }
}

/** 128 bits of SHA-256. */
function hashOf(text: string): string {
  let hash = hashes.get(text)
  if (hash === undefined) {
    hash = createHash('sha256').update(text).digest('hex').slice(0, 32)
    if (hashes.size >= maxHashes) hashes.clear()
    if (text.length <= maxHashedLength) hashes.set(text, hash)
  }
  return hash
}
