import { randomUUID } from 'node:crypto'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { HeedError, type RunLike, type RunOutcome, type WorkflowLike } from 'heed'

/** What a workflow of DBOS gets here: its steps, and questions to a person. */
export interface DbosContext {
  runId: string
  /** Runs once and is recorded: after a crash its result is read. */
  step<Result>(name: string, work: () => Promise<Result>): Promise<Result>
  /** Waits for an answer, for weeks and across crashes. */
  ask(question: unknown): Promise<unknown>
}

export interface DbosWorkflowOptions<Input, Output> {
  id: string
  description?: string
  inputSchema?: WorkflowLike['inputSchema']
  run(input: Input, context: DbosContext): Promise<Output>
}

interface Answer {
  answerId: string
  data: unknown
}

/** How long a question waits, and how often a follower looks whether its run has ended meanwhile. */
const weekSeconds = 7 * 24 * 3_600
const lookSeconds = 1

/**
 * A workflow that runs on DBOS, as an agent of Heed calls it: the run of DBOS has the name of the call, so that a call that is repeated after
 * a crash follows it. Make it before `DBOS.launch()`.
 */
export function dbosWorkflow<Input, Output>(options: DbosWorkflowOptions<Input, Output>): WorkflowLike {
  const { id, description, inputSchema } = options
  const workflow = DBOS.registerWorkflow((input: Input, runId: string) => options.run(input, contextOf(runId)), { name: id })
  return {
    id,
    ...(description === undefined ? {} : { description }),
    ...(inputSchema === undefined ? {} : { inputSchema }),
    createRun: ({ runId }) => new DbosRun(`${id}/${runId}`, async (name, args) => {
      await DBOS.startWorkflow(workflow, { workflowID: name })(args as Input, runId)
    }),
  }
}

/** Each question is an event of the run, its answer a message to it, and that it was answered an event again. */
function contextOf(runId: string): DbosContext {
  let asked = 0
  return {
    runId,
    step: (name, work) => DBOS.runStep(work, { name }),
    async ask(question) {
      const nth = asked++
      await DBOS.setEvent(`question-${nth}`, { question })
      for (;;) {
        const answer = await DBOS.recv<Answer>(`answer-${nth}`, { timeoutSeconds: weekSeconds, pollingIntervalMs: 100 })
        if (!answer) continue
        await DBOS.setEvent(`answered-${nth}`, answer.answerId)
        return answer.data
      }
    },
  }
}

class DbosRun implements RunLike {
  readonly #name: string
  readonly #start: (name: string, input: unknown) => Promise<void>

  constructor(name: string, start: (name: string, input: unknown) => Promise<void>) {
    this.#name = name
    this.#start = start
  }

  /** DBOS starts a run of one name once. */
  async start(args: { inputData?: unknown } = {}): Promise<RunOutcome> {
    await this.#start(this.#name, args.inputData)
    return this.#settled()
  }

  /** The first answer that the run receives counts: it names it. */
  async resume(args: { resumeData?: unknown } = {}): Promise<RunOutcome> {
    const open = await this.#openQuestion()
    if (!open || (await this.status())?.status !== 'suspended') throw this.#notSuspended()
    const answer: Answer = { answerId: randomUUID(), data: args.resumeData }
    await DBOS.send(this.#name, answer, `answer-${open.nth}`, `${this.#name}/answer-${open.nth}`)
    let counted: string | null = null
    while (counted === null) counted = await DBOS.getEvent<string>(this.#name, `answered-${open.nth}`, lookSeconds)
    if (counted !== answer.answerId) throw this.#notSuspended()
    return this.#settled()
  }

  async cancel(): Promise<void> {
    const outcome = await this.status()
    if (outcome?.status === 'running' || outcome?.status === 'suspended') await DBOS.cancelWorkflow(this.#name)
  }

  async status(): Promise<RunOutcome | null> {
    const found = await DBOS.getWorkflowStatus(this.#name)
    if (!found) return null
    if (found.status === 'SUCCESS') return { status: 'success', result: found.output }
    if (found.status === 'CANCELLED') return { status: 'canceled' }
    if (found.status === 'ERROR' || found.status === 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') return { status: 'failed', error: found.error }
    const open = await this.#openQuestion()
    if (!open) return { status: 'running' }
    const path = `question-${open.nth}`
    return { status: 'suspended', suspended: [path], suspendPayload: { [path]: open.question } }
  }

  /** Waits for the end of the run, or for its next question. */
  async #settled(): Promise<RunOutcome> {
    for (;;) {
      const outcome = await this.status()
      if (outcome && outcome.status !== 'running') return outcome
      const next = `question-${await this.#answered()}`
      const ended = DBOS.getResult(this.#name, { timeoutSeconds: lookSeconds, pollingIntervalMs: 100 }).catch(() => null)
      await Promise.race([ended, DBOS.getEvent(this.#name, next, { timeoutSeconds: lookSeconds, pollingIntervalMs: 100 })])
    }
  }

  /** How many questions were answered. */
  async #answered(): Promise<number> {
    for (let nth = 0; ; nth++) if ((await DBOS.getEvent(this.#name, `answered-${nth}`, 0)) === null) return nth
  }

  async #openQuestion(): Promise<{ nth: number; question: unknown } | undefined> {
    const nth = await this.#answered()
    const asked = await DBOS.getEvent<{ question: unknown }>(this.#name, `question-${nth}`, 0)
    return asked ? { nth, question: asked.question } : undefined
  }

  #notSuspended(): HeedError {
    return new HeedError('run_not_suspended', `Run '${this.#name}' waits for no answer, or was answered already.`)
  }
}
