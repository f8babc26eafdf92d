import { HeedError } from '../base/errors.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { checkSendOptions, type CheckedSend, type SendOptions } from '../thread/send/send-options.ts'
import { checkOptions } from './check-options.ts'

interface WithStreamOptions {
  threadId?: string
  resourceId?: string
  ifIdle?: { streamOptions?: AgentExecutionOptions }
}

/** The one check of what a send is given. Everything wrong with it is thrown here, before anything happened. */
export function checkSend(options: SendOptions): CheckedSend {
  checkStreamOptions(options)
  return checkSendOptions(options)
}

/** Checks the options of the run that a send may start. They need not repeat its target, and must not name another. */
export function checkStreamOptions(options: WithStreamOptions): void {
  const { streamOptions } = options?.ifIdle ?? {}
  if (streamOptions === undefined) return
  checkOptions(streamOptions, 'ifIdle.streamOptions')
  const { thread, resource } = streamOptions.memory ?? {}
  checkSame('thread', typeof thread === 'string' ? thread : thread?.id, options.threadId)
  checkSame('resource', resource, options.resourceId)
}

function checkSame(field: 'thread' | 'resource', named: string | undefined, target: string | undefined): void {
  if (named === undefined || named === target) return
  const option = `ifIdle.streamOptions.memory.${field}`
  const goes = target === undefined ? 'the thread of a run' : `'${target}'`
  const why = `${option} is '${named}', but the send goes to ${goes}. Leave it out: threadId and resourceId are the target.`
  throw new HeedError('invalid_argument', why, { details: { field: option } })
}
