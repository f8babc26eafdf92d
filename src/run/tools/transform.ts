import { describe } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { copyOf, jsonOf } from './tool-json.ts'

/** Who sees the payload: live streams, or the stored transcript. The model always sees the real one. */
export type TransformTarget = 'display' | 'transcript'

export type TransformPhase = 'input-delta' | 'input-available' | 'output-available' | 'error' | 'approval' | 'suspend'

export interface TransformContext {
  target: TransformTarget
  phase: TransformPhase
  toolName: string
  toolCallId: string
  input?: JSONValue
  inputTextDelta?: string
  output?: JSONValue
  error?: string
  suspendPayload?: JSONValue
}

export type TransformFunction = (context: TransformContext) => JSONValue | undefined | Promise<JSONValue | undefined>

interface TargetTransform {
  input?: TransformFunction
  /** Without it, a tool that has `input` streams no raw input. */
  inputDelta?: TransformFunction
  output?: TransformFunction
  error?: TransformFunction
  approval?: TransformFunction
  suspend?: TransformFunction
}

/** A tool's own rules. */
export type ToolTransform = Partial<Record<TransformTarget, TargetTransform>>

/** An agent's rule for all its tools. A tool's own rule comes first; what the function leaves `undefined` is shown as it is. */
export interface ToolPayloadTransformPolicy {
  transformToolPayload: TransformFunction
  targets?: TransformTarget[]
}

const ruleOf: Record<TransformPhase, keyof TargetTransform> = {
  'input-delta': 'inputDelta',
  'input-available': 'input',
  'output-available': 'output',
  error: 'error',
  approval: 'approval',
  suspend: 'suspend',
}

/** What is shown when a rule throws: better nothing than what it should have hidden. */
export const withheld = '[withheld]'

export interface Transformer {
  /** The payload as the target sees it; `undefined` when it is to be shown as it is. */
  apply(tool: ToolTransform | undefined, context: TransformContext): Promise<JSONValue | undefined>
  /** What displays see of input while it arrives; `null` for nothing. Where a rule hides input, its pieces are only shown if it says how. */
  delta(tool: ToolTransform | undefined, context: TransformContext): Promise<JSONValue | undefined | null>
  /** True when neither the agent nor this tool has a rule: the hot path asks this and goes on. */
  idle(tool: ToolTransform | undefined): boolean
}

export function transformer(policy: ToolPayloadTransformPolicy | undefined, logger: Logger): Transformer {
  const covers = (target: TransformTarget) => policy !== undefined && (policy.targets ?? ['display', 'transcript']).includes(target)
  const apply: Transformer['apply'] = async (tool, context) => {
    const own = tool?.[context.target]?.[ruleOf[context.phase]]
    const rule = own ?? (covers(context.target) ? policy?.transformToolPayload : undefined)
    if (!rule) return undefined
    // A rule for an object can't know where in a text that is none its secrets are.
    const malformed = isMalformed(context.input)
    if (malformed && (context.phase === 'input-available' || context.phase === 'approval')) return withheld
    const { input, output, suspendPayload } = context
    try {
      // Copies: a rule may make what is shown out of what it was given, and the model sees the original.
      const shown = await rule({
        ...context,
        ...(input === undefined ? {} : { input: malformed ? withheld : copyOf(input) }),
        ...(output === undefined ? {} : { output: copyOf(output) }),
        ...(suspendPayload === undefined ? {} : { suspendPayload: copyOf(suspendPayload) }),
      })
      return shown === undefined ? undefined : jsonOf(shown, `What transform of tool '${context.toolName}' returned`)
    } catch (error) {
      logger.error(`transform of tool '${context.toolName}' failed; its payload is withheld`, { phase: context.phase, error: describe(error) })
      return withheld
    }
  }
  return {
    apply,
    idle: (tool) => policy === undefined && tool === undefined,
    async delta(tool, context) {
      const { input, inputDelta } = tool?.display ?? {}
      if (inputDelta) return apply(tool, context)
      if (input) return null
      return covers('display') ? ((await apply(tool, context)) ?? null) : undefined
    },
  }
}

/** Input that was not JSON is kept as `{ malformed: text }`. */
function isMalformed(input: JSONValue | undefined): boolean {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return false
  return typeof input.malformed === 'string' && Object.keys(input).length === 1
}
