import { checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type {
  AudioFormat, SpeakOptions, TurnOptions, Voice, VoiceSession, VoiceSessionEvent, VoiceSessionOptions, VoiceState, VoiceThread,
} from '../contract.ts'
import { SentenceCutter, type Sentence } from '../sentences.ts'
import { pcmType, rateOfPcm } from '../sound/media-type.ts'
import { readWav, type Samples } from '../sound/wav.ts'
import { EventQueue } from './event-queue.ts'
import { heardCharacters } from './heard.ts'
import { advance, idle, stateOf, type VoiceAction, type VoiceFacts, type VoiceInput } from './machine.ts'
import { SpeechQueue, type SpokenItem } from './speech-queue.ts'
import { TurnDetector } from './turn-detector.ts'

/** A message of the agent while it is spoken. */
interface SpokenMessage {
  readonly id: string
  text: string
  readonly cutter: SentenceCutter
  readonly items: SpokenItem[]
  /** Nothing of it is spoken any more. */
  muted: boolean
  /** The agent has written all of it. */
  ended: boolean
}

/** More turns than these are not read at a time: `write()` waits. */
const maxReading = 3
/** So many messages that were cut are known: their chunks may still arrive. */
const maxOver = 100

/** A session by a transcription model and a speech model: the thread is between them, and runs any agent. */
export class CascadeSession implements VoiceSession {
  readonly id: string
  readonly events = new EventQueue()
  readonly #voice: Voice
  readonly #thread: VoiceThread
  readonly #options: VoiceSessionOptions
  readonly #format: AudioFormat
  readonly #rate: number
  readonly #detector: TurnDetector
  readonly #speech: SpeechQueue
  readonly #closing = new AbortController()
  #facts: VoiceFacts = idle
  #runId: string | undefined
  /** The run has ended. While the sound of its answer is being made, the session is thinking all the same. */
  #runEnded = false
  /** The run is to be aborted as soon as it is known. */
  #cutWhenKnown = false
  readonly #openCalls = new Set<string>()
  /** Messages that are spoken, or may be cut. */
  readonly #messages = new Map<string, SpokenMessage>()
  #present: SpokenMessage | undefined
  /** The last messages that were cut. */
  readonly #over = new Set<string>()
  /** Cuts that wait for the end of their run. */
  readonly #unkept = new Map<string, { characters: number; ms: number }>()
  /** A player has reported how far it is: the clock is not asked any more. */
  #reports = false
  #turns = 0
  #reading = 0
  #read: PromiseWithResolvers<void> | undefined
  /** Work on the thread, in order: an abort, a cut of the message, then the words. */
  #work: Promise<void> = Promise.resolve()
  /** Turns are read in order. */
  #transcribing: Promise<void> = Promise.resolve()
  #watching: Promise<void> = Promise.resolve()
  #unsubscribe = () => {}

  static async open(voice: Voice, thread: VoiceThread, options: VoiceSessionOptions, format: AudioFormat): Promise<CascadeSession> {
    const session = new CascadeSession(voice, thread, options, format)
    const { stream, unsubscribe } = await thread.subscribe()
    session.#unsubscribe = unsubscribe
    session.#watching = session.#watch(stream)
    return session
  }

  private constructor(voice: Voice, thread: VoiceThread, options: VoiceSessionOptions, format: AudioFormat) {
    const { inputRate = 24_000, turn = {} } = options
    checkWhole('inputRate', inputRate, 4_000)
    this.#detector = new TurnDetector(inputRate, checkedTurn(turn))
    this.id = thread.newId()
    this.#voice = voice
    this.#thread = thread
    this.#options = options
    this.#format = format
    this.#rate = inputRate
    this.#speech = new SpeechQueue({
      clock: thread.clock,
      speak: (text, signal) => this.#speak(text, signal),
      begins: (item, text, rate) => this.#beginSentence(item, text, rate),
      samples: (item, audio) => this.#emit({ type: 'audio', itemId: item.id, atMs: Math.round(item.givenMs), audio }),
      room: () => this.events.room(),
      silent: () => this.#onSilence(),
    })
  }

  get state(): VoiceState {
    return stateOf(this.#facts)
  }

  async write(samples: Uint8Array): Promise<void> {
    if (!(samples instanceof Uint8Array)) throw refused('samples', 'bytes: samples of 16 bits')
    if (this.#closing.signal.aborted) throw new HeedError('closed', 'The session was closed. Open another one.')
    for (const event of this.#detector.push(samples)) {
      if (event.type === 'begin') this.#apply('speech')
      else this.#readTurn(event.pcm)
    }
    if (this.#reading >= maxReading) await (this.#read ??= Promise.withResolvers()).promise
  }

  beginTurn(): void {
    if (this.#detector.begin()) this.#apply('speech')
  }

  endTurn(): void {
    const pcm = this.#detector.end()
    if (pcm) this.#readTurn(pcm)
  }

  interrupt(): void {
    this.#apply('interrupt')
  }

  played(report: { itemId: string; ms: number }): void {
    checkNames('played()', report, ['itemId', 'ms'])
    const { itemId, ms } = report
    if (typeof ms !== 'number' || !(ms >= 0)) throw refused('ms', 'a number of milliseconds of at least 0')
    this.#reports = true
    for (const { items } of this.#messages.values()) {
      const item = items.find(({ id }) => id === itemId)
      // A player can't have played more than it was given.
      if (item) item.heardMs = Math.max(item.heardMs, Math.min(ms, item.givenMs))
    }
  }

  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort(new HeedError('closed', 'The session was closed.'))
      this.#speech.stop()
      this.#unsubscribe()
      if (this.#facts.cut) this.#keepHeard()
      this.#read?.resolve()
    }
    await Promise.all([this.#transcribing, this.#watching])
    await this.#work
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

  #readTurn(pcm: Uint8Array): void {
    const id = `${this.id}:${++this.#turns}`
    this.#reading++
    this.#transcribing = this.#transcribing.then(() => this.#transcribe(id, pcm))
  }

  async #transcribe(id: string, pcm: Uint8Array): Promise<void> {
    let text = ''
    try {
      if (!this.#closing.signal.aborted && pcm.length > 0) {
        text = (await this.#voice.listen(pcm, { mediaType: pcmType(this.#rate), abortSignal: this.#closing.signal })).trim()
      }
    } catch (error) {
      this.#report('a turn could not be read', error)
    }
    this.#reading--
    this.#read?.resolve()
    this.#read = undefined
    if (this.#closing.signal.aborted) return
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
      await this.#thread.send({ id, text, interrupted })
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
        this.#runId = chunk.runId
        this.#runEnded = false
        this.#openCalls.clear()
        this.#apply('run')
        if (this.#cutWhenKnown) this.#cutModel()
        return
      case 'step-start':
        if (this.#present && this.#present.id !== chunk.payload.messageId) this.#present.ended = true
        this.#present = this.#messageOf(chunk.payload.messageId)
        return
      case 'text-delta':
        return this.#say(chunk.payload.text)
      case 'text-end':
        return this.#present && this.#enqueue(this.#present, this.#present.cutter.end())
      case 'tool-call':
        this.#openCalls.add(chunk.payload.toolCallId)
        return
      case 'tool-result':
      case 'tool-error':
      case 'tool-output-denied':
        this.#openCalls.delete(chunk.payload.toolCallId)
        if (this.#cutWhenKnown) this.#cutModel()
        return
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

  #onRunEnd(runId: string): void {
    for (const [messageId, heard] of this.#unkept) this.#keep(messageId, heard)
    if (this.#present) this.#present.ended = true
    if (runId !== this.#runId) return
    this.#runId = undefined
    this.#runEnded = true
    if (this.#facts.sounding || !this.#speech.busy) this.#apply('run-end')
  }

  #messageOf(id: string): SpokenMessage {
    const known = this.#messages.get(id)
    if (known) return known
    // Messages that were spoken are over; only the present one is kept beside those that are still to be spoken.
    if (!this.#facts.sounding && !this.#facts.cut && !this.#speech.busy) this.#messages.clear()
    const muted = this.#facts.cut || this.#over.has(id)
    const message = { id, text: '', cutter: new SentenceCutter(), items: [], muted, ended: false }
    if (!this.#over.has(id)) this.#messages.set(id, message)
    return message
  }

  #say(delta: string): void {
    const message = this.#present
    if (!message) return
    message.text += delta
    this.#enqueue(message, message.cutter.push(delta))
  }

  #enqueue(message: SpokenMessage, sentences: readonly Sentence[]): void {
    if (message.muted || this.#closing.signal.aborted) return
    for (const sentence of sentences) {
      if (sentence.spoken === '') continue
      const id = `${message.id}:${message.items.length}`
      const item = { ...sentence, id, messageId: message.id, durationMs: Infinity, heardMs: 0, givenMs: 0, startsAt: undefined }
      message.items.push(item)
      this.#speech.add(item, sentence)
    }
  }

  async #speak(text: string, abortSignal: AbortSignal): Promise<Samples | undefined> {
    const { speaker, language } = this.#options
    try {
      const options: SpeakOptions = { format: this.#format, abortSignal }
      if (speaker !== undefined) options.speaker = speaker
      if (language !== undefined) options.language = language
      const audio = await this.#voice.speak(text, options)
      const pieces: Uint8Array[] = []
      for await (const piece of audio) pieces.push(piece)
      return samplesOf(Buffer.concat(pieces), audio.mediaType)
    } catch (error) {
      if (!abortSignal.aborted) this.#report('a sentence could not be spoken', error)
      return undefined
    }
  }

  #beginSentence({ id, messageId }: SpokenItem, text: string, rate: number): boolean {
    if (!this.#apply('sound').includes('play')) return false
    this.#emit({ type: 'sentence', itemId: id, messageId, text, rate })
    if (this.#runEnded) this.#apply('run-end')
    return true
  }

  #onSilence(): void {
    for (const { items } of this.#messages.values()) {
      for (const item of items) if (!this.#reports) item.heardMs = Math.max(item.heardMs, item.givenMs)
    }
    this.#apply('silence')
    if (this.#runEnded) this.#apply('run-end')
  }

  // Cutting

  #stopSound(): void {
    const now = this.#thread.clock.now()
    for (const message of this.#messages.values()) {
      message.muted = true
      for (const item of message.items) {
        const elapsed = item.startsAt === undefined ? 0 : Math.max(0, now - item.startsAt)
        if (!this.#reports) item.heardMs = Math.max(item.heardMs, Math.min(elapsed, item.givenMs))
      }
    }
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
    this.#inOrder('a run could not be cut', () => this.#thread.abort(runId))
  }

  #keepHeard(): void {
    for (const message of this.#messages.values()) {
      const { id, text, items, ended } = message
      this.#messages.delete(id)
      const characters = heardCharacters(text, items)
      if (ended && characters >= text.length) continue
      if (this.#over.add(id).size > maxOver) this.#over.delete([...this.#over][0] ?? '')
      const ms = Math.round(items.reduce((sum, item) => sum + Math.min(item.heardMs, item.durationMs), 0))
      this.#keep(id, { characters, ms }, text)
    }
  }

  #keep(messageId: string, heard: { characters: number; ms: number }, text?: string): void {
    this.#unkept.set(messageId, heard)
    this.#inOrder('a message could not be cut', async () => {
      if (!this.#unkept.has(messageId)) return
      const kept = await this.#thread.keepHeard(messageId, heard)
      if (kept !== 'active') this.#unkept.delete(messageId)
      if (kept === 'kept' && text !== undefined) this.#emit({ type: 'heard', messageId, text: text.slice(0, heard.characters) })
    })
  }

  #inOrder(what: string, work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error: unknown) => this.#report(what, error))
  }

  #report(what: string, thrown: unknown): void {
    if (this.#closing.signal.aborted) return
    const error = isHeedError(thrown) ? thrown : new HeedError('voice_failed', `${what}: ${describe(thrown)}`, { cause: thrown })
    this.#thread.logger.warn(`voice: ${what}`, { sessionId: this.id, code: error.code, error: error.message })
    this.#emit({ type: 'error', error })
  }
}

function samplesOf(bytes: Uint8Array, mediaType: string): Samples {
  const rate = rateOfPcm(mediaType)
  const samples = rate === undefined ? readWav(bytes) : { pcm: bytes.subarray(0, bytes.length - (bytes.length % 2)), rate }
  if (samples) return samples
  const message = `A session plays samples of 16 bits, and the model spoke ${mediaType}. Choose a model that speaks audio/pcm or audio/wav.`
  throw new HeedError('invalid_audio', message, { details: { mediaType } })
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
