#!/usr/bin/env node
import { style } from './render.ts'

/** A command returns the exit code: 0 for success, 1 for problems that it found, 2 for arguments that it cannot use. */
interface Command {
  usage: string
  about: string
  run: (args: string[]) => Promise<number>
}

const commands: Record<string, Command> = {
  'policy check': {
    usage: 'policy check FILE...',
    about: 'checks files of policies against the schema of Heed',
    run: async (args) => (await import('./policy-check.ts')).checkPolicyFiles(args),
  },
}

function usage(): string {
  const width = Math.max(...Object.values(commands).map(({ usage: text }) => text.length))
  const lines = Object.values(commands).map((command) => `  ${command.usage.padEnd(width)}   ${command.about}`)
  return `heed COMMAND\n\n${lines.join('\n')}`
}

/** The longest command that the arguments begin with. */
function find(args: readonly string[]): { command: Command; rest: string[] } | undefined {
  for (let length = args.length; length > 0; length--) {
    const command = commands[args.slice(0, length).join(' ')]
    if (command) return { command, rest: args.slice(length) }
  }
  return undefined
}

async function main(args: string[]): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) {
    console.log(usage())
    return args.length === 0 ? 2 : 0
  }
  const found = find(args)
  if (found) return found.command.run(found.rest)
  console.error(`heed: there is no command '${args.join(' ')}'.\n\n${usage()}`)
  return 2
}

// The reader of the output may stop reading: `heed … | head`.
process.stdout.on('error', () => process.exit(1))

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(style.problem(`heed: ${error instanceof Error ? error.message : String(error)}`))
  process.exitCode = 1
}
