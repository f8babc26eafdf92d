#!/usr/bin/env node
// npm create heed: asks what was not given as an option, and makes the project.
import { spawnSync } from 'node:child_process'
import { relative } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { checkAnswers, packageManager, scaffold, ScaffoldError, templates } from './scaffold.js'

const usage = `npm create heed [DIRECTORY] -- [options]

Makes a project with Heed. Asks what is missing, on a terminal only.

Examples
  npm create heed my-agents
  npm create heed my-agents -- --template hono --model openai/gpt-5.5 --install

Options
  --template NAME   what the project has; else minimal
${Object.entries(templates).map(([name, about]) => `                      ${name.padEnd(12)}${about}`).join('\n')}
  --model MODEL     such as openai/gpt-5.5 or anthropic/claude-sonnet-4-6; none is a scripted model, without a key (else none)
  --install         install the packages
  --json            print JSON
  --help            print this help`

/** Ends with 2 if the arguments are wrong, with 1 if the project can't be made, and with 130 if the user ended the questions. */
export async function main(args, program = 'create-heed') {
  const isJSON = args.includes('--json')
  const fail = (code, message, remedy) => {
    const text = `${program}: ${message}${remedy === undefined ? '' : `\n  ${remedy}`}`
    console.error(isJSON ? JSON.stringify({ error: { code: code === 2 ? 'usage' : 'failed', message, retryable: false, details: { remedy } } }) : text)
    return code
  }
  let parsed
  try {
    const flag = { type: 'boolean', default: false }
    const options = { template: { type: 'string' }, model: { type: 'string' }, install: flag, json: flag, help: { ...flag, short: 'h' } }
    parsed = parseArgs({ args, options, allowPositionals: true })
    if (parsed.positionals.length > 1) throw new Error(`there is no place for '${parsed.positionals[1]}'`)
  } catch (error) {
    return fail(2, `${error.message.split('. ')[0]}.`, `${program} --help lists the options.`)
  }
  const { values, positionals } = parsed
  if (values.help) {
    console.log(usage)
    return 0
  }
  try {
    const answers = await answersOf({ directory: positionals[0], template: values.template, model: values.model, install: values.install }, isJSON)
    const made = scaffold(answers)
    if (answers.install) {
      const { status } = spawnSync(packageManager(), ['install'], { cwd: made.folder, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
      if (status !== 0) return fail(1, `${packageManager()} install failed in ${answers.directory}.`, 'The project is written: install it by hand.')
    }
    const steps = nextSteps(made, answers.install)
    console.log(isJSON ? JSON.stringify({ type: 'created', ...made, next: steps }) : `Made ${relative(process.cwd(), made.folder) || '.'} (${made.template}).`)
    if (!isJSON) console.error(`\nNext:\n${steps.map((step) => `  ${step}`).join('\n')}`)
    return 0
  } catch (error) {
    if (error instanceof Stopped) {
      console.error('\nNothing was written.')
      return 130
    }
    if (error instanceof ScaffoldError) return fail(error.isUsage ? 2 : 1, error.message, error.remedy)
    throw error
  }
}

/** The lines to type. */
function nextSteps({ folder, key }, isInstalled) {
  const path = relative(process.cwd(), folder)
  const manager = packageManager()
  return [
    ...(path === '' ? [] : [`cd ${/^[\w./~+-]+$/.test(path) ? path : `"${path}"`}`]),
    ...(isInstalled ? [] : [`${manager} install`]),
    ...(key === undefined ? [] : [`echo ${key}=… > .env`]),
    `${manager} run dev`,
  ]
}

/** The user ended the questions: Ctrl-C or Ctrl-D. */
class Stopped extends Error {}

/** Asks for what is missing, on a terminal and outside of CI only. */
async function answersOf(given, isJSON) {
  const isAsking = process.stdin.isTTY && process.stdout.isTTY && !process.env.CI && !isJSON
  if (!isAsking) return { directory: given.directory ?? 'my-agents', template: given.template ?? 'minimal', model: given.model ?? 'none', install: given.install }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Lines, not questions: what is typed or pasted ahead is kept.
  const lines = terminal[Symbol.asyncIterator]()
  const ask = async (question, fallback, check = () => {}) => {
    terminal.setPrompt(`${question} (${fallback}): `)
    terminal.prompt()
    const { value, done } = await lines.next()
    if (done) throw new Stopped()
    const answer = value.trim() || fallback
    try {
      check(answer)
      return answer
    } catch (error) {
      if (!(error instanceof ScaffoldError)) throw error
      process.stderr.write(`  ${error.message}\n  ${error.remedy}\n`)
      return ask(question, fallback, check)
    }
  }
  try {
    const directory = given.directory ?? (await ask('Folder', 'my-agents', (one) => checkAnswers({ directory: one })))
    checkAnswers({ ...given, directory })
    const known = Object.keys(templates).join(', ')
    const template = given.template ?? (await ask(`Template: ${known}`, 'minimal', (one) => checkAnswers({ directory, template: one })))
    const asked = 'Model, such as openai/gpt-5.5; none needs no key'
    const model = given.model ?? (await ask(asked, 'none', (one) => checkAnswers({ directory, model: one })))
    const install = given.install || /^y/i.test(await ask('Install the packages now', 'yes'))
    return { directory, template, model, install }
  } finally {
    terminal.close()
  }
}

// Also where npm started it by a link.
if (/create-heed(\.js)?$/.test(process.argv[1] ?? '')) process.exitCode = await main(process.argv.slice(2))
