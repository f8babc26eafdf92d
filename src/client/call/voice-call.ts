import { checkNames, refused } from '../../base/arguments.ts'
import { describe, HeedError } from '../../base/errors.ts'
import type { VoiceState } from '../../voice/contract.ts'
import type { RemoteVoiceEvent } from '../voice/received-events.ts'
import type { RemoteSessionOptions, RemoteVoiceSession } from '../voice/remote-session.ts'
import { Player } from './player.ts'
import { Resampler, toBytes } from './resampler.ts'
import { processorNames, voiceCallWorklet } from './worklet.ts'

/** A call, its session, and the devices of the page. */
export interface VoiceCallOptions extends Omit<RemoteSessionOptions, 'inputRate'> {
  /** The microphone: a stream of the page, which stays open after the call, or what to ask the browser for. */
  microphone?: MediaStream | MediaTrackConstraints
  /** Where the page serves the text of `voiceCallWorklet`, for pages whose content security policy permits no `blob:` scripts. */
  workletUrl?: string
  /** Called with each event of the session, after the player has it. */
  onEvent?: (event: RemoteVoiceEvent) => void
}

/** What opens sessions: `client.getAgent('guide').voice`. */
export interface CallableVoice {
  session(options: RemoteSessionOptions): Promise<RemoteVoiceSession>
}

/** Samples a second that are sent: what speech models take. */
const inputRate = 24_000
/** A page that may not make sound yet learns it within this time. */
const resumeMs = 2_000

/**
 * Opens a call of a page: the microphone speaks on a thread, and the answers are played. Call it in a handler of a click: browsers let
 * pages make sound after one.
 */
export async function openVoiceCall(voice: CallableVoice, options: VoiceCallOptions): Promise<VoiceCall> {
  const own = ['microphone', 'workletUrl', 'onEvent']
  checkNames('openVoiceCall()', options, ['threadId', 'resourceId', 'turn', 'speaker', 'language', 'reconnect', ...own])
  const { microphone, workletUrl, onEvent, ...session } = options
  if (microphone !== undefined && typeof microphone !== 'object') throw refused('microphone', 'a MediaStream, or constraints of a track')
  if (workletUrl !== undefined && typeof workletUrl !== 'string') throw refused('workletUrl', 'an address')
  if (onEvent !== undefined && typeof onEvent !== 'function') throw refused('onEvent', 'a function')
  const devices = await Devices.open(microphone, workletUrl)
  try {
    return new VoiceCall(await voice.session({ ...session, inputRate }), devices, onEvent)
  } catch (error) {
    await devices.close()
    throw error
  }
}

/** A conversation of a page with an agent. */
export class VoiceCall {
  readonly session: RemoteVoiceSession
  /** The sound of the agent before it goes to the speakers, for a meter or an effect. */
  readonly output: AudioNode
  /** True: silence is sent instead of the microphone's sound. */
  muted = false
  /** Resolves when the call is over: after `close()`, or when its session ended. */
  readonly ended: Promise<void>
  readonly #devices: Devices
  readonly #player: Player
  readonly #onEvent: ((event: RemoteVoiceEvent) => void) | undefined
  readonly #resampler: Resampler

  /** @internal */
  constructor(session: RemoteVoiceSession, devices: Devices, onEvent: ((event: RemoteVoiceEvent) => void) | undefined) {
    this.session = session
    this.output = devices.output
    this.#devices = devices
    this.#onEvent = onEvent
    this.#resampler = new Resampler(devices.context.sampleRate, inputRate)
    this.#player = new Player(devices.context, devices.output, (report) => session.played(report))
    devices.listen((samples) => this.#speak(samples), (error) => this.#tell({ type: 'error', error }))
    this.ended = this.#read()
  }

  get state(): VoiceState {
    return this.session.state
  }

  /** Ends the call. The agent goes on with what it does, on the thread. */
  async close(): Promise<void> {
    await this.session.close()
    await this.ended
  }

  #speak(samples: Float32Array): void {
    const bytes = toBytes(this.#resampler.push(this.muted ? new Float32Array(samples.length) : samples))
    // A microphone can't wait: what the server does not take is kept for a while, and then reported as lost.
    this.session.write(bytes).catch((error: unknown) => {
      if (!(error instanceof HeedError && error.code === 'closed')) reportError(error)
    })
  }

  async #read(): Promise<void> {
    try {
      for await (const event of this.session.events) {
        this.#play(event)
        this.#tell(event)
      }
    } finally {
      this.#player.close()
      await this.#devices.close()
    }
  }

  #play(event: RemoteVoiceEvent): void {
    if (event.type === 'sentence') this.#player.begin(event.itemId, event.rate)
    else if (event.type === 'audio') this.#player.play(event.itemId, event.atMs, event.audio)
    else if (event.type === 'item-end') this.#player.end(event.itemId)
    else if (event.type === 'clear') this.#player.clear()
  }

  /** An error of the page's own code does not end the call. */
  #tell(event: RemoteVoiceEvent): void {
    try {
      this.#onEvent?.(event)
    } catch (error) {
      reportError(error)
    }
  }
}

/** The microphone and the speakers of a page. */
class Devices {
  readonly context: AudioContext
  readonly output: GainNode
  readonly #microphone: MediaStream
  /** The microphone was opened here. */
  readonly #owns: boolean
  #node: AudioWorkletNode | undefined
  #onLost = () => {}

  static async open(asked: MediaStream | MediaTrackConstraints | undefined, workletUrl: string | undefined): Promise<Devices> {
    const isStream = typeof MediaStream === 'function' && asked instanceof MediaStream
    const microphone = isStream ? asked : await openMicrophone(asked as MediaTrackConstraints | undefined)
    let context: AudioContext | undefined
    try {
      context = new AudioContext({ latencyHint: 'interactive' })
      await loadWorklet(context, workletUrl)
      await run(context)
      return new Devices(context, microphone, !isStream)
    } catch (error) {
      if (!isStream) stop(microphone)
      await context?.close()
      throw unavailable(error, 'The sound of the page could not be started')
    }
  }

  private constructor(context: AudioContext, microphone: MediaStream, owns: boolean) {
    this.context = context
    this.#microphone = microphone
    this.#owns = owns
    this.output = context.createGain()
    this.output.connect(context.destination)
  }

  /** Calls back with what the microphone hears, and when it is lost. */
  listen(onSamples: (samples: Float32Array) => void, onLost: (error: HeedError) => void): void {
    const options = { numberOfOutputs: 0, channelCount: 1, channelCountMode: 'explicit' } as const
    const node = new AudioWorkletNode(this.context, processorNames.microphone, options)
    node.port.addEventListener('message', ({ data }: MessageEvent<Float32Array>) => onSamples(data))
    node.port.start()
    this.context.createMediaStreamSource(this.#microphone).connect(node)
    this.#node = node
    const [track] = this.#microphone.getAudioTracks()
    const message = 'The microphone was disconnected. Close the call, and open another one with a microphone that is there.'
    this.#onLost = () => onLost(new HeedError('audio_unavailable', message))
    track?.addEventListener('ended', this.#onLost, { once: true })
  }

  async close(): Promise<void> {
    const [track] = this.#microphone.getAudioTracks()
    track?.removeEventListener('ended', this.#onLost)
    if (this.#owns) stop(this.#microphone)
    this.#node?.port.postMessage('close', [])
    this.#node?.port.close()
    if (this.context.state !== 'closed') await this.context.close()
  }
}

async function openMicrophone(constraints: MediaTrackConstraints = {}): Promise<MediaStream> {
  try {
    // The agent must not hear itself.
    const audio = { echoCancellation: true, noiseSuppression: true, channelCount: 1, ...constraints }
    return await navigator.mediaDevices.getUserMedia({ audio })
  } catch (error) {
    throw unavailable(error, 'The microphone could not be opened')
  }
}

async function loadWorklet(context: AudioContext, workletUrl: string | undefined): Promise<void> {
  if (workletUrl !== undefined) return context.audioWorklet.addModule(workletUrl)
  const url = URL.createObjectURL(new Blob([voiceCallWorklet], { type: 'text/javascript' }))
  try {
    await context.audioWorklet.addModule(url)
  } finally {
    URL.revokeObjectURL(url)
  }
}

/** Browsers leave the promise of a page that may not make sound open. */
async function run(context: AudioContext): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, resumeMs)
  })
  await Promise.race([context.resume(), late])
  clearTimeout(timer)
  if (context.state === 'running') return
  throw new HeedError('audio_unavailable', 'The browser lets no page make sound before a click. Open the call in the handler of a click.')
}

function stop(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop()
}

function unavailable(error: unknown, what: string): HeedError {
  if (error instanceof HeedError) return error
  const { name } = Object(error) as { name?: string }
  const known: Record<string, string> = { NotAllowedError: 'the user or the browser has not permitted it', NotFoundError: 'there is none' }
  const why = known[name ?? ''] ?? describe(error)
  return new HeedError('audio_unavailable', `${what}: ${why}.`, { cause: error, details: { reason: name ?? 'Error' } })
}
