import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { project } from './project.ts'

const found = await findProgram('script')
const root = join(import.meta.dirname, '../..')

/** npm create heed on a terminal: `script` makes one. */
function onTerminal(cwd: string) {
  const { CI: _, ...env } = process.env
  const command = `'${process.execPath}' '${join(root, 'create-heed/create-heed.js')}'`
  const child = spawn('path' in found ? found.path : '', ['-qec', command, '/dev/null'], { cwd, env })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output += text))
  const ended = once(child, 'close').then(([code]) => code as number)
  return {
    ended,
    output: () => output,
    /** Types when it asks. */
    answer: async (question: string, keys: string) => {
      await expect.poll(() => output).toContain(question)
      child.stdin.write(keys)
    },
    type: (keys: string) => child.stdin.write(keys),
  }
}

describe.skipIf('missing' in found)(`npm create heed on a terminal${whySkipped(found)}`, () => {
  it('[C5.1] asks for the folder, the template, the model and whether to install, and again after a wrong answer', async () => {
    const { folder } = project({ 'full/a.txt': 'a' })
    const terminal = onTerminal(folder)
    await terminal.answer('Folder (my-agents): ', 'full\n')
    await terminal.answer('full is not empty: a.txt.', 'trip\n')
    await terminal.answer('Template: minimal, hono, next, vite-react (minimal): ', 'express\n')
    await terminal.answer("there is no template 'express'.", 'hono\n')
    await terminal.answer('none needs no key (none): ', 'gpt\n')
    await terminal.answer("'gpt' is not a model.", 'openai/gpt-5.5\n')
    await terminal.answer('Install the packages now (yes): ', 'no\n')
    expect(await terminal.ended).toBe(0)
    expect(terminal.output().replaceAll('\r', '')).toContain('Made trip (hono).\n\nNext:\n  cd trip\n  npm install\n  echo OPENAI_API_KEY=… > .env\n  npm run dev\n')
    expect(readFileSync(join(folder, 'trip/model.ts'), 'utf8')).toContain("'openai/gpt-5.5'")
  })

  it('[C5.1] takes answers that are typed ahead', async () => {
    const { folder } = project({})
    const terminal = onTerminal(folder)
    await terminal.answer('Folder', 'trip\n\n\nno\n')
    expect(await terminal.ended).toBe(0)
    expect(terminal.output()).toContain('Made trip (minimal).')
  })

  it.each([['Ctrl-C', '\u0003'], ['Ctrl-D', '\u0004']])('[C5.2] writes nothing and prints no stack at %s', async (_name, key) => {
    const { folder } = project({})
    const terminal = onTerminal(folder)
    await terminal.answer('Folder', 'trip\n')
    await terminal.answer('Template', key)
    expect(await terminal.ended).toBe(130)
    expect(terminal.output()).toMatch(/Nothing was written\.\s*$/)
    expect(terminal.output()).not.toMatch(/Error|\bat /)
    expect(existsSync(join(folder, 'trip'))).toBe(false)
  })
})
