import { checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type {
  RealtimeControls, TurnOptions, VoiceSession, VoiceSessionEvent, VoiceSessionOptions, VoiceState, VoiceThread,
} from '../contract.ts'
import type { Sentence } from '../sentences.ts'
import type { Ears, HeardTurn } from './ears.ts'
import { EventQueue } from './event-queue.ts'
import { advance, idle, stateOf, type VoiceAction, type VoiceFacts, type VoiceInput } from './machine.ts'
import type { ItemSound, Mouth } from './mouth.ts'
import { SessionTrace } from './session-trace.ts'
import { SpeechQueue, type MakeSound, type SpokenItem } from './speech-queue.ts'
import { SpokenMessages, type SpokenMessage } from './spoken-messages.ts'
import { TurnDetector, type TurnEvent } from './turn-detector.ts'

/** More turns than these are not read at a time: `write()` waits. */
const maxReading = 3

/** Makes what a session hears and speaks with. `closing` aborts when the session ends. */
export type SessionParts = (session: { rate: number; closing: AbortSignal }) => { ears: Ears; mouth: Mouth; realtime?: RealtimeControls }

/** A conversation on a thread: what the ears understand is sent to it, and what the agent writes on it is spoken by the mouth. */
export class ThreadSession implements VoiceSession {
  readonly id: string
  readonly events = new EventQueue()
  readonly realtime: RealtimeControls | undefined
  readonly #thread: VoiceThread
  readonly #ears: Ears
  readonly #mouth: Mouth
  readonly #detector: TurnDetector
  readonly #speech: SpeechQueue
  readonly #trace: SessionTrace
  readonly #closing = new AbortController()
  #facts: VoiceFacts = idle
  #runId: string | undefined
  /** The last run that was aborted: its chunks may still arrive. */
  #abortedRun: string | undefined
  /** The run has ended. While the sound of its answer is being made, the session is thinking all the same. */
  #runEnded = false
  /** The run is to be aborted as soon as it is known. */
  #cutWhenKnown = false
  readonly #openCalls = new Set<string>()
  readonly #messages = new SpokenMessages()
  /** The item whose text a model with a sound of its own writes now. */
  #voiced: SpokenItem | undefined
  /** Sounds that wait for their text. */
  readonly #held = new Map<string, PromiseWithResolvers<boolean>>()
  /** Cuts that wait for the end of their run. */
  readonly #unkept = new Map<string, { characters: number; ms: number }>()
  /** A player has reported how far it is: the clock is not asked any more. */
  #reports = false
  #turn: HeardTurn | undefined
  #turns = 0
  #reading = 0
  #read: PromiseWithResolvers<void> | undefined
  /** Work on the thread, in order: an abort, a cut of the message, then the words. */
  #work: Promise<void> = Promise.resolve()
  /** The words of turns are sent in order. */
  #transcribing: Promise<void> = Promise.resolve()
  #watching: Promise<void> = Promise.resolve()
  #unsubscribe = () => {}

  static async open(thread: VoiceThread, options: VoiceSessionOptions, parts: SessionParts): Promise<ThreadSession> {
    const session = new ThreadSession(thread, options, parts)
    try {
      const { stream, unsubscribe } = await thread.subscribe()
      session.#unsubscribe = unsubscribe
      session.#watching = session.#watch(stream)
    } catch (error) {
      await session.close()
      throw error
    }
    return session
  }

  private constructor(thread: VoiceThread, options: VoiceSessionOptions, parts: SessionParts) {
    const { inputRate = 24_000, turn = {} } = options
    checkWhole('inputRate', inputRate, 4_000)
    this.#detector = new TurnDetector(inputRate, checkedTurn(turn))
    this.id = thread.newId()
    this.#thread = thread
    const { ears, mouth, realtime } = parts({ rate: inputRate, closing: this.#closing.signal })
    this.#ears = ears
    this.#mouth = mouth
    this.realtime = realtime
    this.#trace = new SessionTrace(thread)
    this.#speech = new SpeechQueue({
      clock: thread.clock,
      begins: (item, rate) => this.#beginItem(item, rate),
      samples: (item, audio) => this.#emit({ type: 'audio', itemId: item.id, atMs: Math.round(item.givenMs), audio }),
      ends: (item, failure) => this.#endItem(item, failure),
      room: () => this.events.room() ?? thread.room?.(),
      silent: () => this.#onSilence(),
    })
  }

  get state(): VoiceState {
    return stateOf(this.#facts)
  }

  async write(samples: Uint8Array): Promise<void> {
    if (!(samples instanceof Uint8Array)) throw refused('samples', 'bytes: samples of 16 bits')
    if (this.#closing.signal.aborted) throw new HeedError('closed', 'The session was closed. Open another one.')
    this.#onTurn(this.#detector.push(samples))
    if (this.#reading >= maxReading) await (this.#read ??= Promise.withResolvers()).promise
  }

  beginTurn(): void {
    this.#onTurn(this.#detector.begin())
  }

  endTurn(): void {
    this.#onTurn(this.#detector.end())
  }

  interrupt(): void {
    this.#apply('interrupt')
  }

  played(report: { itemId: string; ms: number }): void {
    checkNames('played()', report, ['itemId', 'ms'])
    const { itemId, ms } = report
    if (typeof ms !== 'number' || !(ms >= 0)) throw refused('ms', 'a number of milliseconds of at least 0')
    this.#reports = true
    this.#messages.played(itemId, ms)
  }

  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort(new HeedError('closed', 'The session was closed.'))
      this.#speech.stop()
      for (const { resolve } of this.#held.values()) resolve(false)
      this.#unsubscribe()
      if (this.#facts.cut) this.#keepHeard()
      this.#read?.resolve()
      void this.#turn?.end().catch(() => {})
      this.#turn = undefined
    }
    await Promise.all([this.#transcribing, this.#watching])
    await this.#work
    this.#trace.end()
    this.events.close()
  }

  #emit(event: VoiceSessionEvent): void {
    this.events.push(event)
  }

  /** Advances the machine and does what follows. Returns the actions. */
  #apply(input: VoiceInput, words?: { id: string; text: string }): VoiceAction[] {
    const before = this.state
    const { cut } = this.#facts
    const { facts, actions } = advance(this.#facts, input)
    this.#facts = facts
    for (const action of actions) {
      if (action === 'stop-sound') this.#stopSound()
      else if (action === 'cut-model') this.#cutModel()
      else if (action === 'keep-heard') this.#keepHeard()
      else if (action === 'send' && words) this.#send(words, cut)
    }
    if (this.state !== before) this.#emit({ type: 'state', state: this.state })
    return actions
  }

  // The user

  #onTurn(events: readonly TurnEvent[]): void {
    for (const event of events) {
      if (event.type === 'begin') {
        this.#turn = this.#ears.begin((text) => this.#emit({ type: 'partial', text }))
        this.#apply('speech')
      } else if (event.type === 'samples') this.#trace.within(() => this.#turn?.write(event.pcm))
      else this.#endTurn()
    }
  }

  #endTurn(): void {
    const turn = this.#turn
    this.#turn = undefined
    if (!turn) return
    const id = `${this.id}:${++this.#turns}`
    this.#reading++
    this.#trace.turnEnded(id)
    const words = this.#trace.within(() => turn.end())
    // The words of earlier turns come first.
    words.catch(() => {})
    this.#transcribing = this.#transcribing.then(() => this.#understand(id, words))
  }

  async #understand(id: string, words: Promise<string>): Promise<void> {
    let text = ''
    try {
      text = await words
    } catch (error) {
      this.#report('a turn could not be read', error)
    }
    this.#reading--
    this.#read?.resolve()
    this.#read = undefined
    if (this.#closing.signal.aborted) return
    this.#trace.understood(text !== '', this.#facts.cut)
    if (text === '') this.#apply('no-words')
    else this.#apply('words', { id, text })
    // The user speaks on: what was just sent is answered together with what follows.
    if (this.#detector.inTurn) this.#apply('speech')
  }

  #send({ id, text }: { id: string; text: string }, interrupted: boolean): void {
    this.#runId = undefined
    this.#runEnded = false
    this.#cutWhenKnown = false
    this.#inOrder('words could not be stored', async () => {
      await this.#trace.within(() => this.#thread.send({ id, text, interrupted }))
      this.#emit({ type: 'transcript', id, text })
    })
  }

  // The agent

  async #watch(stream: AsyncIterable<Chunk>): Promise<void> {
    try {
      for await (const chunk of stream) this.#onChunk(chunk)
    } catch (error) {
      this.#report('the thread could not be read', error)
    }
    // Its Heed was closed.
    if (!this.#closing.signal.aborted) queueMicrotask(() => void this.close())
  }

  #onChunk(chunk: Chunk): void {
    switch (chunk.type) {
      case 'start':
        this.#openCalls.clear()
        return this.#beginRun(chunk.runId)
      case 'step-start':
        // A run that waited for a decision goes on without another start.
        if (this.#runId === undefined && chunk.runId !== this.#abortedRun) this.#beginRun(chunk.runId)
        return this.#beginMessage(chunk.payload.messageId)
      case 'text-start':
        return this.#beginText(chunk.payload.id)
      case 'text-delta':
        return this.#say(chunk.payload.text)
      case 'text-end':
        return this.#endText(chunk.payload.id)
      case 'tool-call':
      case 'tool-result':
      case 'tool-error':
      case 'tool-output-denied':
      case 'tool-call-approval':
      case 'tool-call-suspended':
        return this.#onTool(chunk.type, chunk.payload)
      case 'step-finish':
        if (chunk.payload.stepResult.reason === 'interrupted') this.#apply('overtaken')
        return
      case 'tripwire':
        this.#apply('overtaken')
        return
      case 'finish':
      case 'abort':
      case 'error':
        return this.#onRunEnd(chunk.runId)
      default:
    }
  }

  #beginRun(runId: string): void {
    this.#runId = runId
    this.#runEnded = false
    this.#apply('run')
    if (this.#cutWhenKnown) this.#cutModel()
  }

  #onTool(type: string, { toolCallId, toolName }: { toolCallId: string; toolName: string }): void {
    const state = toolStates[type] ?? 'done'
    this.#emit({ type: 'tool', toolCallId, toolName, state })
    if (state === 'running') {
      this.#openCalls.add(toolCallId)
      return
    }
    this.#openCalls.delete(toolCallId)
    if (state !== 'waiting') {
      if (this.#cutWhenKnown) this.#cutModel()
      return
    }
    // A run that waits for a decision has ended until then.
    if (this.#openCalls.size === 0) this.#endRun()
  }

  #onRunEnd(runId: string): void {
    for (const [messageId, heard] of this.#unkept) this.#keep(messageId, heard)
    this.#messages.end()
    if (runId === this.#runId) this.#endRun()
  }

  #endRun(): void {
    this.#runId = undefined
    this.#runEnded = true
    if (this.#facts.sounding || !this.#speech.busy) this.#apply('run-end')
  }

  #beginMessage(messageId: string): void {
    const { sounding, cut } = this.#facts
    this.#messages.begin(messageId, { isIdle: !sounding && !cut && !this.#speech.busy, muted: cut })
  }

  /** A text begins. Where its model makes its sound too, it is one item, whose words come with the sound. */
  #beginText(textId: string): void {
    const message = this.#messages.present
    const sound = message && this.#mouth.soundOf?.(textId)
    this.#voiced = undefined
    if (!message || !sound || message.muted || this.#closing.signal.aborted) return
    const at = message.text.length
    const item = this.#messages.addItem(message, { start: at, end: at, spoken: '' }, textId)
    this.#voiced = item
    this.#speech.add(item, this.#voicedSound(item, sound))
  }

  /** Where processors may change or reject what the agent says, its sound waits until they have passed the text on unchanged. */
  #voicedSound(item: SpokenItem, sound: ItemSound): MakeSound {
    if (!this.#thread.checksOutput) return async () => sound
    const passed = Promise.withResolvers<boolean>()
    this.#held.set(item.id, passed)
    return async () => ((await passed.promise) ? sound : undefined)
  }

  #say(delta: string): void {
    const message = this.#messages.present
    if (!message) return
    message.text += delta
    const item = this.#voiced
    if (!item) return this.#enqueue(message, message.cutter.push(delta))
    item.end += delta.length
    item.spoken += delta
    if (!message.muted && item.begun) this.#emit({ type: 'caption', itemId: item.id, text: delta })
  }

  #endText(textId: string): void {
    const message = this.#messages.present
    const item = this.#voiced
    this.#voiced = undefined
    if (!item) return message && this.#enqueue(message, message.cutter.end())
    const held = this.#held.get(textId)
    this.#held.delete(textId)
    held?.resolve(this.#mouth.saidBy?.(textId) === item.spoken)
  }

  #enqueue(message: SpokenMessage, sentences: readonly Sentence[]): void {
    const speak = this.#mouth.speak?.bind(this.#mouth)
    if (!speak || message.muted || this.#closing.signal.aborted) return
    for (const sentence of sentences) {
      if (sentence.spoken === '') continue
      this.#speech.add(this.#messages.addItem(message, sentence), async (signal) => {
        try {
          return await this.#trace.within(() => speak(sentence.spoken, signal))
        } catch (error) {
          if (!signal.aborted) this.#report('a sentence could not be spoken', error)
          return undefined
        }
      })
    }
  }

  #beginItem(item: SpokenItem, rate: number): boolean {
    if (!this.#apply('sound').includes('play')) return false
    this.#trace.sounds()
    // Words that come later are captions.
    item.begun = true
    this.#emit({ type: 'sentence', itemId: item.id, messageId: item.messageId, text: item.spoken, rate })
    if (this.#runEnded) this.#apply('run-end')
    return true
  }

  #endItem(item: SpokenItem, failure: unknown): void {
    if (failure !== undefined) this.#report('a sentence could not be spoken to its end', failure)
    this.#emit({ type: 'item-end', itemId: item.id, ms: Math.round(item.givenMs) })
  }

  #onSilence(): void {
    if (!this.#reports) this.#messages.playedAll()
    this.#apply('silence')
    if (this.#runEnded) this.#apply('run-end')
  }

  // Cutting

  #stopSound(): void {
    this.#messages.mute(this.#reports ? undefined : this.#thread.clock.now())
    this.#speech.stop()
    this.#emit({ type: 'clear' })
  }

  /** Aborts the run, unless a tool works: what it does is not undone by an abort. Then the run is aborted after the tool. */
  #cutModel(): void {
    if (this.#runEnded) return
    const runId = this.#runId
    this.#cutWhenKnown = runId === undefined || this.#openCalls.size > 0
    if (this.#cutWhenKnown || runId === undefined) return
    this.#runId = undefined
    this.#abortedRun = runId
    this.#inOrder('a run could not be cut', () => this.#thread.abort(runId))
  }

  #keepHeard(): void {
    for (const { messageId, characters, ms, text, cut } of this.#messages.takeHeard()) {
      for (const { id, heardMs } of cut) this.#mouth.truncate?.(id, Math.round(heardMs))
      this.#keep(messageId, { characters, ms }, text)
    }
  }

  #keep(messageId: string, heard: { characters: number; ms: number }, text?: string): void {
    this.#unkept.set(messageId, heard)
    this.#inOrder('a message could not be cut', async () => {
      if (!this.#unkept.has(messageId)) return
      const kept = await this.#thread.keepHeard(messageId, heard)
      if (kept !== 'active') this.#unkept.delete(messageId)
      if (kept === 'kept' && text !== undefined) this.#emit({ type: 'heard', messageId, text })
    })
  }

  #inOrder(what: string, work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error: unknown) => this.#report(what, error))
  }

  #report(what: string, thrown: unknown): void {
    if (this.#closing.signal.aborted) return
    const error = isHeedError(thrown) ? thrown : new HeedError('voice_failed', `${what}: ${describe(thrown)}`, { cause: thrown })
    this.#thread.logger.warn(`voice: ${what}`, { sessionId: this.id, code: error.code, error: error.message })
    this.#trace.failed(error)
    this.#emit({ type: 'error', error })
  }
}

const toolStates: Record<string, 'running' | 'waiting' | 'done' | 'failed'> = {
  'tool-call': 'running', 'tool-result': 'done', 'tool-error': 'failed', 'tool-output-denied': 'failed', 'tool-call-approval': 'waiting',
  'tool-call-suspended': 'waiting',
}

function checkedTurn(turn: TurnOptions): Required<TurnOptions> {
  checkNames('turn', turn, ['detect', 'level', 'speechMs', 'silenceMs', 'maxMs'])
  const { detect = 'energy', level = 0.02, speechMs = 120, silenceMs = 600, maxMs = 60_000 } = turn
  if (!['energy', 'caller'].includes(detect)) throw refused('turn.detect', "'energy' or 'caller'")
  if (typeof level !== 'number' || !(level > 0 && level <= 1)) throw refused('turn.level', 'a number above 0 and up to 1')
  checkWhole('turn.speechMs', speechMs, 1)
  checkWhole('turn.silenceMs', silenceMs, 1)
  checkWhole('turn.maxMs', maxMs, 1)
  return { detect, level, speechMs, silenceMs, maxMs }
}
