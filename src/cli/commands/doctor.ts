import { command } from '../shell/command.ts'

export const doctor = command({
  name: 'doctor',
  about: 'checks a deployment: its database, its bus, its processes',
  details: 'Each warning and each problem says what to do. Nothing is created or migrated. The file must not start a server when it is\n'
    + 'imported. Ends with 5 if there are problems, and with 0 if there are warnings alone.',
  examples: [
    'heed doctor', 'heed doctor --url file:./heed.db --redis redis://localhost:6379', 'heed doctor --url postgresql://heed@localhost/heed',
  ],
  arguments: [{ name: 'FILE', about: 'the module that exports the Heed; else heed.ts, heed.js, heed.mjs, src/heed.ts …', optional: true }],
  options: {
    url: { about: 'in place of a file: the database, such as file:./heed.db or postgresql://…', value: 'URL' },
    redis: { about: 'with --url: the Redis that connects the processes', value: 'URL' },
    'env-file': { about: 'variables of the environment, else .env', value: 'FILE' },
  },
  page: 'docs/processes.md',
  run: async ({ arguments: [file], options, output }) => {
    const checking = await import('../doctor/doctor.ts')
    return checking.doctor({ file, url: options.url, redis: options.redis, envFile: options['env-file'] }, output)
  },
})
