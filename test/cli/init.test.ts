import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commands } from '../../src/cli/commands/index.ts'
import { heed } from './heed-process.ts'
import { project } from './project.ts'

const root = join(import.meta.dirname, '../..')
const templates = readdirSync(join(root, 'create-heed/templates')).filter((name) => name !== 'shared')

function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true }).map(String).filter((name) => statSync(join(folder, name)).isFile())
  return Object.fromEntries(names.toSorted().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

const packageOf = (text: string | undefined) => JSON.parse(text ?? '{}') as { name: string; version: string; dependencies: Record<string, string> }

describe('heed init', () => {
  it('[C5.1] makes each template, without a terminal and without a key, and ends with the lines to type', async () => {
    const { folder } = project({})
    const made = await Promise.all(templates.map(async (template) => {
      return { template, ...(await heed(['init', `my ${template}`, '--template', template], { cwd: folder })) }
    }))
    for (const { template, code, output, errors } of made) {
      expect({ code, output, errors }).toEqual({
        code: 0, output: `Made my ${template} (${template}).\n`, errors: `\nNext:\n  cd "my ${template}"\n  npm install\n  npm run dev\n`,
      })
      const files = filesOf(join(folder, `my ${template}`))
      for (const name of ['.env.example', '.gitignore', 'AGENTS.md', 'README.md', 'heed.ts', 'heed.test.ts', 'model.ts', 'package.json', 'tsconfig.json'])
        expect(Object.keys(files)).toContain(name)
      expect(packageOf(files['package.json'])).toMatchObject({ name: `my-${template}`, dependencies: { heed: '^0.1.0' } })
      expect(files['README.md']).toContain(`# my-${template}\n`)
      expect(Object.values(files).join('\n')).not.toMatch(/\{\{|sk-/)
    }
  })

  it('[C5.1] the packages of a page have exact versions, and the page is the same in each template', () => {
    const read = (path: string) => readFileSync(join(root, 'create-heed/templates', path), 'utf8')
    const pages = templates.filter((template) => 'react' in packageOf(read(`${template}/package.json`)).dependencies)
    expect(pages).toEqual(['next', 'vite-react'])
    for (const template of pages) {
      const { dependencies, devDependencies } = JSON.parse(read(`${template}/package.json`)) as Record<string, Record<string, string>>
      const own = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) => !['heed', 'zod', '@types/node', 'typescript'].includes(name))
      expect(own.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
      // Versions that the tests of the project itself run with.
      const { devDependencies: ours } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { devDependencies: Record<string, string> }
      for (const name of ['react', 'react-dom']) expect(dependencies?.[name]).toBe(ours[name])
    }
    expect(read('next/app/chat.tsx')).toBe(read('vite-react/src/chat.tsx'))
    expect(read('next/app/style.css')).toBe(read('vite-react/src/style.css'))
  })

  it('[C5.1] writes the model and names the variable of its key', async () => {
    const { folder } = project({})
    const { code, output, errors } = await heed(['init', 'app', '--model', 'openai/gpt-5.5', '--json'], { cwd: folder })
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(JSON.parse(output)).toMatchObject({
      type: 'created', name: 'app', template: 'minimal', key: 'OPENAI_API_KEY', next: ['cd app', 'npm install', 'echo OPENAI_API_KEY=… > .env', 'npm run dev'],
    })
    const files = filesOf(join(folder, 'app'))
    expect(files['model.ts']).toContain("export const model = 'openai/gpt-5.5'")
    expect(packageOf(files['package.json']).dependencies).toHaveProperty('@ai-sdk/openai')
    expect(files['.env.example']).toContain('OPENAI_API_KEY=\n')
  })

  it('[C5.2] refuses a folder with files by their names, and wrong answers, and changes nothing', async () => {
    const { folder } = project({ 'app/notes.txt': 'mine' })
    mkdirSync(join(folder, 'empty'))
    const [full, template, model, place, empty] = await Promise.all([
      heed(['init', 'app'], { cwd: folder }),
      heed(['init', 'x', '--template', 'hon'], { cwd: folder }),
      heed(['init', 'x', '--model', 'gpt'], { cwd: folder }),
      heed(['init', 'x', 'y'], { cwd: folder }),
      heed(['init', 'empty'], { cwd: folder }),
    ])
    expect(full).toEqual({ code: 1, output: '', errors: 'heed init: app is not empty: notes.txt.\n  Name another folder. Nothing was written.\n' })
    expect(filesOf(join(folder, 'app'))).toEqual({ 'notes.txt': 'mine' })
    expect(template).toEqual({ code: 2, output: '', errors: 'heed init: --template is one of minimal, hono, next, vite-react.\n  Did you mean hono?\n' })
    expect(model).toEqual({ code: 2, output: '', errors: "heed init: 'gpt' is not a model.\n  none, or one of openai/…, anthropic/…\n" })
    expect(place.code).toBe(2)
    expect(empty.code).toBe(0)
    expect(readdirSync(folder).toSorted()).toEqual(['app', 'empty'])
    const again = await heed(['init', 'empty'], { cwd: folder })
    expect(again).toMatchObject({ code: 1, output: '' })
  })

  it('[C5.1] create-heed has the version of heed, and its templates are the choices of heed init', () => {
    const versionOf = (path: string) => packageOf(readFileSync(join(root, path), 'utf8')).version
    expect(versionOf('create-heed/package.json')).toBe(versionOf('package.json'))
    const choices = commands.find(({ name }) => name === 'init')?.options?.template?.choices
    expect(choices?.toSorted()).toEqual(templates.toSorted())
  })
})
