import type { OptionTable } from '../shell/command.ts'

/** How commands name the server, the agent and the resource that they talk to. */
export const serverOptions = {
  url: { about: 'the server, else HEED_URL, else http://127.0.0.1:4111', value: 'URL' },
  'key-file': { about: 'a file with the API key, else HEED_API_KEY', value: 'FILE' },
  agent: { about: 'the agent, if the server has several', value: 'ID', short: 'a' },
  resource: { about: 'the resource of the thread; else its own, else "local"', value: 'ID', short: 'r' },
} as const satisfies OptionTable
