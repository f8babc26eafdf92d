import { styleText } from 'node:util'
import { commonOptions, type Argument, type Command, type OptionTable } from './command.ts'

/** The help of one command: its form and two examples first, and last where to read on. */
export function helpOf(command: Command): string {
  const { about, details, examples, arguments: args = [], options = {}, page } = command
  const parts = [
    usageOf(command),
    `${sentence(about)}${details === undefined ? '' : `\n${details}`}`,
    section('Examples', examples.map((example) => `  ${example}`)),
    ...(args.length === 0 ? [] : [section('Arguments', columns(args.map(({ name, about: text }) => [name, text])))]),
    section('Options', columns(optionRows({ ...options, ...commonOptions }))),
    `More: node_modules/heed/${page}`,
  ]
  return parts.join('\n\n')
}

/** The list of all commands, or of those that begin with the same words. */
export function helpOfAll(commands: readonly Command[]): string {
  const parts = [
    'heed COMMAND [options]',
    section('Commands', columns(commands.map((command) => [formOf(command), command.about]))),
    section('Everywhere', columns([
      ['heed COMMAND --help', 'the options of a command, with examples'],
      ['heed --version', 'the version'],
      ['NO_COLOR=1', 'no colors'],
    ])),
    'Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not reachable, 4 refused, 5 problems found, 6 not accepted, 130 interrupted',
    'More: node_modules/heed/docs/cli.md',
  ]
  return parts.join('\n\n')
}

export function usageOf(command: Command): string {
  return `heed ${formOf(command)} [options]`
}

function formOf({ name, arguments: args = [] }: Command): string {
  return [name, ...args.map(formOfArgument)].join(' ')
}

function formOfArgument({ name, optional, repeated }: Argument): string {
  const text = repeated ? `${name}...` : name
  return optional ? `[${text}]` : text
}

function optionRows(options: OptionTable): Array<[string, string]> {
  return Object.entries(options).map(([name, { value, short, about, choices, repeated }]) => {
    const form = `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
    return [form, `${about}${choices ? ` (${choices.join(', ')})` : ''}${repeated ? '; may be repeated' : ''}`]
  })
}

function section(title: string, lines: readonly string[]): string {
  return `${styleText('bold', title, { stream: process.stdout })}\n${lines.join('\n')}`
}

function columns(rows: ReadonlyArray<readonly [string, string]>): string[] {
  const width = Math.max(...rows.map(([first]) => first.length))
  return rows.map(([first, second]) => `  ${first.padEnd(width)}   ${second}`)
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
