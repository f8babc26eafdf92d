import { orderedJSON } from '../base/json.ts'
import type { Chunk, ChunkPayloads } from '../run/chunk.ts'
import { chunkShapes, isObject, misfitIn, threadData, type OwnChunk } from './chunk-shapes.ts'
import { described, jsonIn } from './returned.ts'

/*
 * A chunk that a processor made is a stranger's until it was looked at: displays read what the run says without asking. These throw what is
 * wrong with it, like those beside them.
 */

/** What is shown of the chunk that a hook was given: nothing where it drops it. What the run itself says of how it goes can't be dropped. */
export function returnedChunk(returned: unknown, part: Chunk): Chunk | undefined {
  if (returned === undefined || returned === part) return part
  if (returned === null) return isOwn(part.type) ? part : undefined
  return checked(returned, part, 'returned')
}

/** A chunk that a hook shows before the one that it was given: never the same object, since each has a place of its own. */
export function emittedChunk(emitted: unknown, part: Chunk): Chunk {
  const chunk = checked(emitted, part, 'emitted')
  if (isOwn(chunk.type) || threadData.has(chunk.type)) throw new Error(`it emitted a chunk of type '${chunk.type}', which is the run's to say. Return the one that was given.`)
  return chunk
}

function checked(made: unknown, part: Chunk, how: 'returned' | 'emitted'): Chunk {
  if (!isObject(made) || typeof made.type !== 'string') throw new Error(`it ${how} ${described(made)}. Return a chunk, null to drop it, or nothing.`)
  const { type, runId } = made
  if (runId !== part.runId) throw new Error(`it ${how} a chunk of type '${type}' ${typeof runId === 'string' ? 'with the runId of another run' : 'without the runId of its run'}.`)
  const wrong = type.startsWith('data-') ? wrongData(made, part) : wrongPayload(made, type, part)
  if (wrong !== undefined) throw new Error(`it ${how} a chunk of type '${type}'${wrong}.`)
  // A place in the stream is given to what is shown, and this may have been shown before.
  const { cursor: _, ...chunk } = made
  return jsonIn(chunk as unknown as Chunk, `in a ${type}`)
}

function wrongPayload({ from, payload, metadata }: Record<string, unknown>, type: string, part: Chunk): string | undefined {
  const shape = isKnown(type) ? chunkShapes[type] : undefined
  if (!shape) return ', which there is not. What is yours to say has a type that begins with data-'
  if (from !== 'AGENT' && from !== 'USER' && from !== 'SYSTEM') return ' that is not from AGENT, USER or SYSTEM'
  if (metadata !== undefined && !isObject(metadata)) return ' whose metadata is not an object'
  if ('may' in shape) return wrongOwn(payload, shape, type, part)
  if (shape.payload === 'any') return undefined
  if (!isObject(payload)) return payload === undefined ? ' without payload' : ` whose payload is ${described(payload)}`
  if (type === 'source' && payload.sourceType === 'url' && typeof payload.url !== 'string') return ' without url in its payload'
  return misfitIn(payload, shape.payload)
}

function wrongOwn(payload: unknown, { may }: OwnChunk, type: string, part: Chunk): string | undefined {
  if (type !== part.type || !('payload' in part)) return ", which is the run's to say. Return the one that was given, or nothing"
  if (!isObject(payload)) return ' without payload'
  const given = part.payload as Record<string, unknown>
  const same: Record<string, unknown> = { ...payload }
  for (const name of Object.keys(may)) same[name] = given[name]
  if (orderedJSON(same) === orderedJSON(given)) return misfitIn(payload, may)
  const changeable = Object.keys(may)
  return ` that says something else than the one that was given. ${changeable.length === 0 ? 'Nothing of it' : `Nothing but ${changeable.join(' and ')}`} can be changed`
}

function wrongData({ type, data, id, transient }: Record<string, unknown>, part: Chunk): string | undefined {
  if (id !== undefined && typeof id !== 'string') return ' whose id is not a text'
  if (transient !== undefined && typeof transient !== 'boolean') return ' whose transient is not true or false'
  if (!threadData.has(type as string)) return undefined
  if (type !== part.type || !('data' in part) || !isObject(part.data)) return ", which is the thread's to say. Return the one that was given, or send a signal with sendSignal()"
  if (!isObject(data) || data.id !== part.data.id || data.type !== part.data.type) return ' of another signal than the one that was given'
  return typeof data.contents === 'string' || Array.isArray(data.contents) ? undefined : ' without contents'
}

function isKnown(type: string): type is keyof ChunkPayloads {
  return Object.hasOwn(chunkShapes, type)
}

function isOwn(type: string): boolean {
  return isKnown(type) && 'may' in chunkShapes[type]
}
