import { command } from '../shell/command.ts'
import { serverOptions } from '../talk/server-options.ts'

export const inbox = command({
  name: 'inbox',
  about: 'lists the notifications of a thread, or marks them',
  examples: ['heed inbox release --status pending --priority high', 'heed inbox release --dismiss 0199…'],
  arguments: [{ name: 'THREAD', about: 'the id of the thread' }],
  options: {
    status: {
      about: 'those with this status', value: 'STATUS', repeated: true,
      choices: ['pending', 'delivered', 'seen', 'dismissed', 'archived', 'discarded', 'failed'],
    },
    priority: { about: 'those with this priority', value: 'PRIORITY', repeated: true, choices: ['low', 'medium', 'high', 'urgent'] },
    limit: { about: 'how many; else 100', value: 'NUMBER' },
    show: { about: 'print one, with its payload', value: 'ID' },
    seen: { about: 'mark as seen', value: 'ID', repeated: true },
    dismiss: { about: 'mark as dismissed', value: 'ID', repeated: true },
    archive: { about: 'mark as archived', value: 'ID', repeated: true },
    retry: { about: 'deliver again what failed', value: 'ID', repeated: true },
    ...serverOptions,
  },
  page: 'docs/cli.md',
  run: async ({ arguments: [thread = ''], options, output }) => (await import('../talk/inbox.ts')).inbox({ thread, ...options }, output),
})
