export { CompositeVoice, type CompositeVoiceOptions } from './composite.ts'
export type { SpeechModel, TranscriptionModel } from './models.ts'
export type {
  AudioFormat, AudioInput, ListenOptions, SpeakOptions, Speaker, SpokenAudio, SpokenText, TurnOptions, Voice, VoiceSession,
  VoiceSessionEvent, VoiceSessionOptions, VoiceState, VoiceThread,
} from './contract.ts'
