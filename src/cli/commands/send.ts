import { command } from '../shell/command.ts'
import { serverOptions } from '../talk/server-options.ts'

export const send = command({
  name: 'send',
  about: 'sends a message to a thread of a server',
  details: 'While the thread runs, the message enters the run at its next step.',
  examples: ["heed send trip 'Find me a way to Bern.' --wait answer", 'git diff | heed send review - --queue'],
  arguments: [
    { name: 'THREAD', about: 'the id of the thread; a new one is created' },
    { name: 'TEXT', about: 'the message; without it, or as -, standard input', optional: true },
  ],
  options: {
    queue: { about: 'start a run of its own, after the active one' },
    interrupt: { about: 'cut the stream of the active run, and continue with the message' },
    wait: { about: 'how long to wait; else until the message is stored', value: 'STATE', choices: ['stored', 'outcome', 'answer'] },
    id: { about: 'the id of the message: sent twice, it is one message', value: 'ID' },
    ...serverOptions,
  },
  page: 'docs/cli.md',
  run: async ({ arguments: [thread = '', text], options, output }) => {
    const talk = await import('../talk/send.ts')
    return talk.send({ thread, text, ...options }, output)
  },
})
