#!/usr/bin/env node
import { checkNodeVersion } from '../base/node-version.ts'
import { packageVersion } from '../base/package-version.ts'
import { commands } from './commands/index.ts'
import { readArguments } from './shell/arguments.ts'
import type { Command } from './shell/command.ts'
import { exitCodes, reportFailure, toFailure, wrongUsage } from './shell/failure.ts'
import { helpOf, helpOfAll, usageOf } from './shell/help.ts'
import { nearest } from './shell/nearest.ts'
import { Output } from './shell/output.ts'

/** The longest command that the arguments begin with. */
function find(args: readonly string[]): { command: Command; rest: string[] } | undefined {
  const found = commands
    .filter(({ name }) => name.split(' ').every((word, index) => word === args[index]))
    .toSorted((a, b) => b.name.length - a.name.length)[0]
  return found && { command: found, rest: args.slice(found.name.split(' ').length) }
}

async function main(args: readonly string[]): Promise<number> {
  const [first] = args
  if (first === undefined) {
    console.error(helpOfAll(commands))
    return exitCodes.usage
  }
  if (first === '--version' || first === '-v') {
    console.log(packageVersion())
    return exitCodes.done
  }
  if (first === '--help' || first === '-h' || first === 'help') return help(args.slice(1))
  const found = find(args)
  if (!found) throw unknownCommand(args)
  const { command, rest } = found
  checkNodeVersion()
  const read = readArguments(command, rest)
  if (read.options.help) {
    console.log(helpOf(command))
    return exitCodes.done
  }
  const { json, debug } = read.options
  return command.run({
    arguments: read.arguments, options: read.options as never, output: new Output(json === true), isDebug: debug === true,
  })
}

/** `heed help send` is `heed send --help`. */
function help(words: readonly string[]): number {
  const found = find(words)
  if (!found && words.length > 0 && !inGroup(words[0])) throw unknownCommand(words)
  const group = commands.filter(({ name }) => words.length === 0 || name.startsWith(`${words[0]} `))
  console.log(found ? helpOf(found.command) : helpOfAll(group))
  return exitCodes.done
}

/** Whether there are commands of several words that begin with this one. */
function inGroup(word: string | undefined): boolean {
  return commands.some(({ name }) => name.startsWith(`${word} `))
}

function unknownCommand(args: readonly string[]): Error {
  const [first = ''] = args
  if (first.startsWith('-')) return wrongUsage(`there is no option ${first} before the command.`, 'heed --help lists the commands.')
  const group = commands.filter(({ name }) => name.startsWith(`${first} `))
  if (group.length > 0) return wrongUsage(`'${first}' needs another word.`, group.map(usageOf).join('\n'))
  const words = commands.map(({ name }) => name)
  const near = nearest(args.slice(0, 2).join(' '), words) ?? nearest(first, [...words, ...words.map((name) => name.split(' ')[0] ?? '')])
  const remedy = near === undefined ? 'heed --help lists the commands.' : `Did you mean heed ${near}?`
  return wrongUsage(`there is no command '${first}'.`, remedy)
}

// The reader of the output may stop reading: `heed … | head`.
process.stdout.on('error', () => process.exit(1))

const args = process.argv.slice(2)
try {
  process.exitCode = await main(args)
} catch (error) {
  const failure = toFailure(error)
  const options = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined)
  const command = find(args)?.command
  console.error(reportFailure(failure, {
    command: command?.name ?? '', isJSON: options.includes('--json'), isDebug: options.includes('--debug'),
  }))
  process.exitCode = failure.exitCode
}
