export { CompositeVoice, type CompositeVoiceOptions } from './composite.ts'
export type { SpeechModel, TranscriptionModel } from './models.ts'
export type { RealtimeModel } from './realtime/link.ts'
export type {
  AnsweringModel, AudioFormat, AudioInput, ListenOptions, RealtimeConfig, RealtimeControls, SpeakOptions, Speaker, SpokenAudio, SpokenText,
  TurnOptions, Voice, VoiceSession,
  VoiceSessionEvent, VoiceSessionOptions, VoiceState, VoiceThread,
} from './contract.ts'
