import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamResult } from '@ai-sdk/provider'
import { withTimeout } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { VoiceThread } from '../contract.ts'
import type { Ears, HeardTurn } from '../session/ears.ts'
import type { ItemSound, Mouth } from '../session/mouth.ts'
import { RealtimeLink, type RealtimeModel, type ServerEvent, type SessionConfig } from './link.ts'
import { RealtimeAnswer, type VoicedItem } from './realtime-answers.ts'
import { SpokenContext } from './spoken-context.ts'

/** How a realtime model hears and speaks. */
export interface RealtimeSettings {
  inputRate: number
  speaker?: string | undefined
  language?: string | undefined
  /** The model that writes down what the user says. */
  transcription?: { model?: string; prompt?: string } | undefined
  providerOptions?: Record<string, unknown> | undefined
}

/** Samples a second of what the model says. */
const outputRate = 24_000
/** The words of a turn may take so long. */
const wordsMs = 30_000
/** An answer that was cut ends within this time, or the connection does. */
const settleMs = 5_000
/** The last items of the model are known: they may be cut, or are still to be played. */
const maxItems = 50
/** The longest sound of a turn that is kept for another connection. */
const maxTurnBytes = 10_000_000

interface WaitingTurn {
  pieces: Uint8Array[]
  bytes: number
  isCommitted: boolean
  itemId: string | undefined
  words: PromiseWithResolvers<string>
}

/**
 * A realtime model as a session uses it: its ears, its mouth, and the language model that answers on the thread. Runs call it as any
 * language model, so that tools, approvals, signals, processors and storage are those of every run; only the sound goes another way.
 */
export class RealtimeVoice implements Ears, Mouth {
  readonly model: LanguageModelV4
  readonly #realtime: RealtimeModel
  readonly #thread: Pick<VoiceThread, 'clock' | 'logger'>
  #settings: RealtimeSettings
  readonly #context = new SpokenContext()
  readonly #items = new Map<string, VoicedItem>()
  #link: RealtimeLink | undefined
  #opening: Promise<RealtimeLink> | undefined
  /** What the connection was last set to. */
  #config = ''
  #answer: RealtimeAnswer | undefined
  /** Turns whose words are not known, oldest first. */
  #turns: WaitingTurn[] = []
  #isReleased = false

  constructor(realtime: RealtimeModel, thread: Pick<VoiceThread, 'clock' | 'logger'>, settings: RealtimeSettings) {
    this.#realtime = realtime
    this.#thread = thread
    this.#settings = settings
    this.model = {
      specificationVersion: 'v4', provider: realtime.provider, modelId: realtime.modelId, supportedUrls: {},
      doStream: (options) => this.#stream(options),
      doGenerate: async () => {
        throw new HeedError('unsupported_option', `${realtime.provider}/${realtime.modelId} only streams.`)
      },
    }
  }

  /** Opens the connection, so that a key that is wrong is an error of the session and not of its first turn. */
  async open(): Promise<void> {
    await this.#connected()
  }

  /** The session is over. A run that goes on without it is answered as text. */
  release(): void {
    this.#isReleased = true
    for (const { words } of this.#turns) words.reject(new HeedError('closed', 'The session was closed.'))
    this.#turns = []
    this.#closeIfIdle()
  }

  /** Changes how the model hears and speaks, from its next answer on. */
  update(settings: Partial<RealtimeSettings>): void {
    this.#settings = { ...this.#settings, ...settings }
  }

  // Ears

  begin(): HeardTurn {
    const turn: WaitingTurn = { pieces: [], bytes: 0, isCommitted: false, itemId: undefined, words: Promise.withResolvers() }
    turn.words.promise.catch(() => {})
    return {
      write: (pcm) => this.#hear(turn, pcm),
      end: async () => {
        if (turn.bytes === 0) return ''
        if (turn.bytes > maxTurnBytes) return turn.words.promise
        turn.isCommitted = true
        if (this.#link?.isOpen) this.#link.send({ type: 'input-audio-commit' })
        // A connection that was lost since the last sound is opened again, and gets the turn with its end.
        else if (!this.#isReleased) this.#connected().catch((error: unknown) => turn.words.reject(error))
        const missing = 'The model has not written down what the user said.'
        const late = () => turn.words.reject(new HeedError('provider_error', missing, { retryable: true }))
        await withTimeout(this.#thread.clock, wordsMs, turn.words.promise.catch(() => {}), late)
        this.#turns = this.#turns.filter((one) => one !== turn)
        const words = (await turn.words.promise).trim()
        if (words !== '') this.#context.addSpoken(words)
        return words
      },
    }
  }

  #hear(turn: WaitingTurn, pcm: Uint8Array): void {
    turn.bytes += pcm.length
    if (turn.bytes > maxTurnBytes) return this.#refuseTurn(turn)
    if (!this.#turns.includes(turn)) this.#turns.push(turn)
    turn.pieces.push(pcm)
    if (this.#link?.isOpen) this.#append(this.#link, pcm)
    // A connection that was lost is opened again, and gets the turn from its begin.
    else if (!this.#isReleased) this.#connected().catch((error: unknown) => turn.words.reject(error))
  }

  /** Its sound is kept no longer, and the model forgets what it has of it. */
  #refuseTurn(turn: WaitingTurn): void {
    if (this.#turns.includes(turn)) this.#link?.send({ type: 'input-audio-clear' })
    turn.pieces = []
    this.#turns = this.#turns.filter((one) => one !== turn)
    const message = `A turn has at most ${maxTurnBytes} bytes of sound. End it earlier: turn.maxMs.`
    turn.words.reject(new HeedError('too_large', message, { details: { bytes: turn.bytes } }))
  }

  #append(link: RealtimeLink, pcm: Uint8Array): void {
    link.send({ type: 'input-audio-append', audio: Buffer.from(pcm).toString('base64') })
  }

  // Mouth

  soundOf(textId: string): ItemSound | undefined {
    const item = this.#items.get(textId)
    return item && { rate: outputRate, samples: item.samples }
  }

  saidBy(textId: string): string | undefined {
    return this.#items.get(textId)?.text
  }

  truncate(textId: string, ms: number): void {
    const item = this.#items.get(textId)
    if (!item) return
    this.#context.cut(textId)
    const saidMs = Math.floor((item.samples.bytes / 2 / outputRate) * 1_000)
    this.#link?.send({ type: 'conversation-item-truncate', itemId: textId, contentIndex: 0, audioEndMs: Math.min(ms, saidMs) })
  }

  // The language model

  async #stream(options: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> {
    await this.#settled()
    const prompt = options.prompt.filter(({ role }) => role !== 'system')
    const config = this.#configOf(options)
    let link = await this.#connected(config)
    options.abortSignal?.throwIfAborted()
    if (JSON.stringify(config) !== this.#config) this.#configure(link, config)
    let change = this.#context.take(prompt)
    if (change.restart) {
      link.close()
      this.#lose()
      link = await this.#connected(config)
      change = this.#context.take(prompt)
    }
    if (!change.restart) for (const event of change.events) link.send(event)
    const answer = this.#begin(link, options.abortSignal)
    answer.write({ type: 'stream-start', warnings: unsupported.flatMap((feature) => warningOf(options, feature)) })
    link.send({ type: 'response-create' })
    return { stream: answer.stream }
  }

  #begin(link: RealtimeLink, signal: AbortSignal | undefined): RealtimeAnswer {
    const answer: RealtimeAnswer = new RealtimeAnswer({
      onItem: (item) => this.#addItem(item),
      onCut: () => link.send({ type: 'response-cancel' }),
    })
    this.#answer = answer
    const onAbort = () => {
      void answer.stream.cancel().catch(() => {})
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    void answer.ended.then(() => {
      signal?.removeEventListener('abort', onAbort)
      const { text, calls, items, isCut } = answer
      this.#context.addAnswer({ text, calls, items: items.map(({ id }) => id), cut: isCut })
      if (this.#answer === answer) this.#answer = undefined
      this.#closeIfIdle()
    })
    return answer
  }

  #addItem(item: VoicedItem): void {
    this.#items.set(item.id, item)
    const [oldest] = this.#items.size > maxItems ? this.#items.keys() : []
    if (oldest !== undefined) this.#items.delete(oldest)
  }

  /** The model makes one answer at a time: one that was cut has to end first. */
  async #settled(): Promise<void> {
    const answer = this.#answer
    if (!answer) return
    await withTimeout(this.#thread.clock, settleMs, answer.ended, () => {
      this.#link?.close()
      answer.fail(new HeedError('stream_broken', 'An answer that was cut did not end.', { retryable: true }))
      this.#lose()
    })
  }

  #configOf({ prompt, tools = [] }: LanguageModelV4CallOptions): SessionConfig {
    const system = prompt.flatMap((message) => (message.role === 'system' ? message.content : []))
    const functions = tools.flatMap((tool) => (tool.type === 'function' ? tool : []))
    return {
      ...this.#baseConfig(),
      instructions: system.join('\n\n'),
      tools: functions.map(({ name, description, inputSchema: parameters }) => ({
        type: 'function' as const, name, ...(description === undefined ? {} : { description }), parameters,
      })),
    }
  }

  #baseConfig(): SessionConfig {
    const { inputRate, speaker, language, transcription = {}, providerOptions } = this.#settings
    return {
      outputModalities: [this.#isReleased ? 'text' : 'audio'],
      inputAudioFormat: { type: 'audio/pcm', rate: inputRate },
      inputAudioTranscription: { ...transcription, ...(language === undefined ? {} : { language }) },
      outputAudioFormat: { type: 'audio/pcm', rate: outputRate },
      // The session finds turns itself, so that a tool and a guardrail come between the words and the answer.
      turnDetection: { type: 'disabled' },
      ...(speaker === undefined ? {} : { voice: speaker }),
      ...(providerOptions ? { providerOptions } : {}),
    }
  }

  #configure(link: RealtimeLink, config: SessionConfig): void {
    this.#config = JSON.stringify(config)
    link.send({ type: 'session-update', config })
  }

  // The connection

  #connected(config: SessionConfig = this.#baseConfig()): Promise<RealtimeLink> {
    if (this.#link?.isOpen) return Promise.resolve(this.#link)
    this.#opening ??= this.#connect(config).finally(() => (this.#opening = undefined))
    return this.#opening
  }

  async #connect(config: SessionConfig): Promise<RealtimeLink> {
    const link: RealtimeLink = new RealtimeLink(this.#realtime, {
      event: (event) => {
        if (this.#link === link) this.#onEvent(event)
      },
      lost: (error) => {
        if (this.#link === link) this.#onLost(error)
      },
    })
    this.#link = link
    this.#context.forget()
    this.#config = JSON.stringify(config)
    await link.open(config, this.#thread.clock)
    for (const turn of this.#turns) {
      turn.itemId = undefined
      for (const pcm of turn.pieces) this.#append(link, pcm)
      if (turn.isCommitted) link.send({ type: 'input-audio-commit' })
    }
    return link
  }

  #onLost(reason: HeedError): void {
    this.#thread.logger.warn('voice: the connection of a realtime model was lost', { error: reason.message })
    this.#lose()
    this.#answer?.fail(reason)
    // Words that were being written down are asked for again.
    if (this.#turns.some(({ isCommitted }) => isCommitted) && !this.#isReleased) {
      this.#connected().catch((failure: unknown) => {
        for (const { words } of this.#turns) words.reject(failure)
      })
    }
  }

  #lose(): void {
    this.#link = undefined
    this.#context.forget()
  }

  #closeIfIdle(): void {
    if (!this.#isReleased || this.#answer) return
    this.#link?.close()
    this.#link = undefined
  }

  #onEvent(event: ServerEvent): void {
    switch (event.type) {
      case 'audio-committed': {
        const turn = this.#turns.find(({ isCommitted, itemId }) => isCommitted && itemId === undefined)
        if (turn) turn.itemId = event.itemId
        return
      }
      case 'input-transcription-completed':
        return this.#understood(event.itemId, (words) => words.resolve(event.transcript))
      case 'custom':
        return this.#onCustom(event)
      case 'error':
        if (!this.#onRefusedTurn(event)) this.#answer?.take(event)
        return this.#thread.logger.warn('voice: a realtime model reported an error', { code: event.code, error: event.message })
      default:
        this.#answer?.take(event)
    }
  }

  #understood(itemId: string, settle: (words: PromiseWithResolvers<string>) => void): void {
    const turn = this.#turns.find((one) => one.itemId === itemId)
    if (!turn) return
    this.#turns.splice(this.#turns.indexOf(turn), 1)
    settle(turn.words)
  }

  /** The interface has no event for words that could not be written down. */
  #onCustom({ rawType, raw }: Extract<ServerEvent, { type: 'custom' }>): void {
    if (!rawType.endsWith('input_audio_transcription.failed')) return
    const { item_id: itemId, error } = Object(raw) as { item_id?: string; error?: { message?: string } }
    const message = error?.message ?? 'The words could not be written down.'
    this.#understood(itemId ?? '', (words) => words.reject(new HeedError('provider_error', message)))
  }

  /** A turn that is too short for the provider has no words. */
  #onRefusedTurn({ code }: Extract<ServerEvent, { type: 'error' }>): boolean {
    if (code !== 'input_audio_buffer_commit_empty') return false
    const turn = this.#turns.find(({ isCommitted, itemId }) => isCommitted && itemId === undefined)
    if (!turn) return false
    this.#turns.splice(this.#turns.indexOf(turn), 1)
    turn.words.resolve('')
    return true
  }
}

/** Settings of a call that realtime models don't have. */
const unsupported = [
  'maxOutputTokens', 'temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'stopSequences', 'seed', 'toolChoice',
  'responseFormat',
] as const

function warningOf(options: LanguageModelV4CallOptions, feature: (typeof unsupported)[number]) {
  const value = options[feature]
  const isDefault = value === undefined || (feature === 'toolChoice' && options.toolChoice?.type === 'auto')
  return isDefault ? [] : [{ type: 'unsupported' as const, feature }]
}

