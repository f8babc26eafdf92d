import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { declaredOptions } from './declared.ts'
import type { Cited } from './probe.ts'
import { calls } from './probes/calls.ts'
import { constructors } from './probes/constructors.ts'
import { sends } from './probes/sends.ts'
import { threads } from './probes/threads.ts'

/** The classes whose constructors and methods are walked. */
const owners = ['Agent', 'AgentSchedules', 'Memory', 'Heed']
const probes = [...sends, ...calls, ...threads, ...constructors]

const recall = 'test/memory/specification/recall.test.ts'
const cited: Cited[] = [
  { file: recall, title: 'topK, messageRange and scope', covers: { SemanticRecallOptions: 'topK messageRange scope' } },
  { file: recall, title: 'options at the top, and enabled: true', covers: { SemanticRecallOptions: 'enabled', MemoryConfig: 'embedder' } },
  { file: recall, title: 'an embedder and the one before it; not the one before it alone', covers: { MemoryConfig: 'formerEmbedder' } },
  { file: 'test/memory/recall-window.test.ts', title: '[K2.14] a limit of the window, or of a block, that the program sets holds', covers: { SemanticRecallOptions: 'maxTokens maxWindowTokens' } },
  { file: 'test/tracing/traces.test.ts', title: '[T1.2] an error is told by its type and code alone unless what was said is recorded: its words may quote that', covers: { TracingOptions: 'recordInputs recordOutputs' } },
  { file: 'src/recall/index/index.test.ts', title: '[K1.8] reindexes with progress, and searches meanwhile', covers: { 'Memory.reindex': 'onProgress' } },
  { file: 'test/http/view.test.ts', title: '[U1.1] is the same when it begins with a snapshot in the middle', covers: { SubscribeOptions: 'snapshot' } },
  { file: 'test/thread/watching.test.ts', title: '[W1.1] that return too late start from a snapshot with the reason', covers: { SubscribeOptions: 'after' } },
  { file: 'test/agent/model-lists.test.ts', title: 'has settings, provider options and headers of its own, over those of the call', covers: { ModelConfig: 'modelSettings providerOptions headers' } },
  {
    file: 'test/start/silent-options.test.ts',
    title: '[G1.7] default options of the legacy methods are for each of them alone',
    covers: { AgentConfig: 'defaultGenerateOptionsLegacy defaultStreamOptionsLegacy' },
  },
  {
    file: recall,
    title: 'an index that the store does not support is rejected by name, in both forms',
    covers: { SemanticRecallOptions: 'indexConfig', VectorIndexConfig: 'type metric m efConstruction hnsw hnsw.m hnsw.efConstruction' },
  },
]

/** What is declared and what is shown, as `Owner.option`. */
const declared = [...declaredOptions(owners)].flatMap(([owner, options]) => [...options].map((option) => `${owner}.${option}`))
const shown = [...probes, ...cited].flatMap(({ covers }) =>
  Object.entries(covers).flatMap(([owner, options]) => options.split(' ').map((option) => `${owner}.${option}`)))

describe('every option of every public call', () => {
  it('[G1.12] has a probe or a test that shows its effect, or that it is rejected by name', () => {
    expect(declared.length).toBeGreaterThan(400)
    expect(declared.filter((option) => !shown.includes(option))).toEqual([])
    expect([...new Set(shown)].filter((option) => !declared.includes(option))).toEqual([])
  })

  it.each(cited)('$file: $title', ({ file, title, covers }) => {
    const text = readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
    const start = text.indexOf(title)
    expect(start).toBeGreaterThan(0)
    const [body = ''] = text.slice(start).split(/^ {2}it[.(]|^it[.(]|^describe/m)
    for (const option of Object.values(covers).join(' ').split(' ')) expect(body).toContain(option.split('.').at(-1))
  })

  it.each(probes)('[G1.12] $title', ({ run }) => run())
})
