import { checkName, checkNames } from '../../base/arguments.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { answeringKey, type Site } from '../../heed/site.ts'
import type { RequestContext } from '../../run/request-context.ts'
import type { MessageInput } from '../../signals/signal.ts'
import type { SendOptions } from '../../thread/send/options.ts'
import type { SendReceipt } from '../../thread/send/receipt.ts'
import type { SubscribeOptions, AgentThreadSubscription } from '../../thread/stream/subscription.ts'
import type {
  AnsweringModel, AudioInput, ListenOptions, SpeakOptions, Speaker, SpokenAudio, SpokenText, Voice, VoiceSession, VoiceSessionOptions,
  VoiceThread,
} from '../../voice/contract.ts'
import type { Askable } from '../askable.ts'
import { isVoice, resolve, type AgentConfig } from '../config.ts'
import { contextOf, validateRequestContext } from '../memory/request-memory.ts'
import type { Scope } from '../../store/contract/threads.ts'

/** What a voice needs of its agent. */
interface SpeakingAgent extends Askable {
  sendMessage(message: MessageInput, options: SendOptions): SendReceipt
  subscribeToThread(options: SubscribeOptions): Promise<AgentThreadSubscription>
  abortRun(run: Scope & { expectedRunId?: string }): Promise<unknown>
}

/** Through what a session is reached. */
interface SessionDoor {
  /** Resolves when the listener has room for sound. */
  room?: () => Promise<void> | undefined
  /** Sends words of the user. */
  send?: <T>(work: () => Promise<T>) => Promise<T>
}

const sessionNames = ['threadId', 'resourceId', 'inputRate', 'turn', 'speaker', 'language']

/** The voice of an agent. Its calls reject with `voice_missing` where the agent has none. */
export class AgentVoice {
  readonly #agent: SpeakingAgent
  readonly #configOf: () => AgentConfig
  readonly #context: RequestContext | undefined

  /** @internal */
  constructor(agent: SpeakingAgent, configOf: () => AgentConfig, context?: RequestContext) {
    this.#agent = agent
    this.#configOf = configOf
    this.#context = context
  }

  /** The sound of a text. A text that streams is spoken sentence by sentence, as it comes. */
  async speak(text: SpokenText, options: SpeakOptions = {}): Promise<SpokenAudio> {
    return (await this.#voice()).speak(text, options)
  }

  /** The words in a sound. */
  async listen(audio: AudioInput, options: ListenOptions = {}): Promise<string> {
    return (await this.#voice()).listen(audio, options)
  }

  /** The voices that `speaker` may name, where they are known: models of the AI SDK don't list them. */
  async getSpeakers(): Promise<Speaker[]> {
    return (await this.#voice()).getSpeakers()
  }

  /** Whether the agent can listen. */
  async getListener(): Promise<{ enabled: boolean }> {
    return this.#configOf().voice === undefined ? { enabled: false } : (await this.#voice()).getListener()
  }

  /**
   * A conversation on a thread: what the user says is sent as messages, answers are spoken while they are written, and speaking over the
   * agent cuts the sound and the model. History has what the user heard.
   */
  async session(options: VoiceSessionOptions): Promise<VoiceSession> {
    return this.open(options, {})
  }

  /** @internal */
  async open(options: VoiceSessionOptions, door: SessionDoor): Promise<VoiceSession> {
    checkNames('voice.session()', options, sessionNames)
    checkName('threadId', options.threadId)
    checkName('resourceId', options.resourceId)
    const voice = await this.#voice()
    if (!voice.openSession) {
      throw new HeedError('voice_missing', `The voice of agent '${this.#agent.id}' has no sessions. Use CompositeVoice of heed/voice.`)
    }
    return voice.openSession(await this.#thread(options, door), options)
  }

  async #voice(): Promise<Voice> {
    const config = this.#configOf()
    const { voice } = config
    if (voice === undefined) {
      const message = `Agent '${this.#agent.id}' has no voice. Give it one: new Agent({ voice: new CompositeVoice({ input, output }) }).`
      throw new HeedError('voice_missing', message, { details: { agentId: this.#agent.id } })
    }
    const requestContext = contextOf(config, this.#context)
    if (typeof voice === 'function') await validateRequestContext(config, requestContext)
    const found: unknown = await resolve(voice, { requestContext })
    if (isVoice(found)) return found.traced ? found.traced(this.#agent.site().tracing) : found
    const message = `The function 'voice' of agent '${this.#agent.id}' must return a voice: () => new CompositeVoice({ … }).`
    throw new HeedError('invalid_agent', message, { details: { field: 'voice' } })
  }

  async #thread({ threadId, resourceId }: VoiceSessionOptions, door: SessionDoor): Promise<VoiceThread> {
    const { room, send: sendAs = (work) => work() } = door
    const agent = (await this.#agent.resolveStorage(contextOf(this.#configOf(), this.#context))) as SpeakingAgent
    const runtime = agent.threads()
    await runtime.open()
    const scope = { threadId, resourceId }
    // The runs that the words of the user begin have the context of the request.
    const ifIdle = this.#context ? { ifIdle: { streamOptions: { requestContext: this.#context } } } : {}
    return {
      ...(room ? { room } : {}),
      agentId: agent.id,
      threadId,
      tracing: runtime.tracing,
      checksOutput: this.#configOf().outputProcessors !== undefined,
      answerWith: (answering) => answerWith(agent.site(), answeringKey(agent.id, threadId), answering),
      clock: runtime.clock,
      logger: runtime.logger,
      newId: runtime.newId,
      subscribe: () => agent.subscribeToThread(scope),
      async send({ id, text, interrupted }) {
        const metadata = { voice: { interrupted } }
        const options: SendOptions = { ...scope, ifActive: { behavior: 'interrupt' }, ...ifIdle }
        await sendAs(() => agent.sendMessage({ id, contents: text, metadata }, options).acceptance)
      },
      async abort(runId) {
        await agent.abortRun({ ...scope, expectedRunId: runId })
      },
      async keepHeard(messageId, { characters, ms }) {
        const content = { metadata: { incomplete: 'interrupted', voice: { heardMs: ms } } }
        try {
          await runtime.store.updateMessages([{ scope, patches: [{ id: messageId, keepCharacters: characters, content }] }])
          return 'kept'
        } catch (error) {
          if (isHeedError(error) && error.code === 'thread_active') return 'active'
          if (isHeedError(error) && (error.code === 'message_not_found' || error.code === 'thread_not_found')) return 'gone'
          throw error
        }
      },
    }
  }
}

function answerWith({ answering }: Site, key: string, model: AnsweringModel): () => void {
  if (answering.has(key)) {
    throw new HeedError('voice_busy', 'A session with a realtime model is open on this thread. Close it, or use another thread.')
  }
  answering.set(key, model)
  return () => {
    if (answering.get(key) === model) answering.delete(key)
  }
}
