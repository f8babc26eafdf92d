import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Message, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { createHash } from 'node:crypto'
import { Agent, createTool, Memory, type ToolsInput } from '../../../src/index.ts'
import type { Chance } from '../../../src/store/conformance/fixture.ts'
import type { EffectCall, EffectFile } from '../effects.ts'
import type { JournalWriter } from '../journal.ts'
import type { KillSwitch } from '../kill-points.ts'
import { marksIn, pause } from '../restless-model.ts'

export const resourceId = 'user-1'

/** The agents, from the top: each may call the one below it. */
export const levels = ['chief', 'clerk', 'buyer'] as const
export type Level = (typeof levels)[number]

interface OfficeOptions {
  chance: Chance
  journal: JournalWriter
  effects: EffectFile
  kill: KillSwitch
  /** Names this process in the ids of calls. */
  name: string
  /** What the first step of the chief has, where a round is narrow. */
  focus?: Focus | undefined
  /** A tool that is not to be interrupted lightly has begun on this thread. */
  onWriting(thread: string, run: string): void
  /** An agent below is about to be called. */
  onCalling(thread: string, toolCallId: string): Promise<void>
}

export type Office = Record<Level, Agent>

/** A chief who asks a clerk who asks a buyer. Each may pay, which needs approval, order, which asks for data, and write, which needs neither. */
export function office(options: OfficeOptions): Office {
  const buyer = member('buyer', options)
  const clerk = member('clerk', options, { buyer })
  const chief = member('chief', options, { clerk })
  return { chief, clerk, buyer }
}

function member(level: Level, options: OfficeOptions, agents: Record<string, Agent> = {}): Agent {
  return new Agent({
    id: level,
    instructions: 'Work.',
    model: new OfficeModel(level, options),
    tools: toolsOf(level, options),
    agents,
    // The window is never cut: every prompt of a thread has to begin with the one before.
    memory: new Memory({ lastMessages: 100_000, semanticRecall: false }),
  })
}

interface Context {
  threadId?: string
  runId: string
  toolCallId: string
}

interface OrderData {
  click: string
  again?: boolean
}

function toolsOf(agent: Level, { chance, effects, kill, onWriting }: OfficeOptions): ToolsInput {
  const callOf = (tool: string, args: unknown, { threadId = '', runId, toolCallId }: Context, data?: unknown): EffectCall => {
    return { thread: threadId, run: runId, call: toolCallId, tool, idempotent: false, agent, args, ...(data === undefined ? {} : { data }) }
  }
  const effect = async (call: EffectCall, ms: number) => {
    effects.begun(call)
    kill.at('tool:begun')
    await pause(chance.below(ms))
    effects.done(call)
    kill.at('tool:done')
    return { done: call.call, n: (call.args as { n: string }).n }
  }
  const pay = createTool({ id: 'pay', requireApproval: true, execute: (args, context) => effect(callOf('pay', args, context), 12) })
  const write = createTool({
    id: 'write',
    execute: (args, context) => {
      onWriting(context.threadId ?? '', context.runId)
      return effect(callOf('write', args, context), 60)
    },
  })
  const order = createTool({
    id: 'order',
    execute: (args, context) => {
      const data = context.resumeData as OrderData | undefined
      if (data !== undefined && data.again !== true) return effect(callOf('order', args, context, data), 12)
      effects.asked(callOf('order', args, context, data))
      return context.suspend({ asks: data === undefined ? 1 : 2 })
    },
  })
  return { pay, write, order }
}

/** An agent below, a call that runs beside one that waits, or calls with the same id. */
export type Focus = 'below' | 'beside' | 'same'

const focused: Record<Focus, (plan: Plan) => boolean> = {
  below: (plan) => plan.flat().includes(below.chief),
  beside: (plan) => plan.length > 1 && plan.flat().includes('write') && plan.flat().includes('pay'),
  same: (plan) => plan.some((group) => group.length > 1),
}

/** What a step asks for; tools in one group have the same id of the provider. */
type Plan = readonly (readonly string[])[]

const below = { chief: 'agent-clerk', clerk: 'agent-buyer', buyer: 'pay' } as const

/** The plans of the first step after what a user said, and of the second. */
const plans: Record<Level, { first: readonly Plan[]; second: readonly Plan[] }> = {
  chief: {
    first: [
      [['pay']], [['pay', 'pay']], [['pay', 'order']], [['pay', 'write']], [['order']], [['pay'], ['write']], [['pay'], ['write']], [['order'], ['write']],
      [[below.chief]], [[below.chief]], [[below.chief]], [[below.chief], ['pay']], [[below.chief, below.chief]],
    ],
    second: [[], [], [['pay']], [['pay', 'pay']], [[below.chief]]],
  },
  clerk: {
    first: [[['pay']], [['pay', 'pay']], [['order']], [['pay'], ['order']], [[below.clerk]], [[below.clerk]], [[below.clerk], ['pay']]],
    second: [[], [['pay']], [['pay']], [[below.clerk]]],
  },
  buyer: { first: [[['pay']], [['pay']], [['order']], [['pay', 'pay']]], second: [[], [['pay']], [['order']]] },
}

const markBelow = /<<([^>]+)>>/

/** A model whose every moment is drawn. It notes each prompt, and what is wrong with the calls in it. */
class OfficeModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'office'
  readonly modelId = 'office'
  readonly supportedUrls = {}
  readonly #level: Level
  readonly #options: OfficeOptions
  #calls = 0

  constructor(level: Level, options: OfficeOptions) {
    this.#level = level
    this.#options = options
  }

  doGenerate(): never {
    throw new Error('not asked')
  }

  async doStream({ prompt, abortSignal }: LanguageModelV4CallOptions): Promise<{ stream: ReadableStream<LanguageModelV4StreamPart> }> {
    const { chance, journal, name, onCalling } = this.#options
    const call = `${name}.${this.#level}.${this.#calls++}`
    const texts = prompt.flatMap(({ role, content }) => (role === 'user' ? [JSON.stringify(content)] : []))
    const marks = texts.flatMap((text) => marksIn(text))
    const thread = marks[0]?.thread
    const key = thread ?? texts.map((text) => markBelow.exec(text)?.[1]).find((found) => found !== undefined) ?? ''
    journal.write({ note: 'asked', thread: key, prompt: prompt.map(digest), marks: marks.map(({ id }) => id) })
    for (const what of flawsOf(prompt)) journal.write({ note: 'flaw', key, what })
    const tools = toolCalls(call, this.#plan(prompt))
    for (const { toolName, toolCallId } of tools) if (thread !== undefined && toolName.startsWith('agent-')) await onCalling(thread, toolCallId)
    const parts = partsOf(tools)
    let index = 0
    return {
      stream: new ReadableStream<LanguageModelV4StreamPart>({
        async pull(controller) {
          await pause(chance.below(5))
          if (abortSignal?.aborted) return controller.error(abortSignal.reason)
          const part = parts[index++]
          if (part) controller.enqueue(part)
          if (index === parts.length) controller.close()
        },
      }, { highWaterMark: 0 }),
    }
  }

  #plan(prompt: readonly LanguageModelV4Message[]): Plan {
    const steps = prompt.slice(prompt.findLastIndex(({ role }) => role === 'user') + 1).filter(({ role }) => role === 'tool').length
    const { chance, focus } = this.#options
    const { first, second } = plans[this.#level]
    if (steps > 1) return []
    if (steps === 1) return chance.pick(second)
    return chance.pick(focus && this.#level === 'chief' ? first.filter(focused[focus]) : first)
  }
}

interface PlannedCall {
  toolCallId: string
  toolName: string
  input: string
}

/** Of each call, `n` is its own, whatever its id is. */
function toolCalls(call: string, plan: Plan): PlannedCall[] {
  return plan.flatMap((group, place) => group.map((toolName, index) => {
    const n = `${call}.${place}.${index}`
    return { toolCallId: `${call}.${place}`, toolName, input: JSON.stringify(toolName.startsWith('agent-') ? { prompt: `Work <<${n}>>.` } : { n }) }
  }))
}

function partsOf(tools: readonly PlannedCall[]): LanguageModelV4StreamPart[] {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'Well. ' },
    { type: 'text-end', id: 't' },
    ...tools.map((tool) => ({ type: 'tool-call', ...tool }) as const),
    {
      type: 'finish',
      finishReason: tools.length > 0 ? { unified: 'tool-calls', raw: undefined } : { unified: 'stop', raw: undefined },
      usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
    },
  ]
}

/** What is wrong with the calls of a prompt: each has one result, under the provider's id, and it is of this call. */
export function flawsOf(prompt: readonly LanguageModelV4Message[]): string[] {
  const flaws: string[] = []
  let open: Array<{ id: string; n: string | undefined }> = []
  const close = () => {
    for (const { id } of open) flaws.push(`the call ${id} has no result`)
    open = []
  }
  for (const message of prompt) {
    if (message.role === 'assistant') {
      close()
      for (const part of message.content) {
        if (part.type !== 'tool-call') continue
        if (part.toolCallId.includes('~')) flaws.push(`the call ${part.toolCallId} has not the id that the provider gave it`)
        open.push({ id: part.toolCallId, n: (part.input as { n?: string }).n })
      }
    } else if (message.role === 'tool') {
      for (const part of message.content) {
        if (part.type !== 'tool-result') continue
        const place = open.findIndex(({ id }) => id === part.toolCallId)
        const [call] = place === -1 ? [] : open.splice(place, 1)
        if (!call) flaws.push(`the result of ${part.toolCallId} is of no call`)
        const value = part.output.type === 'json' ? (part.output.value as { n?: string } | null) : undefined
        if (call && value?.n !== undefined && value.n !== call.n) flaws.push(`the call ${call.id} (${call.n}) has the result of ${value.n}`)
      }
    }
  }
  close()
  return flaws
}

function digest(message: LanguageModelV4Message): string {
  return createHash('sha1').update(JSON.stringify(message)).digest('base64url').slice(0, 10)
}
