import { command } from '../shell/command.ts'

export const start = command({
  name: 'start',
  about: 'serves the Heed of a file, for production',
  details: 'The file exports a Heed by default or as heed, and options of the server as server: auth, cors, limits.\n'
    + 'SIGTERM and Ctrl-C hand running threads over and end with 0; a second Ctrl-C ends at once.',
  examples: ['heed start', 'PORT=8080 heed start dist/heed.js --host 0.0.0.0'],
  arguments: [{ name: 'FILE', about: 'the module to load; else heed.ts, heed.js, heed.mjs, src/heed.ts …', optional: true }],
  options: {
    port: { about: 'the port, else PORT, else 4111; 0 takes a free one', value: 'PORT', short: 'p' },
    host: { about: 'the address to listen on; any but this machine needs auth', value: 'HOST' },
    studio: { about: 'also serve Studio, at /studio' },
    'env-file': { about: 'variables of the environment, else .env', value: 'FILE' },
  },
  page: 'docs/cli.md',
  run: async ({ arguments: [file], options, output }) => {
    const serving = await import('../serve/start.ts')
    return serving.start({ file, port: options.port, host: options.host, envFile: options['env-file'], studio: options.studio }, output)
  },
})
