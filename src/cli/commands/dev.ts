import { command } from '../shell/command.ts'

export const dev = command({
  name: 'dev',
  about: 'serves the Heed of a file, and reloads it when it changes',
  details: 'A change of a loaded file starts a process with the new code beside the old one, on the same storage. The old one ends at\n'
    + 'the next step of its runs, and they continue with the new code. Code that does not load leaves the old code in use.',
  examples: ['heed dev', 'heed dev src/agents.ts --port 4200'],
  arguments: [{ name: 'FILE', about: 'the module to load; else heed.ts, heed.js, heed.mjs, src/heed.ts …', optional: true }],
  options: {
    port: { about: 'the port, else PORT, else the first free one from 4111', value: 'PORT', short: 'p' },
    host: { about: 'the address to listen on; any but this machine needs auth', value: 'HOST' },
    'env-file': { about: 'variables of the environment, else .env', value: 'FILE' },
  },
  page: 'docs/cli.md',
  run: async ({ arguments: [file], options, output, isDebug }) => {
    const serving = await import('../dev/dev.ts')
    return serving.dev({ file, port: options.port, host: options.host, envFile: options['env-file'], debug: isDebug }, output)
  },
})
