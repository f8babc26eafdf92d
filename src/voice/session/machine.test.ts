import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { heardCharacters, type PlayedItem } from './heard.ts'
import { advance, idle, stateOf, type VoiceAction, type VoiceFacts, type VoiceInput } from './machine.ts'

const inputs: readonly VoiceInput[] = ['speech', 'words', 'no-words', 'run', 'run-end', 'sound', 'silence', 'interrupt', 'overtaken']

/** The facts and the actions of each input, one after the other. */
function walk(...given: VoiceInput[]): { facts: VoiceFacts; actions: VoiceAction[][]; states: string[] } {
  let facts = idle
  const [actions, states]: [VoiceAction[][], string[]] = [[], []]
  for (const input of given) {
    const next = advance(facts, input)
    facts = next.facts
    actions.push(next.actions)
    states.push(stateOf(facts))
  }
  return { facts, actions, states }
}

describe('the states of a session', () => {
  it('[Z3.1] are listening, thinking, speaking and listening again', () => {
    const { states, actions } = walk('speech', 'words', 'run', 'sound', 'run-end', 'silence')
    expect(states).toEqual(['listening', 'thinking', 'thinking', 'speaking', 'speaking', 'listening'])
    expect(actions).toEqual([[], ['send'], [], ['play'], [], []])
  })

  it('[Z3.2] speech over the agent stops the sound, then the model; the words follow what was played', () => {
    const { states, actions } = walk('run', 'sound', 'speech', 'words')
    expect(states.slice(2)).toEqual(['interrupted', 'thinking'])
    expect(actions.slice(2)).toEqual([['stop-sound', 'cut-model'], ['keep-heard', 'send']])
  })

  it('speech over an answer that is written already stops the sound alone', () => {
    expect(walk('run', 'sound', 'run-end', 'speech').actions.at(-1)).toEqual(['stop-sound'])
  })

  it('[Z3.4] a noise while the agent thinks changes nothing; words do', () => {
    expect(walk('run', 'speech', 'no-words')).toMatchObject({ actions: [[], [], []], states: ['thinking', 'thinking', 'thinking'] })
    expect(walk('run', 'speech', 'words').actions.at(-1)).toEqual(['stop-sound', 'cut-model', 'keep-heard', 'send'])
  })

  it('the agent does not begin to speak while the user does', () => {
    expect(walk('run', 'speech', 'sound').actions.at(-1)).toEqual(['drop', 'stop-sound', 'cut-model'])
  })

  it('[Z3.1] of every sequence: no sound in a turn, each stop before its cut of the message, and words are always sent', () => {
    fc.assert(fc.property(fc.array(fc.constantFrom(...inputs), { maxLength: 60 }), (sequence) => {
      let facts = idle
      let playing = false
      for (const input of sequence) {
        const { facts: next, actions } = advance(facts, input)
        const has = (action: VoiceAction) => actions.includes(action)
        expect(has('play') && (facts.turn || facts.cut)).toBe(false)
        playing = (playing || has('play')) && !has('stop-sound') && input !== 'silence'
        expect(has('keep-heard') && playing).toBe(false)
        expect(has('send')).toBe(input === 'words')
        // What sounds is known to sound, and an interrupted session is silent until the turn is over.
        expect(next.sounding).toBe(playing)
        expect(stateOf(next) === 'interrupted' && (playing || !next.turn)).toBe(false)
        facts = next
      }
    }))
  })
})

describe('what the user heard', () => {
  const text = 'One two three. Four five.'
  const item = (start: number, end: number, heardMs: number): PlayedItem => ({ start, end, spoken: text.slice(start, end), durationMs: 900, heardMs })

  it('ends with the word that was spoken', () => {
    expect(text.slice(0, heardCharacters(text, [item(0, 14, 0), item(14, 25, 0)]))).toBe('')
    expect(text.slice(0, heardCharacters(text, [item(0, 14, 350), item(14, 25, 0)]))).toBe('One two')
    expect(text.slice(0, heardCharacters(text, [item(0, 14, 900), item(14, 25, 0)]))).toBe('One two three.')
    expect(text.slice(0, heardCharacters(text, [item(0, 14, 900), item(14, 25, 100)]))).toBe('One two three. Four')
    expect(text.slice(0, heardCharacters(text, [item(0, 14, 900), item(14, 25, 900)]))).toBe(text)
  })

  it('[Z3.3] is a prefix of the text, covers every sentence that was played whole, and grows with what was played', () => {
    const words = fc.array(fc.constantFrom('a', 'bb', 'ccc', 'é', '😀'), { minLength: 1, maxLength: 6 }).map((list) => `${list.join(' ')}. `)
    const heard = fc.array(fc.tuple(words, fc.nat(1_000), fc.nat(1_000)), { minLength: 1, maxLength: 6 })
    fc.assert(fc.property(heard, (sentences) => {
      const whole = sentences.map(([sentence]) => sentence).join('')
      let at = 0
      const items = sentences.map(([sentence, heardMs]) => {
        const start = at
        at += sentence.length
        return { start, end: at, spoken: sentence, durationMs: 1_000, heardMs }
      })
      const characters = heardCharacters(whole, items)
      expect(characters).toBeGreaterThanOrEqual(Math.max(0, ...items.flatMap(({ heardMs, end }) => (heardMs >= 1_000 ? end : []))))
      expect(characters).toBeLessThanOrEqual(whole.length)
      const more = items.map((one, index) => ({ ...one, heardMs: Math.min(1_000, one.heardMs + (sentences[index]?.[2] ?? 0)) }))
      expect(heardCharacters(whole, more)).toBeGreaterThanOrEqual(characters)
    }))
  })
})
