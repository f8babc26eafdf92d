import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import { withCacheBreakpoints } from '../../prompt/cache-breakpoints.ts'
import { toV2Prompt, toV3Prompt } from '../../prompt/down-convert.ts'
import { commonPrefix, explainPrompt, type CommonPrefix, type ExplainedPart, type ExplainedPrompt } from '../../prompt/explain.ts'
import type { SystemModelMessage } from '../../prompt/system.ts'
import { rebuildMessages } from '../../run/loop/run-history.ts'
import type { Scope, StoredPrompt, ThreadStore } from '../../store/contract/threads.ts'

type Tools = NonNullable<LanguageModelV4CallOptions['tools']>

export interface PromptPart extends ExplainedPart {
  /** The place of its message in the prompt; of a tool, its place among the tools. */
  index: number
}

/** The prompt of a past model call, made again from what is stored. */
export interface StepPrompt {
  runId: string
  step: number
  epoch: number
  agentId: string
  provider?: string
  modelId?: string
  startedAt: Date
  /** Its bytes are those that the model received, by the hash that was stored with the call. */
  exact: boolean
  /** Why it is not exact. */
  why?: string
  /** A processor changed the messages of this call alone. */
  altered?: true
  /** As the provider received them. Earlier versions of its interface receive another form of the same messages. */
  prompt: unknown[]
  tools: Tools
  parts: PromptPart[]
  tokens: number
  bytes: number
  /** The call before it on the thread, and the prefix that both prompts share. */
  previous?: { runId: string; step: number }
  prefix: CommonPrefix
  /** The index of the first part that differs from the previous call. Absent if this prompt begins with the whole of the previous one. */
  brokenAt?: number
}

/** The prompt of a step of a run. Null if there is no such step, or its record was removed. */
export async function readStepPrompt(store: ThreadStore, scope: Scope, runId: string, step: number): Promise<StepPrompt | null> {
  const stored = await store.readPrompt(scope, runId, step)
  if (!stored) return null
  const { run, step: call } = stored
  const made = rebuild(stored)
  const before = stored.previous && rebuild(stored.previous).explained
  const prefix = commonPrefix(before?.fingerprints ?? [], made.explained.fingerprints)
  const isBroken = before !== undefined && prefix.messages < before.fingerprints.length
  return {
    runId,
    step,
    epoch: call.epoch,
    agentId: run.agentId,
    ...(call.provider === undefined ? {} : { provider: call.provider }),
    ...(call.modelId === undefined ? {} : { modelId: call.modelId }),
    startedAt: new Date(call.startedAt),
    exact: made.why === undefined,
    ...(made.why === undefined ? {} : { why: made.why }),
    ...(call.altered === undefined ? {} : { altered: true as const }),
    prompt: made.prompt,
    tools: made.tools,
    parts: withPlaces(made),
    tokens: made.explained.tokens,
    bytes: made.explained.bytes,
    ...(stored.previous && { previous: { runId: stored.previous.run.runId, step: stored.previous.step.step } }),
    prefix,
    ...(isBroken && { brokenAt: prefix.messages }),
  }
}

interface Rebuilt {
  tools: Tools
  prompt: unknown[]
  explained: ExplainedPrompt
  why: string | undefined
}

const headGone = 'The instructions and the tools of this call are not stored any more.'
const tooLong = 'A processor changed the messages of this call, and what it left was too long to be stored.'
const changed = 'Messages of this prompt were deleted, changed or withdrawn since: it is made of those that are left.'

function rebuild({ run, step, head, rows }: StoredPrompt): Rebuilt {
  const { system, tags = [] } = head ? (JSON.parse(head.text) as { system: SystemModelMessage[]; tags?: string[] }) : { system: [] }
  const tools = head ? (JSON.parse(head.tools) as Tools) : []
  const made = rebuildMessages(rows, step, run.agentId, tags)
  const messages = made?.messages ?? []
  const why = !head ? headGone : !made ? tooLong : made.hash === step.hash ? undefined : changed
  return {
    tools,
    prompt: asReceived([...system, ...messages], step),
    explained: explainPrompt({ system, rows: made?.rows ?? [], tools, runId: run.runId, tags, closed: true }),
    why,
  }
}

function asReceived(prompt: LanguageModelV4Message[], { provider, modelId, specification }: StoredPrompt['step']): unknown[] {
  const marked = provider === undefined || modelId === undefined ? prompt : withCacheBreakpoints({ provider, modelId }, prompt)
  if (specification === 'v3') return toV3Prompt(marked)
  return specification === 'v2' ? toV2Prompt(marked) : marked
}

/** Parts are in order: the tools, then one for each message. */
function withPlaces({ tools, explained: { parts } }: Rebuilt): PromptPart[] {
  return parts.map((part, at) => ({ ...part, index: at < tools.length ? at : at - tools.length }))
}
