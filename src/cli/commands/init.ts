import { command } from '../shell/command.ts'

/** The program of the package create-heed, which is in this package too. */
interface CreateHeed {
  main(args: readonly string[], program: string): Promise<number>
}

export const init = command({
  name: 'init',
  about: 'makes a project, as npm create heed does',
  details: 'On a terminal it asks for what is not given. A folder with files is refused. A key is never asked for.',
  examples: ['heed init my-agents', 'heed init my-agents --template hono --model openai/gpt-5.5 --install'],
  arguments: [{ name: 'DIRECTORY', about: 'the folder of the project; else my-agents', optional: true }],
  options: {
    template: { about: 'what the project has; else minimal', value: 'NAME', choices: ['minimal', 'hono', 'next', 'vite-react'] },
    model: { about: 'such as openai/gpt-5.5; else none: a scripted model, without a key', value: 'MODEL' },
    install: { about: 'install the packages' },
  },
  page: 'docs/cli.md',
  run: async ({ arguments: args, options: { template, model, install }, output }) => {
    const program = new URL('create-heed/create-heed.js', import.meta.resolve('heed/package.json'))
    const { main } = (await import(program.href)) as CreateHeed
    const named = Object.entries({ template, model }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
    return main([...named, ...(install ? ['--install'] : []), ...(output.isJSON ? ['--json'] : []), '--', ...args], 'heed init')
  },
})
