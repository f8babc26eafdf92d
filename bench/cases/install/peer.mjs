import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyProject, npm } from '../../harness/prepare.mjs'
import { report } from '../../harness/side.mjs'
import { installed } from './installed.mjs'

const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const packages = ['@mastra/core', '@mastra/memory', '@mastra/libsql'].map((name) => `${name}@${dependencies[name]}`)
const project = emptyProject(mkdtempSync(join(tmpdir(), 'peer-')))
npm(project, ['install', ...packages, '--prefer-offline'])
report(installed(project))
