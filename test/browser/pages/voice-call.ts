import { HeedClient } from 'heed/client'
import { openVoiceCall, type RemoteVoiceEvent, type VoiceCall, type VoiceCallOptions } from 'heed/voice-call'

/** What the test reads. `at`: by the clock of the sound, in seconds. */
interface Recorded {
  call?: VoiceCall
  error?: { code: string; message: string }
  events: Array<{ at: number; event: Omit<RemoteVoiceEvent, 'audio'> }>
  rate: number
  blocks: Array<{ at: number; samples: number[] }>
}

const recorded: Recorded = { events: [], rate: 0, blocks: [] }
Object.assign(globalThis, { recorded })

const recorder = `
registerProcessor('recorder', class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage({ at: currentTime, samples: samples.slice() })
    return true
  }
})`

async function record(call: VoiceCall): Promise<void> {
  const context = call.output.context as AudioContext
  recorded.rate = context.sampleRate
  await context.audioWorklet.addModule(URL.createObjectURL(new Blob([recorder], { type: 'text/javascript' })))
  const node = new AudioWorkletNode(context, 'recorder', { numberOfOutputs: 0 })
  node.port.addEventListener('message', ({ data }: MessageEvent<{ at: number; samples: Float32Array }>) => {
    recorded.blocks.push({ at: data.at, samples: [...data.samples] })
  })
  node.port.start()
  call.output.connect(node)
}

const query = new URLSearchParams(location.search)
const button = document.createElement('button')
button.id = 'call'
button.textContent = 'Call'
document.body.append(button)
button.addEventListener('click', () => void begin())

async function begin(): Promise<void> {
  const client = new HeedClient({ baseUrl: query.get('server') ?? '' })
  let call: VoiceCall | undefined
  // As the microphone gives it: a filter of the browser would change what is compared.
  const microphone = { echoCancellation: false, noiseSuppression: false, autoGainControl: false }
  const options: VoiceCallOptions = {
    threadId: 'call', resourceId: 'user-1', microphone, turn: { silenceMs: 700 },
    ...(query.has('worklet') ? { workletUrl: query.get('worklet') ?? '' } : {}),
    onEvent(event) {
      const at = call ? call.output.context.currentTime : 0
      const { audio: _, ...shown } = event as RemoteVoiceEvent & { audio?: unknown }
      recorded.events.push({ at, event: shown })
    },
  }
  try {
    call = await openVoiceCall(client.getAgent('guide').voice, options)
    call.muted = query.has('muted')
    await record(call)
    recorded.call = call
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    recorded.error = { code, message }
  }
  document.title = recorded.error ? 'failed' : 'open'
}
