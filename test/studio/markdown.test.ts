import { describe, expect, it } from 'vitest'
import { tokensOf } from '../../studio/parts/markdown-tokens.ts'

const filled = (text: string) => text.repeat(Math.ceil(50_000 / text.length)).slice(0, 50_000)

describe('formatted text of anyone', () => {
  it.each([
    ['quotes in quotes', filled('> ')], ['quotes without blanks', filled('>')], ['lists in lists', filled('- ')], ['numbers in numbers', filled('1. ')],
    ['a staircase of lists', Array.from({ length: 1_000 }, (_, level) => `${' '.repeat(2 * level)}- a`).join('\n')],
    ['underscores', filled('_')], ['runs of underscores', filled(`${'_'.repeat(199)}a`)], ['words between underscores', filled('_a_b')], ['a long text', 'word '.repeat(20_000)],
  ])('[Y2.4] that keeps a parser busy, or exceeds its stack, is shown as it is: %s', (_, text) => {
    expect(tokensOf(text)).toBeUndefined()
  })

  it('[Y2.4] is formatted where it is as texts are', () => {
    const list = Array.from({ length: 400 }, (_, index) => `* **${index}**: a \`word\``).join('\n')
    const nested = '> > quoted\n\n- one\n  - two\n    - three\n      1. four\n        > five\n'
    const types = (text: string) => tokensOf(text)?.map(({ type }) => type).filter((type) => type !== 'space')
    expect(types(`# Title\n\nSome *words*.\n\n${list.slice(0, 2_000)}`)).toEqual(['heading', 'paragraph', 'list'])
    expect(types(nested)).toEqual(['blockquote', 'list'])

    expect(types(`| a | b |\n|---|---|\n| 1 | 2 |\n\n${'_'.repeat(80)}\n\n${'-'.repeat(80)}\n\n\`\`\`ts\nconst a = 1\n\`\`\`\n`)).toEqual(['table', 'hr', 'hr', 'code'])
  })
})
