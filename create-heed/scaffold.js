// Makes a project of a template. No dependencies, and nothing that Node 20 lacks: `npm create heed` may run on it.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

/** The templates, by name, with what they have. */
export const templates = {
  minimal: 'an agent with a tool, and a test',
  hono: 'the same behind a Hono server, with keys',
  next: 'a Next.js app: the API as a route, and a page',
  'vite-react': 'the same with a page, made with Vite and React',
}

/** The package of each provider, and the variable with its key. */
const providers = {
  openai: { package: '@ai-sdk/openai', version: '^4.0.0', key: 'OPENAI_API_KEY' },
  anthropic: { package: '@ai-sdk/anthropic', version: '^4.0.0', key: 'ANTHROPIC_API_KEY' },
}

export class ScaffoldError extends Error {
  /** @param {string} message @param {string} remedy @param {boolean} [isUsage] */
  constructor(message, remedy, isUsage = false) {
    super(message)
    this.remedy = remedy
    /** The arguments are wrong, whatever is on the disk. */
    this.isUsage = isUsage
  }
}

/**
 * Checks the answers before anything is written.
 * @param {{ directory: string, template?: string, model?: string }} answers
 */
export function checkAnswers({ directory, template = 'minimal', model = 'none' }) {
  if (!Object.hasOwn(templates, template))
    throw new ScaffoldError(`there is no template '${template}'.`, `Templates: ${Object.keys(templates).join(', ')}`, true)
  const [provider = '', name = ''] = model.split(/\/(.*)/s)
  if (model !== 'none' && !(Object.hasOwn(providers, provider) && /^[\w./:-]+$/.test(name)))
    throw new ScaffoldError(`'${model}' is not a model.`, `none, or one of ${Object.keys(providers).map((one) => `${one}/…`).join(', ')}`, true)
  const folder = resolve(directory)
  const found = existsSync(folder) ? readdirSync(folder).filter((entry) => entry !== '.git') : []
  if (found.length > 0) {
    const shown = found.length > 5 ? `${found.slice(0, 5).join(', ')} …` : found.join(', ')
    throw new ScaffoldError(`${directory} is not empty: ${shown}.`, 'Name another folder. Nothing was written.')
  }
  return { folder, template, model, provider: model === 'none' ? undefined : providers[provider] }
}

/**
 * Writes the project. Returns what to type next.
 * @param {{ directory: string, template?: string, model?: string }} answers
 */
export function scaffold(answers) {
  const { folder, template, model, provider } = checkAnswers(answers)
  const { version } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
  mkdirSync(folder, { recursive: true })
  for (const source of ['shared', template]) cpSync(join(here, 'templates', source), folder, { recursive: true })
  // npm leaves files of these names out of a package.
  for (const name of ['gitignore', 'env.example']) renameSync(join(folder, `_${name}`), join(folder, `.${name}`))
  const name = nameOf(folder)
  edit(join(folder, 'package.json'), (text) => {
    const manifest = JSON.parse(text)
    manifest.name = name
    manifest.dependencies.heed = `^${version}`
    if (provider) manifest.dependencies[provider.package] = provider.version
    return `${JSON.stringify(manifest, null, 2)}\n`
  })
  if (provider) {
    writeFileSync(join(folder, 'model.ts'), `/** Needs ${provider.key} in the environment, or in .env. */\nexport const model = '${model}'\n`)
    edit(join(folder, '.env.example'), (text) => `${text}${provider.key}=\n`)
  }
  edit(join(folder, 'README.md'), (text) => text.replaceAll('{{name}}', name))
  return { folder, name, template, model, key: provider?.key }
}

/** @param {string} file @param {(text: string) => string} change */
function edit(file, change) {
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

/** The name of a package for a folder. @param {string} folder */
function nameOf(folder) {
  return basename(folder).toLowerCase().replace(/[^a-z0-9._-]+/g, '-').replace(/^[._-]+/, '') || 'my-agents'
}

/** The package manager that runs this program. */
export function packageManager() {
  return /^(npm|pnpm|yarn|bun)\//.exec(process.env.npm_config_user_agent ?? '')?.[1] ?? 'npm'
}
