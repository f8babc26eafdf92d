import { describe, expect, it } from 'vitest'
import { checkMusts } from '../../scripts/checks/musts.ts'
import { tree } from './tree.ts'

const protocol = `# Protocol

**[A1.1]** A receipt MUST be true.
- **[A1.2]** A second promise, which goes on
  for two lines, MUST hold.

The MUSTs above have ids, such as **[Z9]** in the middle of a line.
`
const cites = (title: string) => `import { it } from 'vitest'\nit('${title}', () => {})\n`
const both = { 'src/thread/a.test.ts': cites('[A1.1] tells the truth'), 'test/crash/b.test.ts': cites('holds [A1.2]') }

describe('musts', () => {
  it('passes when each promise has a test, and counts', () => {
    const root = tree({ 'PROTOCOL.md': protocol, ...both })
    expect(checkMusts(root)).toEqual({ summary: '2 MUSTs, 2 citations in 2 test files', problems: [] })
  })

  it('counts what a conformance suite cites', () => {
    const root = tree({ 'PROTOCOL.md': '**[A1.1]** It MUST.', 'src/store/conformance/order.ts': cites('[A1.1] x') })
    expect(checkMusts(root).problems).toEqual([])
  })

  it('names the promise without a test', () => {
    const root = tree({ 'PROTOCOL.md': protocol, 'src/a.test.ts': cites('[A1.1] x') })
    expect(checkMusts(root).problems).toEqual(['PROTOCOL.md:4 [A1.2] has no test: write one with [A1.2] in its title.'])
  })

  it('names the test that cites nothing', () => {
    const root = tree({ 'PROTOCOL.md': protocol, ...both, 'src/c.test.ts': cites('[Q7] and [A1.1]') })
    expect(checkMusts(root).problems).toEqual([
      'src/c.test.ts:2 cites [Q7], which PROTOCOL.md does not define: correct the id, or write the MUST.',
    ])
  })

  it('refuses an id that is defined twice or promises nothing', () => {
    const more = `${protocol}\n**[A1.1]** Something else MUST be.\n**[B1]** Nice to have.\n`
    const root = tree({ 'PROTOCOL.md': more, ...both, 'src/b.test.ts': cites('[B1]') })
    expect(checkMusts(root).problems).toEqual([
      'PROTOCOL.md:9 defines [A1.1] again (first on line 3): give one of them a new id.',
      'PROTOCOL.md:10 [B1] says no MUST: only promises have an id.',
    ])
  })

  it.each([
    ["describe('[A1.1]', () => {})", true],
    ["it.each([1, 2])('[A1.1] %s', () => {})", true],
    ["it.each`a\n${1}`('[A1.1]', () => {})", true],
    ["test.concurrent('[A1.1]', async () => {})", true],
    ['it(`[A1.1] on ${store}`, () => {})', true],
    ["it.skip('[A1.1]', () => {})", false],
    ["describe.todo('[A1.1]')", false],
    ["// it('[A1.1]', () => {})", false],
    ["expect('[A1.1]').toBe(1)", false],
    ["const text = `it('[A1.1]')`", false],
  ])('%s cites: %s', (text, counts) => {
    const root = tree({ 'PROTOCOL.md': '**[A1.1]** It MUST.', 'src/a.test.ts': text })
    expect(checkMusts(root).problems).toHaveLength(counts ? 0 : 1)
  })

  it('asks for the protocol when there is none', () => {
    expect(checkMusts(tree({})).problems).toEqual(['PROTOCOL.md is missing: it holds the promises that tests cite.'])
  })
})
