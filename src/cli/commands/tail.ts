import { command } from '../shell/command.ts'
import { serverOptions } from '../talk/server-options.ts'

export const tail = command({
  name: 'tail',
  about: 'prints what happens on a thread of a server',
  details: 'With --json each line is a chunk with its cursor. A lost connection is opened again at the last cursor:\n'
    + 'no chunk is missed or repeated.',
  examples: ['heed tail trip', "heed tail trip --json --until finish | jq -r 'select(.type == \"text-delta\").payload.text'"],
  arguments: [{ name: 'THREAD', about: 'the id of the thread' }],
  options: {
    after: { about: 'continue after this cursor', value: 'CURSOR' },
    until: { about: 'end with the run: 0 if it finishes, 1 if it fails or is aborted', value: 'EVENT', choices: ['finish'] },
    ...serverOptions,
  },
  page: 'docs/cli.md',
  run: async ({ arguments: [thread = ''], options, output }) => (await import('../talk/tail.ts')).tail({ thread, ...options }, output),
})
