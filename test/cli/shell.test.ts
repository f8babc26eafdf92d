import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commands } from '../../src/cli/commands/index.ts'
import { heed } from './heed-process.ts'

const names = commands.map(({ name }) => name.split(' '))

describe('the command line', () => {
  it('[C1.2] lists the commands on standard output when asked, and on standard error when nothing was asked', async () => {
    const [asked, short, word, none] = await Promise.all([heed(['--help']), heed(['-h']), heed(['help']), heed([])])
    expect(asked).toMatchObject({ code: 0, errors: '' })
    for (const { name, about } of commands) expect(asked.output).toMatch(new RegExp(`^ {2}${name}\\b.*   ${about}$`, 'm'))
    expect(short).toEqual(asked)
    expect(word).toEqual(asked)
    expect(none).toEqual({ code: 2, output: '', errors: asked.output })
  })

  it('[C1.2] prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as { version: string }
    expect(await heed(['--version'])).toEqual({ code: 0, output: `${version}\n`, errors: '' })
  })

  it('[C1.2] has a help for each command, that begins with its form, has two examples and names a page', async () => {
    const helps = await Promise.all(names.map((words) => heed([...words, '--help'])))
    for (const [index, { code, output, errors }] of helps.entries()) {
      const { name, examples, page, options = {} } = commands[index]!
      expect({ code, errors }, name).toEqual({ code: 0, errors: '' })
      expect(output.startsWith(`heed ${name}`), name).toBe(true)
      expect(examples.length, name).toBeGreaterThanOrEqual(2)
      for (const option of Object.keys(options)) expect(output, name).toContain(`--${option}`)
      expect(readFileSync(join(import.meta.dirname, '../..', page), 'utf8'), name).toContain('# ')
      expect(output.endsWith(`More: node_modules/heed/${page}\n`), name).toBe(true)
      for (const line of output.split('\n')) expect(line.length, line).toBeLessThanOrEqual(140)
    }
    expect(await heed(['help', ...(names[0] ?? [])])).toEqual(helps[0])
  })

  it('[C1.1] names the nearest command for one that it does not know', async () => {
    const unknown = (...words: string[]) => heed(words)
    const [typo, strange, option, half] = await Promise.all([unknown('polcy', 'check', 'x'), unknown('xyzzy'), unknown('--jsn', 'policy'), unknown('policy')])
    expect(typo).toEqual({ code: 2, output: '', errors: "heed: there is no command 'polcy'.\n  Did you mean heed policy check?\n" })
    expect(strange).toEqual({ code: 2, output: '', errors: "heed: there is no command 'xyzzy'.\n  heed --help lists the commands.\n" })
    expect(option).toEqual({ code: 2, output: '', errors: 'heed: there is no option --jsn before the command.\n  heed --help lists the commands.\n' })
    expect(half).toEqual({ code: 2, output: '', errors: "heed: 'policy' needs another word.\n  heed policy check FILE... [options]\n" })
  })

  it('[C1.5] prints a stack with --debug only, and colors on a terminal or by FORCE_COLOR only', async () => {
    const wrong = ['policy', 'check', '--strict']
    const [plain, debug, forced, none] = await Promise.all([
      heed(wrong), heed([...wrong, '--debug']), heed(wrong, { env: { FORCE_COLOR: '1' } }), heed(wrong, { env: { NO_COLOR: '1' } }),
    ])
    expect(plain.errors).not.toMatch(/^\s+at /m)
    expect(debug.errors).toMatch(/^\s+at .*arguments/m)
    expect(forced.errors).toContain('\u001B[31m')
    expect(plain.errors).not.toContain('\u001B')
    expect(none.errors).not.toContain('\u001B')
  })
})
