import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { runEvals, type ScorerFunction } from '../../src/scorers/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

interface Autoevals {
  Levenshtein: ScorerFunction
  ExactMatch: ScorerFunction
  Factuality: ScorerFunction
  init(options: object): void
}

/** The package as a user installs it. */
async function installed(): Promise<Autoevals> {
  const folder = mkdtempSync(join(tmpdir(), 'heed-autoevals-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  execFileSync('npm', ['install', 'autoevals@0.3.0', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: folder, stdio: 'pipe' })
  writeFileSync(join(folder, 'all.js'), "export * from 'autoevals'")
  return (await import(pathToFileURL(join(folder, 'all.js')).href)) as Autoevals
}

/** A model that chooses C, in the protocol that the judges of the package speak. */
async function judgeServer(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const call = { type: 'function_call', id: 'i', call_id: 'c', name: 'select_choice', arguments: '{"choice":"C","reasons":"It says the same."}' }
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: 'r', object: 'response', output: [call] }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  onTestFinished(() => void server.close())
  return `http://localhost:${(server.address() as AddressInfo).port}/v1`
}

it('[J3.5] scorers of the package autoevals score a function and an agent, in code and by a judge', async () => {
  const { Levenshtein, ExactMatch, Factuality } = await installed()
  process.env.OPENAI_API_KEY = 'key'
  process.env.OPENAI_BASE_URL = await judgeServer()
  onTestFinished(() => {
    delete process.env.OPENAI_API_KEY
    delete process.env.OPENAI_BASE_URL
  })
  const data = [{ input: 'Sintra', groundTruth: 'Take the train to Sintra.' }, { input: 'Porto', groundTruth: 'Take the bus to Porto.' }]
  const scorers = [Levenshtein, { scorer: ExactMatch, threshold: 0.5 }, Factuality]
  const ofFunction = await runEvals({ target: async (city: string) => `Take the train to ${city}.`, data, scorers })
  expect(ofFunction).toMatchObject({ verdict: 'passed', scores: { ExactMatch: 0.5, Factuality: 1 }, items: [{ scores: { Levenshtein: 1 }, reasons: { Factuality: 'It says the same.' } }, {}] })
  expect(ofFunction.items[1]?.scores.Levenshtein).toBeCloseTo(0.79, 2)
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Take the train to Sintra.', 'Take the train to Porto.']) })
  expect(await runEvals({ target: agent, data, scorers })).toMatchObject({ verdict: 'passed', scores: ofFunction.scores })
}, 180_000)
