import { checkNames } from '../../base/arguments.ts'
import { describe } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { Message } from '../../message/message.ts'
import { signalOf } from '../../message/signal-record.ts'
import { checkFunction, checkTextOption } from './option-kinds.ts'
import type { Processor } from '../processor.ts'
import { described } from '../returned.ts'

/** A tool that was called and has returned. */
export interface FinishedCall {
  toolName: string
  args: JSONValue
}

export interface FileReminderOptions {
  /**
   * The paths whose instructions matter after a call, if any. Defaults to what the call has as `path`, `filePath`, `file_path` or
   * `filename`, whatever the tool.
   */
  files?(call: FinishedCall): string | readonly string[] | undefined
  /**
   * The instructions for a path; nothing where there are none. Asked once for each path in a run. What can't be loaded is logged and left out: a file that is
   * gone must not keep a thread from going on.
   */
  load(path: string): Promise<string | undefined> | string | undefined
  /** The `type` attribute of the reminder. Defaults to `dynamic-agents-md`. */
  tagType?: string
  /** Defaults to `file-reminder`. */
  id?: string
}

/**
 * Tells the model the instructions that belong to a file, once a tool has touched it: as a `<system-reminder>` with the path, at the
 * end of the prompt, and never twice as long as the first one can be seen.
 *
 * @example
 * fileReminder({
 *   files: ({ toolName, args }) => (toolName === 'read_file' ? join(dirname(args.path), 'AGENTS.md') : undefined),
 *   load: (path) => readFile(path, 'utf8').catch(() => undefined),
 * })
 */
export function fileReminder(options: FileReminderOptions): Processor {
  checkNames('fileReminder()', options, ['files', 'load', 'tagType', 'id'])
  const { files = pathIn, load, tagType = 'dynamic-agents-md', id = 'file-reminder' } = options
  checkFunction('fileReminder()', 'load', load)
  checkFunction('fileReminder()', 'files', files)
  checkTextOption('fileReminder()', 'tagType', tagType)
  checkTextOption('fileReminder()', 'id', id)
  const handled = new WeakMap<object, Set<string>>()
  const loaded = async (path: string, failed: (error: unknown) => void): Promise<string | undefined> => {
    let contents: unknown
    try {
      contents = await load(path)
    } catch (error) {
      failed(error)
      return undefined
    }
    if (contents === undefined || contents === null || typeof contents === 'string') return contents ?? undefined
    throw new Error(`load returned ${described(contents)} for '${path}'. Return the instructions as a text, or nothing.`)
  }
  return {
    id,
    async processInputStep({ messages, state, sendSignal, logger, runId }) {
      const known = handled.get(state) ?? new Set<string>()
      handled.set(state, known)
      for (const path of remindedPaths(messages, tagType)) known.add(path)
      for (const call of finishedCalls(messages)) {
        for (const path of pathsIn(files(call))) {
          if (known.has(path)) continue
          known.add(path)
          const contents = await loaded(path, (error) => logger.warn(`${id} could not load the instructions of a file`, { runId, path, error: describe(error) }))
          if (contents) await sendSignal({ type: 'reactive', contents, attributes: { type: tagType, path }, metadata: { path } })
        }
      }
    },
  }
}

/** What `files` found: a path, several, or none. */
function pathsIn(found: unknown): readonly string[] {
  if (found === undefined || found === null) return []
  const paths: unknown[] = Array.isArray(found) ? found : [found]
  return paths.map((path) => {
    if (typeof path === 'string') return path
    throw new Error(`files returned ${described(path)}${path === found ? '' : ' in a list'}. Return a path, a list of paths, or nothing.`)
  })
}

function finishedCalls(messages: readonly Message[]): FinishedCall[] {
  return messages.flatMap(({ content }) => content.parts.flatMap((part) => {
    if (part.type !== 'tool-invocation' || part.toolInvocation.state !== 'result') return []
    const { toolName, args } = part.toolInvocation
    return [{ toolName, args }]
  }))
}

function remindedPaths(messages: readonly Message[], tagType: string): string[] {
  return messages.flatMap((message) => {
    if (message.role !== 'signal') return []
    const { type, attributes, metadata } = signalOf(message)
    return type === 'reactive' && attributes?.type === tagType && typeof metadata?.path === 'string' ? [metadata.path] : []
  })
}

const pathNames = ['path', 'filePath', 'file_path', 'filename'] as const

function pathIn({ args }: FinishedCall): string | undefined {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return undefined
  for (const name of pathNames) {
    const path = args[name]
    if (typeof path === 'string' && path !== '') return path
  }
  return undefined
}
