import type { Agent } from '../../../src/index.ts'
import { isHeedError } from '../../../src/base/errors.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Chance } from '../../../src/store/conformance/fixture.ts'
import type { Journal, JournalWriter } from '../journal.ts'
import { pause } from '../restless-model.ts'
import type { Click, Form, Shown, Told } from './notes.ts'
import { levels, resourceId, type Level, type Office } from './office.ts'

/** Ann approves more often than not, Bob declines. */
const names = ['ann', 'bob'] as const
type Name = (typeof names)[number]

interface DecidersOptions {
  office: Office
  chance: Chance
  journal: JournalWriter
  /** Names the decisions of this process, and its deciders, who are the same in its next life. */
  name: string
  place: number
  /** What earlier lives of this process left behind. */
  before: readonly Journal[]
  http: Handler
  keys: Readonly<Record<Name, string>>
  /** One of so many looks decides a request. */
  patience: number
  /** One of so many looks aborts the run instead; never where it is 0. */
  aborts: number
  /** A decision was accepted. */
  onAccepted(): void
}

/** A call that waits, on one of the threads that show it. */
interface Waiting {
  level: Level
  thread: string
  run: string
  shown: Shown
}

/** Two deciders. Each lists the suspended calls of every thread and decides them: at once, twice, and again where an answer was lost. */
export class Deciders {
  readonly #options: DecidersOptions
  #clicks = 0
  #stopped = false
  readonly #underWay = new Set<Promise<void>>()

  constructor(options: DecidersOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { chance, before } = this.#options
    for (const click of unanswered(before)) this.#begin(this.#click(click))
    while (!this.#stopped) {
      for (const waiting of await this.#look()) if (!this.#stopped && chance.below(this.#options.patience) === 0) this.#begin(this.#face(waiting))
      await pause(8 + chance.below(20))
    }
    await Promise.all(this.#underWay)
  }

  stop(): void {
    this.#stopped = true
  }

  #begin(work: Promise<void>): void {
    this.#underWay.add(work)
    void work.finally(() => this.#underWay.delete(work))
  }

  async #look(): Promise<Waiting[]> {
    const { office } = this.#options
    try {
      const found = await Promise.all(levels.map(async (level) => waitingIn(level, office[level])))
      return found.flat()
    } catch (error) {
      this.#unlessClosed(error, 'listSuspendedRuns')
      return []
    }
  }

  async #face(waiting: Waiting): Promise<void> {
    const { chance, aborts } = this.#options
    if (aborts > 0 && waiting.level === 'chief' && chance.below(aborts) === 0) return this.#abort(waiting)
    const who = chance.pick(names)
    const other = who === 'ann' ? 'bob' : 'ann'
    switch (chance.below(6)) {
      case 0: {
        // Both at once, each as they would.
        const [mine, theirs] = [this.#drawn(waiting, who), this.#drawn(waiting, other)]
        await Promise.all([this.#click(mine), this.#click(theirs)])
        break
      }
      case 1: {
        // A second click on what was shown, at once or when the call asks again.
        await this.#click(this.#drawn(waiting, who, 'request'))
        if (chance.below(4) > 0) await this.#asksAgain(waiting)
        await this.#click(this.#drawn(waiting, who, chance.pick(['call', 'call', 'nothing', 'request'])))
        break
      }
      case 2: {
        const click = this.#drawn(waiting, who)
        await Promise.all([this.#click(click), this.#click(click)])
        break
      }
      default:
        await this.#click(this.#drawn(waiting, who))
    }
  }

  /** Resolves when the call shows another request, or has not for a while. */
  async #asksAgain({ shown, thread }: Waiting): Promise<void> {
    for (let looks = 0; looks < 30 && !this.#stopped; looks++) {
      const found = await this.#look()
      if (found.some((other) => other.thread === thread && other.shown.toolCallId === shown.toolCallId && other.shown.approvalId !== shown.approvalId)) return
      await pause(10)
    }
  }

  #drawn({ level, thread, run, shown }: Waiting, who: Name, form?: Form): Click {
    const { chance, name, place } = this.#options
    const click = `${name}.${who}.${this.#clicks++}`
    const drawn = form ?? chance.pick<Form>(['request', 'request', 'request', 'call', 'call', 'nothing', 'stream', 'digest', 'http', 'http', 'http generate'])
    const approves = chance.below(4) > (who === 'ann' ? 0 : 2)
    const about = { click, decider: `${who}@${place}`, form: drawn, agent: level, thread, run, shown }
    if (shown.kind === 'approval' || !approves) return { ...about, approved: approves }
    return { ...about, data: { click, ...(shown.asks === 1 && chance.below(3) === 0 ? { again: true } : {}) } }
  }

  async #click(click: Click): Promise<void> {
    const { journal, onAccepted } = this.#options
    journal.write({ note: 'decides', ...click })
    try {
      const answer = await this.#send(click)
      journal.write({ note: 'decided', click: click.click, ...answer })
      onAccepted()
    } catch (error) {
      if (!isRefusal(error)) throw error
      const { code, details } = error
      journal.write({ note: 'undecided', click: click.click, code, ...refusalOf(details) })
    }
  }

  async #send(click: Click): Promise<{ told?: Told; run?: string; call?: string }> {
    const { office } = this.#options
    const { form, approved, data, decider: by, shown, run, thread: threadId, click: id } = click
    const agent = office[click.agent as Level]
    if (form === 'http' || form === 'http generate') return this.#post(click)
    const named = namesOf(form, shown)
    if (form === 'stream') {
      const target = { runId: run, resourceId, by, ...named }
      const stream = await (data ? agent.resumeStream({ ...data }, target) : approved ? agent.approveToolCall(target) : agent.declineToolCall({ ...target, reason: id }))
      stream.result.catch(() => {})
      return { run: stream.runId }
    }
    const target = { id, threadId, resourceId, by, ...named }
    const answer = data
      ? await agent.sendStreamResume({ ...target, resumeData: { ...data } })
      : await agent.sendToolApproval({ ...target, approved: approved === true, ...(approved ? {} : { declineContext: { reason: id } }) })
    return { told: { ...answer.decided, at: answer.decided.at.getTime() }, run: answer.runId, call: answer.toolCallId }
  }

  async #post({ form, agent, thread, run, shown, approved, data, decider, click }: Click): Promise<{ told?: Told; run?: string; call?: string }> {
    const { http, keys } = this.#options
    const atEnd = form === 'http generate' && data === undefined
    const named = { approvalId: shown.approvalId, digest: shown.digest }
    const [path, body] = atEnd
      ? [approved ? 'approve-tool-call-generate' : 'decline-tool-call-generate', { runId: run, ...named, ...(approved ? {} : { reason: click }) }]
      : data
        ? ['send-stream-resume', { threadId: thread, resourceId, ...named, resumeData: data }]
        : ['send-tool-approval', { threadId: thread, resourceId, ...named, approved, ...(approved ? {} : { declineContext: { reason: click } }) }]
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${keys[decider.startsWith('ann') ? 'ann' : 'bob']}`, ...(atEnd ? {} : { 'idempotency-key': click }) }
    const response = await http(new Request(`http://office/api/agents/${agent}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) }))
    const answer = (await response.json()) as { code?: string; details?: unknown; decided?: Told & { at: string }; runId?: string; toolCallId?: string }
    if (!response.ok) throw new Refused(answer.code ?? `status ${response.status}`, answer.details)
    if (atEnd) return { run }
    return {
      ...(answer.decided ? { told: toldOf(answer.decided) } : {}),
      ...(answer.runId === undefined ? {} : { run: answer.runId }), ...(answer.toolCallId === undefined ? {} : { call: answer.toolCallId }),
    }
  }

  async #abort({ thread, run }: Waiting): Promise<void> {
    const { office, journal } = this.#options
    journal.write({ note: 'aborts', thread, run })
    try {
      const { aborted } = await office.chief.abortRun({ threadId: thread, resourceId, expectedRunId: run })
      journal.write({ note: 'aborted', thread, run, aborted })
    } catch (error) {
      this.#unlessClosed(error, 'abortRun')
    }
  }

  #unlessClosed(error: unknown, what: string): void {
    if (!isHeedError(error)) throw error
    if (error.code !== 'closed') this.#options.journal.write({ note: 'trouble', what: `${what}: ${error.code} ${error.message}` })
  }
}

/** A refusal that came over HTTP. */
class Refused extends Error {
  readonly code: string
  readonly details: unknown

  constructor(code: string, details: unknown) {
    super(code)
    this.code = code
    this.details = details
  }
}

function isRefusal(error: unknown): error is { code: string; details?: unknown } {
  return error instanceof Refused || isHeedError(error)
}

function refusalOf(details: unknown): { field?: string; told?: Told } {
  const { field, decided } = (details ?? {}) as { field?: string; decided?: Omit<Told, 'at'> & { at: string } }
  return { ...(field === undefined ? {} : { field }), ...(decided ? { told: toldOf(decided) } : {}) }
}

function toldOf(decided: Omit<Told, 'at'> & { at: string | number }): Told {
  return { ...decided, at: new Date(decided.at).getTime() }
}

function namesOf(form: Form, { approvalId, toolCallId, digest }: Shown): { approvalId?: string; toolCallId?: string; digest?: string } {
  switch (form) {
    case 'call':
      return { toolCallId }
    case 'nothing':
      return {}
    case 'digest':
      return { approvalId, digest: `${digest}?` }
    default:
      return { approvalId, digest }
  }
}

async function waitingIn(level: Level, agent: Agent): Promise<Waiting[]> {
  const { runs } = await agent.listSuspendedRuns({ resourceId })
  return runs.flatMap(({ runId: run, threadId: thread, toolCalls }) => toolCalls.map(({ toolCallId, requiresApproval, suspendPayload, request }): Waiting => ({
    level, thread, run,
    shown: {
      approvalId: request?.id ?? '', toolCallId, tool: request?.toolName ?? '', args: request?.args, path: request?.path ?? [], digest: request?.digest ?? '',
      kind: requiresApproval ? 'approval' : 'suspend', ...(requiresApproval ? {} : { asks: (suspendPayload as { asks?: number } | undefined)?.asks ?? 0 }),
    },
  })))
}

/** Decisions to which earlier lives have no answer, by methods that know a decision by its id: their deciders decide again. */
function unanswered(journals: readonly Journal[]): Click[] {
  const open = new Map<string, Click>()
  for (const { notes } of journals) {
    for (const note of notes) {
      if (note.note === 'decides' && note.form !== 'stream' && note.form !== 'http generate') {
        const { note: _, at: __, ...click } = note
        open.set(click.click, click)
      }
      // A process that ends does not say what became of it.
      if (note.note === 'decided' || (note.note === 'undecided' && note.code !== 'closed')) open.delete(note.click)
    }
  }
  return [...open.values()]
}
