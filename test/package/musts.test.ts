import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
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
/** The results of a run of one file, as the test runner writes them. */
const ran = (statuses: Record<string, string>) => ({
  testResults: [{ name: 'y.test.ts', assertionResults: Object.entries(statuses).map(([fullName, status]) => ({ fullName, status })) }],
})
const both = { 'src/thread/a.test.ts': cites('[A1.1] tells the truth'), 'test/crash/b.test.ts': cites('holds [A1.2]') }

describe('musts', () => {
  it('passes when each promise has a test, and counts', () => {
    const root = tree({ 'PROTOCOL.md': protocol, ...both })
    expect(checkMusts(root)).toEqual({ summary: '2 MUSTs, 2 citations in 2 test files', problems: [] })
  })

  it('counts what a conformance suite cites', () => {
    const root = tree({ 'PROTOCOL.md': '**[A1.1]** It MUST.', 'src/store/conformance/runs/order.ts': cites('[A1.1] x') })
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
    ["describe.skip('a suite', () => { it('[A1.1]', () => {}) })", false],
    ["// it('[A1.1]', () => {})", false],
    ["expect('[A1.1]').toBe(1)", false],
    ["const text = `it('[A1.1]')`", false],
  ])('%s cites: %s', (text, counts) => {
    const root = tree({ 'PROTOCOL.md': '**[A1.1]** It MUST.', 'src/a.test.ts': text })
    expect(checkMusts(root).problems).toHaveLength(counts ? 0 : 1)
  })

  it.each([
    "it.skipIf(!compiler)('[A1.1]', () => {})",
    "it.runIf(compiler)('[A1.1]', () => {})",
    "it.skipIf(!compiler).each([1])('[A1.1] %s', () => {})",
    "describe.skipIf(!compiler)('a suite', () => { describe('inner', () => { it('[A1.1]', () => {}) }) })",
    "it('[A1.1]', ({ skip }) => { if (!compiler) return skip('no compiler') })",
    "it('[A1.1]', (context) => { if (!compiler) context.skip() })",
  ])('a conditional test alone proves nothing without results: %s', (text) => {
    const files = { 'PROTOCOL.md': '**[A1.1]** It MUST.', 'src/a.test.ts': text }
    expect(checkMusts(tree(files)).problems).toEqual([
      'PROTOCOL.md:1 [A1.1] is cited by conditional tests only, and there is no .ci/vitest.json: `CI=true npm test` writes it.',
    ])
    expect(checkMusts(tree({ ...files, 'src/b.test.ts': cites('[A1.1]') })).problems).toEqual([])
    expect(checkMusts(tree({ ...files, '.ci/vitest.json': ran({ '[A1.1]': 'passed' }) })).problems).toEqual([])
    expect(checkMusts(tree({ ...files, '.ci/vitest.json': ran({ '[A1.1]': 'skipped' }) })).problems).toHaveLength(1)
  })

  it('a test that skips itself leaves the other tests of its suite unconditional', () => {
    const text = "describe('[A1.1]', () => { it('x', ({ skip }) => skip()); it('y', () => {}) })"
    expect(checkMusts(tree({ 'PROTOCOL.md': '**[A1.1]** It MUST.', 'src/a.test.ts': text })).problems).toEqual([])
  })

  describe('with the results of a run', () => {
    const after = (results: Record<string, string>) =>
      checkMusts(tree({ 'PROTOCOL.md': protocol, ...both, '.ci/vitest.json': ran(results) }), { needsResults: true })

    it('counts what passed', () => {
      expect(after({ 'a suite [A1.1] x': 'passed', 'conformance [A1.2] y': 'passed', 'z [A1.2]': 'skipped' })).toEqual({
        summary: '2 MUSTs, 2 proved, 2 citations in 2 test files; citing tests that were skipped: 1', problems: [],
      })
    })

    it('names the promise whose tests were skipped, with the reason in their titles', () => {
      expect(after({ '[A1.1] x': 'passed', '[A1.2] y (no compiler)': 'skipped', 'z [A1.2]': 'pending' }).problems).toEqual([
        'PROTOCOL.md:4 [A1.2] is unproved: no test passed in this run; skipped: y.test.ts > [A1.2] y (no compiler); skipped: y.test.ts > z [A1.2]',
      ])
    })

    it('names the promise whose test failed, did not run, or is todo', () => {
      expect(after({ '[A1.1] x': 'failed', '[A1.2] y': 'todo' }).problems).toEqual([
        'PROTOCOL.md:3 [A1.1] is unproved: no test passed in this run; failed: y.test.ts > [A1.1] x',
        'PROTOCOL.md:4 [A1.2] is unproved: no test passed in this run; skipped: y.test.ts > [A1.2] y',
      ])
      expect(after({ '[A1.1] x': 'passed' }).problems).toEqual(['PROTOCOL.md:4 [A1.2] is unproved: .ci/vitest.json has no test that cites it.'])
    })

    it('asks for results where they are needed', () => {
      const { problems } = checkMusts(tree({ 'PROTOCOL.md': protocol, ...both }), { needsResults: true })
      expect(problems).toEqual(['.ci/vitest.json is missing: without the results of a test run no MUST is proved.'])
    })

    it('reads what the runner writes: a skipped test proves nothing', async () => {
      const suite = `import { describe, expect, it } from 'vitest'
        it('[A1.1] holds', () => expect(1).toBe(1))
        describe.skipIf(true)('a suite (no compiler)', () => { it('[A1.2] holds', () => {}) })
        it('[A1.3] holds', ({ skip }) => skip('no disk'))
        for (const { name } of [{ name: '[A1.4] holds' }]) describe('a conformance suite', () => void it(name, () => {}))`
      const ids = ['A1.1', 'A1.2', 'A1.3', 'A1.4']
      const root = tree({ 'PROTOCOL.md': ids.map((id) => `**[${id}]** It MUST.`).join('\n'), 'src/a.test.ts': suite, 'src/conformance/b.ts': "const b = [{ name: '[A1.4] holds' }]" })
      const vitest = join(import.meta.dirname, '../../node_modules/vitest')
      mkdirSync(join(root, 'node_modules'))
      symlinkSync(vitest, join(root, 'node_modules/vitest'))
      await promisify(execFile)(process.execPath, [join(vitest, 'vitest.mjs'), 'run', '--reporter=json', '--outputFile=.ci/vitest.json'], { cwd: root })
      expect(checkMusts(root, { needsResults: true }).problems).toEqual([
        'PROTOCOL.md:2 [A1.2] is unproved: no test passed in this run; skipped: src/a.test.ts > a suite (no compiler) [A1.2] holds',
        'PROTOCOL.md:3 [A1.3] is unproved: no test passed in this run; skipped: src/a.test.ts > [A1.3] holds',
      ])
    })
  })

  it('asks for the protocol when there is none', () => {
    expect(checkMusts(tree({})).problems).toEqual(['PROTOCOL.md is missing: it holds the promises that tests cite.'])
  })
})
