import { expect, it } from 'vitest'
import { commands } from '../../src/cli/commands/index.ts'
import { heed } from './heed-process.ts'
import { project } from './project.ts'

/** What each command is given beside `--help` and a wrong option: arguments that it can use where no server and no file is. */
const given: Record<string, string[]> = {
  init: ['.'],
  dev: ['missing.ts'],
  start: ['missing.ts'],
  send: ['trip', 'Hello'],
  tail: ['trip'],
  inbox: ['trip'],
  doctor: ['missing.ts'],
  'policy check': ['missing.cedar'],
}

// Without a terminal on any stream. Run with -u to write the file, and read the difference.
it('[C1.1] [C1.2] [C1.3] [C1.5] prints the kept output: help, a wrong option, no server or no file, as text and as JSON', async () => {
  const { folder } = project({ 'notes.txt': '' })
  const lines = commands.flatMap(({ name }) => {
    const words = name.split(' ')
    const args = given[name]
    return [[...words, '--help'], [...words, '--wrong'], ...(args ? [[...words, ...args], [...words, ...args, '--json']] : [])]
  })
  const ended = await Promise.all([['--help'], ...lines].map(async (args) => {
    const { code, output, errors } = await heed(args, { cwd: folder, env: { HEED_URL: 'http://127.0.0.1:9' } })
    return [`$ heed ${args.join(' ')}`, output && `--- output\n${output}`, errors && `--- errors\n${errors}`, `--- ends with ${code}\n`].filter(Boolean).join('\n')
  }))
  await expect(ended.join('\n')).toMatchFileSnapshot('snapshots.txt')
})

it('[C1.2] each command is in the kept output with its arguments', () => {
  expect(Object.keys(given).toSorted()).toEqual(commands.map(({ name }) => name).toSorted())
})
