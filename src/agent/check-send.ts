import { HeedError } from '../base/errors.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { checkOptions } from './check-options.ts'

interface Sent {
  threadId?: string
  resourceId?: string
  ifIdle?: { streamOptions?: AgentExecutionOptions }
}

/** The options of the run that a send may start. They need not repeat where it goes, and can't name another place. */
export function checkSend<Options extends Sent>(options: Options): Options {
  const { streamOptions = {} } = options?.ifIdle ?? {}
  checkOptions(streamOptions, 'ifIdle.streamOptions')
  const { thread, resource } = streamOptions.memory ?? {}
  sameAs('thread', typeof thread === 'string' ? thread : thread?.id, options?.threadId)
  sameAs('resource', resource, options?.resourceId)
  return options
}

function sameAs(field: 'thread' | 'resource', named: string | undefined, meant: string | undefined): void {
  if (named === undefined || named === meant) return
  const why = `ifIdle.streamOptions.memory.${field} is '${named}', but the send goes to '${meant ?? 'the thread of a run'}'. Leave it out: threadId and resourceId say where it goes.`
  throw new HeedError('invalid_argument', why, { details: { field: `ifIdle.streamOptions.memory.${field}` } })
}
