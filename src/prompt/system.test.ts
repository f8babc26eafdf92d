import { describe, expect, it } from 'vitest'
import { systemMessages } from './system.ts'

describe('instructions', () => {
  it.each([
    ['a text', 'Be brief.', [{ role: 'system', content: 'Be brief.' }]],
    ['nothing', '', []],
    ['texts', ['a', '', 'b'], [{ role: 'system', content: 'a' }, { role: 'system', content: 'b' }]],
    ['a message', { role: 'system', content: 'a' }, [{ role: 'system', content: 'a' }]],
    ['a mixed list', [
      'a',
      { role: 'system', content: 'b', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    ], [
      { role: 'system', content: 'a' },
      { role: 'system', content: 'b', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    ]],
  ] as const)('may be %s', (_, instructions, messages) => {
    expect(systemMessages(instructions as Parameters<typeof systemMessages>[0])).toEqual(messages)
  })

  it.each([
    ['a number', 7, 'instructions is number'],
    ['null', null, 'instructions is null'],
    ['another role', [{ role: 'user', content: 'x' }], 'instructions[0] has the role "user"'],
    ['content in parts', ['a', { role: 'system', content: [] }], 'instructions[1] has content that is not a text'],
    ['a list in a list', [['a']], 'instructions[0] is a list inside a list'],
    ['options of no provider', { role: 'system', content: 'a', providerOptions: 'x' }, 'instructions has providerOptions'],
  ])('may not be %s', (_, instructions, why) => {
    expect(() => systemMessages(instructions as never)).toThrow(expect.objectContaining({
      code: 'invalid_agent',
      message: expect.stringContaining(why) as string,
    }))
  })
})
