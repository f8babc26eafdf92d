import type { VoiceThread } from '../contract.ts'
import { Operation } from '../../tracing/operation.ts'
import { telemetryFor, type Telemetry } from '../../tracing/telemetry.ts'

/** The spans of a session: one for itself, and one for each turn, from its end to the first sound of the answer. */
export class SessionTrace {
  readonly #telemetry: Telemetry | undefined
  readonly #thread: VoiceThread
  readonly #session: Operation | undefined
  #turn: Operation | undefined

  constructor(thread: VoiceThread) {
    this.#thread = thread
    this.#telemetry = telemetryFor(thread.tracing)
    this.#session = this.#telemetry && this.#open(this.#telemetry, `voice_session ${thread.agentId}`, {})
  }

  /** What `work` calls is below the turn, or below the session where no turn is open. */
  within<T>(work: () => T): T {
    const operation = this.#turn ?? this.#session
    return operation ? operation.within(work) : work()
  }

  /** A turn has ended; its words are not known yet. */
  turnEnded(id: string): void {
    this.#turn?.end()
    this.#turn = this.#telemetry && this.#open(this.#telemetry, 'voice_turn', { 'heed.voice.turn': id })
  }

  /** The words of the turn are stored, or it had none: then no answer follows. */
  understood(hasWords: boolean, interrupted: boolean): void {
    this.#turn?.set({ 'heed.voice.words': hasWords, 'heed.voice.interrupted': interrupted })
    if (!hasWords) this.#endTurn()
  }

  /** The first sound of an answer is given to the player. */
  sounds(): void {
    this.#turn?.end(this.#telemetry?.voiceResponse, { 'gen_ai.agent.id': this.#thread.agentId })
    this.#turn = undefined
  }

  failed(error: unknown): void {
    ;(this.#turn ?? this.#session)?.event('exception', { 'exception.type': error instanceof Error ? error.name : '_OTHER' })
  }

  end(): void {
    this.#endTurn()
    this.#session?.end()
  }

  #endTurn(): void {
    this.#turn?.end()
    this.#turn = undefined
  }

  #open(telemetry: Telemetry, name: string, attributes: Record<string, string>): Operation {
    const { agentId, threadId, tracing } = this.#thread
    return new Operation(telemetry, {
      name,
      parent: this.#session?.context ?? telemetry.active(),
      attributes: { 'gen_ai.agent.id': agentId, 'gen_ai.conversation.id': threadId, ...attributes },
      options: tracing || {},
    })
  }
}
