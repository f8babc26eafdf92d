import type { VoiceState } from '../contract.ts'

/**
 * The facts that decide what a session does. `running`: the agent runs on the thread. `sounding`: sound is or will be played. `turn`: the
 * user speaks, or what they said is being read. `cut`: they spoke over the agent in this turn.
 */
export interface VoiceFacts {
  readonly running: boolean
  readonly sounding: boolean
  readonly turn: boolean
  readonly cut: boolean
}

/**
 * What happens in a session.
 *
 * - `speech`: the user speaks. `words`: what they said is known. `no-words`: there was nothing to understand.
 * - `run`, `run-end`: the agent begins and ends a run. `sound`: a sentence is ready. `silence`: all sound was played.
 * - `interrupt`: a caller cuts the agent. `overtaken`: input of another sender cut the model; the run goes on with it.
 */
export type VoiceInput = 'speech' | 'words' | 'no-words' | 'run' | 'run-end' | 'sound' | 'silence' | 'interrupt' | 'overtaken'

/**
 * What a session has to do, in this order.
 *
 * - `stop-sound`: play nothing of the present message any more. `cut-model`: abort the run. `play`: play the sentence. `drop`: don't.
 * - `keep-heard`: cut what is stored of the message to what the user heard. `send`: put the words on the thread.
 */
export type VoiceAction = 'stop-sound' | 'cut-model' | 'keep-heard' | 'play' | 'drop' | 'send'

export const idle: VoiceFacts = { running: false, sounding: false, turn: false, cut: false }

export function stateOf({ running, sounding, cut }: VoiceFacts): VoiceState {
  if (cut) return 'interrupted'
  if (sounding) return 'speaking'
  return running ? 'thinking' : 'listening'
}

/** The facts after an input, and what follows from it. Every input is possible in every state. */
export function advance(facts: VoiceFacts, input: VoiceInput): { facts: VoiceFacts; actions: VoiceAction[] } {
  switch (input) {
    case 'speech':
      if (facts.turn) return { facts, actions: [] }
      // A run that has said nothing yet goes on: the sound may be a cough, and its question would have no answer.
      return facts.sounding ? spokenOver({ ...facts, turn: true }) : { facts: { ...facts, turn: true }, actions: [] }
    case 'words':
      // The words wake a run, or enter the active one: either way the agent works from here on.
      return { facts: { running: true, sounding: false, turn: false, cut: false }, actions: [...ended(facts), 'send'] }
    case 'no-words':
      return { facts: { ...facts, turn: false, cut: false }, actions: facts.cut ? ['keep-heard'] : [] }
    case 'run':
      return { facts: { ...facts, running: true }, actions: [] }
    case 'run-end':
      return { facts: { ...facts, running: false }, actions: [] }
    case 'sound':
      if (facts.cut) return { facts, actions: ['drop'] }
      // The agent does not begin to speak while the user does.
      if (facts.turn) {
        const over = spokenOver({ ...facts, sounding: true })
        return { facts: over.facts, actions: ['drop', ...over.actions] }
      }
      return { facts: { ...facts, sounding: true }, actions: ['play'] }
    case 'silence':
      return { facts: { ...facts, sounding: false }, actions: [] }
    case 'interrupt':
      if (!facts.sounding && !facts.running) return { facts, actions: [] }
      return { facts: { ...facts, sounding: false, running: false }, actions: [...cutting(facts), 'keep-heard'] }
    case 'overtaken':
      if (!facts.sounding || facts.cut) return { facts, actions: [] }
      return { facts: { ...facts, sounding: false }, actions: ['stop-sound', 'keep-heard'] }
  }
}

/** The user speaks over the agent: the sound and the model end. */
function spokenOver(facts: VoiceFacts): { facts: VoiceFacts; actions: VoiceAction[] } {
  return { facts: { ...facts, running: false, sounding: false, cut: true }, actions: cutting(facts) }
}

function cutting({ running }: VoiceFacts): VoiceAction[] {
  return running ? ['stop-sound', 'cut-model'] : ['stop-sound']
}

/** Words end the answer that the agent speaks or writes: it was cut when the user began to speak, or is cut now. */
function ended(facts: VoiceFacts): VoiceAction[] {
  if (facts.cut) return ['keep-heard']
  return facts.sounding || facts.running ? [...cutting(facts), 'keep-heard'] : []
}
