import { checkNames } from '../../base/arguments.ts'
import { describe } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { Message } from '../../message/message.ts'
import { signalOf } from '../../message/content.ts'
import { describeResult } from '../hook-results.ts'
import type { Processor } from '../processor.ts'
import { checkFunction, checkTextOption } from './option-checks.ts'

/** A tool call with a result. */
export interface FinishedCall {
  toolName: string
  args: JSONValue
}

/** The options of `fileReminder()`. */
export interface FileReminderOptions {
  /**
   * The paths whose instructions the model needs after a call. Defaults to the argument `path`, `filePath`, `file_path` or `filename` of
   * any tool.
   */
  files?(call: FinishedCall): string | readonly string[] | undefined
  /**
   * Loads the instructions for a path; undefined for none. Called once for each path in a run. A failure is logged and the path is left
   * out, so that a missing file does not fail the run.
   */
  load(path: string): Promise<string | undefined> | string | undefined
  /** The `type` attribute of the reminder. Defaults to `dynamic-agents-md`. */
  tagType?: string
  /** Defaults to `file-reminder`. */
  id?: string
}

/**
 * Adds the instructions of a file to the prompt after a tool has used the file: as a `<system-reminder>` with the path, at the end of the
 * prompt, and not again as long as the window has the first one.
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
  const loadText = async (path: string, onFailure: (error: unknown) => void): Promise<string | undefined> => {
    let contents: unknown
    try {
      contents = await load(path)
    } catch (error) {
      onFailure(error)
      return undefined
    }
    if (contents === undefined || contents === null || typeof contents === 'string') return contents ?? undefined
    throw new Error(`load returned ${describeResult(contents)} for '${path}'. Return the instructions as a text, or nothing.`)
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
          const contents = await loadText(path, (error) => {
            logger.warn(`${id} could not load the instructions of a file`, { runId, path, error: describe(error) })
          })
          if (contents) await sendSignal({ type: 'reactive', contents, attributes: { type: tagType, path }, metadata: { path } })
        }
      }
    },
  }
}

/** The result of `files`: a path, several, or none. */
function pathsIn(returned: unknown): readonly string[] {
  if (returned === undefined || returned === null) return []
  const paths: unknown[] = Array.isArray(returned) ? returned : [returned]
  return paths.map((path) => {
    if (typeof path === 'string') return path
    const where = path === returned ? '' : ' in a list'
    throw new Error(`files returned ${describeResult(path)}${where}. Return a path, a list of paths, or nothing.`)
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
