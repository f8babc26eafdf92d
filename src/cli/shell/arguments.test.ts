import { describe, expect, it } from 'vitest'
import { readArguments, wholeNumber } from './arguments.ts'
import { command } from './command.ts'
import { nearest } from './nearest.ts'

const send = command({
  name: 'send',
  about: 'sends',
  examples: ['heed send'],
  arguments: [{ name: 'THREAD', about: 'the thread' }, { name: 'TEXT', about: 'the text', optional: true }],
  options: {
    agent: { about: 'the agent', value: 'ID', short: 'a' },
    wait: { about: 'how long', value: 'STATE', choices: ['stored', 'outcome'] },
    seen: { about: 'ids', value: 'ID', repeated: true },
    queue: { about: 'queues' },
  },
  page: 'docs/cli.md',
  run: async () => 0,
})

function refusal(...args: string[]): { message: string; remedy: unknown; exitCode: unknown } {
  try {
    readArguments(send, args)
  } catch (error) {
    const { message, options, exitCode } = error as { message: string; options: { remedy?: string }; exitCode: number }
    return { message, remedy: options.remedy, exitCode }
  }
  throw new Error('was accepted')
}

describe('the arguments of a command', () => {
  it('[C1.1] reads options before, between and after arguments, in each of their forms', () => {
    const none = { json: false, debug: false, help: false }
    expect(readArguments(send, ['--queue', 'trip', '-a', 'guide', 'hello', '--wait=stored', '--seen', '1', '--seen=-2', '--json'])).toEqual({
      arguments: ['trip', 'hello'],
      options: { ...none, queue: true, agent: 'guide', wait: 'stored', seen: ['1', '-2'], json: true },
    })
    expect(readArguments(send, ['trip', '--', '--queue'])).toEqual({
      arguments: ['trip', '--queue'], options: { ...none, queue: false, agent: undefined, wait: undefined, seen: [] },
    })
    expect(readArguments(send, ['trip', '-']).arguments).toEqual(['trip', '-'])
  })

  it('[C1.1] refuses by name what a command does not take, with the nearest name', () => {
    expect(refusal('trip', '--agnet', 'x')).toEqual({ message: 'there is no option --agnet.', remedy: 'Did you mean --agent?', exitCode: 2 })
    expect(refusal('trip', '--frobnicate')).toEqual({ message: 'there is no option --frobnicate.', remedy: undefined, exitCode: 2 })
    expect(refusal('trip', '--constructor').message).toBe('there is no option --constructor.')
    expect(refusal('trip', '-q').message).toBe('there is no option -q.')
    expect(refusal('trip', '--wait', 'stord')).toEqual({ message: '--wait is one of stored, outcome.', remedy: 'Did you mean stored?', exitCode: 2 })
    expect(refusal('trip', '--agent').message).toBe('--agent needs a value: --agent ID.')
    expect(refusal('trip', '--agent', '--queue').message).toBe('--agent needs a value: --agent ID.')
    expect(refusal('trip', '--agent', 'a', '--agent', 'b').message).toBe('--agent was given twice.')
    expect(refusal('trip', '--queue=yes').message).toBe('--queue takes no value.')
    expect(refusal().message).toBe('name the THREAD: the thread.')
    expect(refusal('trip', 'a', 'b').message).toBe("there is no place for 'b'.")
  })

  it('[C1.1] reads whole numbers within their bounds', () => {
    expect(wholeNumber('--port', '0', 0, 65_535)).toBe(0)
    for (const text of ['', '-1', '1.5', '0x10', '65536', 'abc', '1e3'])
      expect(() => wholeNumber('--port', text, 0, 65_535), text).toThrow('--port is a whole number from 0 to 65535.')
  })
})

describe('the nearest name', () => {
  it('is one typing error away, or few in a long name', () => {
    expect(nearest('sned', ['send', 'tail', 'inbox'])).toBe('send')
    expect(nearest('tial', ['send', 'tail', 'inbox'])).toBe('tail')
    expect(nearest('resorce', ['resource', 'reload'])).toBe('resource')
    expect(nearest('key', ['agent', 'key-file'])).toBe('key-file')
    expect(nearest('x', ['send', 'tail', 'inbox'])).toBeUndefined()
    expect(nearest('deploy', ['send', 'dev'])).toBeUndefined()
  })
})
