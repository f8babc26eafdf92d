import { describe, expect, it } from 'vitest'
import { checkWords } from '../../scripts/checks/words.ts'
import { tree } from './tree.ts'

const problems = (files: Record<string, string>) => checkWords(tree(files)).problems

describe('words', () => {
  it('refuses phrases without an actor in comments, messages and papers, and says where', () => {
    const found = problems({
      'src/http/a.ts': '/** Whoever comes gets it. */\nexport const a = 1\n// what\n// waits\n',
      'src/http/b.ts': 'export const why = `The run ${1} was told so.`\n',
      'docs/page.md': '# Page\n\nNothing is kept for good.\n',
    })
    expect(found).toEqual([
      'src/http/a.ts:1 "Whoever": name the actor: the caller, the process, the subscriber.',
      'src/http/b.ts:1 "was told": use the act: published, reported, sent, received, stored.',
      'docs/page.md:3 "for good": permanently, or until what changes it.',
    ])
  })

  it('reads the comments and titles of tests, and of what is around the sources, and not their other strings', () => {
    expect(problems({
      'src/http/a.test.ts': "// whoever\ndescribe.each([1])('what waits, $name', () => {\n  it('are ten unless told', () => say('Was anybody told?'))\n})\n",
      'test/http/b.ts': "export const text = 'Nobody knows who was told.' // for good\n",
    }).toSorted()).toEqual([
      'src/http/a.test.ts:1 "whoever": name the actor: the caller, the process, the subscriber.',
      'src/http/a.test.ts:2 "what waits": pending signals, queued runs, suspended calls.',
      'src/http/a.test.ts:3 "unless told": by default, or the option that changes it.',
      'test/http/b.ts:1 "for good": permanently, or until what changes it.',
    ])
  })

  it('passes over code in papers, quotations and names', () => {
    expect(problems({
      'docs/page.md': '```ts\n// whoever\n```\n\nThe word `nobody` and "in vain".\n',
      'src/http/a.ts': "export const nobody = 'nobody'\n",
    })).toEqual([])
  })
})
