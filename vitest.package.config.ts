import { join } from 'node:path'
import { defineConfig, type Plugin } from 'vitest/config'
import { entriesOf } from './scripts/checks/entries.ts'
import campaigns from './vitest.campaigns.config.ts'

/**
 * The campaigns of Studio on the installed package: its server, its pages and its client, where the other configurations have the sources.
 * `test/studio/from-package.ts` installs it and names its folder.
 */
const root = import.meta.dirname
const installed = process.env.HEED_PACKAGE
if (installed === undefined) throw new Error('HEED_PACKAGE names the folder of the installed package: run npm run test:studio.')
const files = new Map(entriesOf(root).map(({ name, source }) => [join(root, source), join(installed, 'dist', `${name}.js`)]))

/** An import of the source of an entry is one of the file that the package has for it. */
const packaged: Plugin = {
  name: 'packaged',
  enforce: 'pre',
  async resolveId(specifier, importer) {
    const resolved = await this.resolve(specifier, importer, { skipSelf: true })
    const file = resolved === null ? undefined : files.get(resolved.id)
    return file === undefined ? null : { id: file, external: true }
  },
}

export default defineConfig({
  ...campaigns,
  plugins: [packaged],
  test: {
    ...campaigns.test,
    projects: undefined,
    isolate: false,
    include: ['test/studio/*.campaign.ts'],
    env: { ...campaigns.test?.env, HEED_PACKAGE: installed },
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/studio.json' }]] : ['default'],
  },
})
