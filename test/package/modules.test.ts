import { describe, expect, it } from 'vitest'
import { moduleProblems } from '../../scripts/checks/pack/modules.ts'
import { tree } from './tree.ts'

const region = (path: string) => `//#region ${path}\nexport const kept = new WeakMap();\n//#endregion\n`

describe('the modules of the built package', () => {
  it('are each in one file, in a bundle and beside it', () => {
    const folder = tree({
      'heed.js': region('src/heed.ts'),
      'shared.js': region('src/errors.ts') + region('src/json.ts'),
      'deep/plain.js': 'export {}\n',
      'deep/plain.d.ts': '',
    })
    expect(moduleProblems(folder)).toEqual({ summary: '4 modules in 3 files', problems: [] })
  })

  it('are refused where one is in two files', () => {
    const folder = tree({
      'heed.js': region('src/errors.ts') + region('src/http/route.ts'),
      'server.js': region('src/errors.ts'),
      'http/route.js': 'export {}\n',
    })
    expect(moduleProblems(folder).problems).toEqual([
      'errors is in heed.js and server.js: build all entries from one graph.',
      'http/route is in heed.js and http/route.js: build all entries from one graph.',
    ])
  })

  it('are refused where a page would load Node', () => {
    const files = {
      'client.js': `import { a } from './shared.js'\nexport { a }\nexport const later = () => import('node:fs')\n`,
      'shared.js': `import { join } from 'node:path'\nexport const a = join\n`,
    }
    expect(moduleProblems(tree(files), ['client.js']).problems).toEqual(['client.js loads node:path with shared.js, which no browser has.'])
    expect(moduleProblems(tree(files)).problems).toEqual([])
  })
})
