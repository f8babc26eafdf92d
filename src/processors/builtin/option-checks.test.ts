import { describe, expect, it } from 'vitest'
import {
  AttachmentUploader, browserLane, fileReminder, ModerationProcessor, PIIDetector, PromptInjectionDetector, RegexFilter, SystemPromptScrubber, TokenLimiter, ToolCallFilter, UnicodeNormalizer,
} from '../index.ts'

const judge = { generate: async () => ({}) }
const upload = async () => ''
const pattern = /a/
const presets = ['secrets']

type Make = (options: never) => unknown
/** For each processor, invalid options, and the one that the error names. */
const wrong: Array<[string, Make, Array<[field: string, options: unknown]>]> = [
  ['TokenLimiter', (options) => new TokenLimiter(options), [
    ['TokenLimiter', undefined], ['TokenLimiter', '5'], ['limit', {}], ['limit', { limit: '5' }], ['limit', 0], ['limit', Number.NaN], ['strategy', { limit: 5, strategy: 'cut' }], ['countTokens', { limit: 5, countTokens: 7 }],
    ['max', { limit: 5, max: 7 }],
  ]],
  ['ToolCallFilter', (options) => new ToolCallFilter(options), [
    ['ToolCallFilter', null], ['exclude', { exclude: 'read_file' }], ['exclude', { exclude: [7] }], ['keepLast', { keepLast: -1 }], ['keepLast', { keepLast: '2' }],
  ]],
  ['UnicodeNormalizer', (options) => new UnicodeNormalizer(options), [
    ['form', { form: 'x' }], ['stripControl', { stripControl: 'no' }], ['collapseWhitespace', { collapseWhitespace: 1 }], ['preserveEmoji', { preserveEmoji: null }],
  ]],
  ['RegexFilter', (options) => new RegexFilter(options), [
    ['RegexFilter', undefined], ['presets', {}], ['presets', { presets: 'secrets' }], ['presets', { presets: ['toString'] }], ['presets', { presets: ['constructor'] }], ['presets', { presets: [7] }], ['rules', { rules: 'a' }],
    ['rules', { rules: [null] }], ['rules', { rules: [{ pattern }] }], ['rules', { rules: [{ name: 'x' }] }], ['rules', { rules: [{ name: 'x', pattern: 'a' }] }], ['rules', { rules: [{ name: 'x', pattern, opening: 'a' }] }],
    ['rules', { rules: [{ name: 'x', pattern, measure: 7 }] }], ['rules', { rules: [{ name: 'x', pattern, replacement: '' }] }], ['rules', { rules: [{ name: 'x', pattern, replacement: 7 }] }],
    ['strategy', { presets, strategy: 'bloc' }], ['phases', { presets, phases: [] }], ['phases', { presets, phases: 'input' }], ['phases', { presets, phases: ['in'] }], ['phases', { presets, phases: 7 }],
    ['holdBack', { presets, holdBack: 0 }], ['holdBack', { presets, holdBack: '9' }],
  ]],
  ['AttachmentUploader', (options) => new AttachmentUploader(options), [
    ['AttachmentUploader', undefined], ['upload', {}], ['upload', { upload: 'x' }], ['minBytes', { upload, minBytes: -1 }], ['minBytes', { upload, minBytes: 'x' }], ['concurrency', { upload, concurrency: 0 }],
  ]],
  ['fileReminder()', fileReminder as Make, [
    ['fileReminder()', undefined], ['load', {}], ['load', { load: 7 }], ['files', { load: upload, files: ['a'] }], ['tagType', { load: upload, tagType: 7 }], ['id', { load: upload, id: '' }],
  ]],
  ['browserLane()', browserLane as Make, [
    ['browserLane()', undefined], ['read', {}], ['read', { read: 7 }], ['maxDeltas', { read: upload, maxDeltas: 0 }], ['maxTabs', { read: upload, maxTabs: 1.5 }],
  ]],
  ...([['moderation', ModerationProcessor], ['pii-detector', PIIDetector], ['prompt-injection-detector', PromptInjectionDetector], ['system-prompt-scrubber', SystemPromptScrubber]] as const)
    .map(([name, Class]): [string, Make, Array<[string, unknown]>] => [name, (options) => new Class(options), [
      [Class.name, undefined], ['judge', {}], ['judge', { judge: 7 }], ['threshold', { judge, threshold: 2 }], ['threshold', { judge, threshold: '0.5' }], ['onFailure', { judge, onFailure: 'pass' }],
      ['timeoutMs', { judge, timeoutMs: -1 }], ['timeoutMs', { judge, timeoutMs: '5' }], ['instructions', { judge, instructions: 7 }], ['clock', { judge, clock: {} }], ['strategy', { judge, strategy: 'bloc' }],
    ]]),
  ['moderation', (options) => new ModerationProcessor(options), [
    ['phases', { judge, phases: [] }], ['phases', { judge, phases: 'input' }], ['phases', { judge, phases: 7 }], ['hold', { judge, hold: 'yes' }], ['categories', { judge, categories: [] }], ['categories', { judge, categories: 'hate' }],
  ]],
  ['pii-detector', (options) => new PIIDetector(options), [['phases', { judge, phases: [] }], ['hold', { judge, hold: 1 }], ['types', { judge, types: [] }], ['types', { judge, types: [7] }]]],
  ['prompt-injection-detector', (options) => new PromptInjectionDetector(options), [['phases', { judge, phases: [] }], ['phases', { judge, phases: ['output'] }]]],
  ['system-prompt-scrubber', (options) => new SystemPromptScrubber(options), [['hold', { judge, hold: 'yes' }], ['prompt', { judge, prompt: 7 }], ['placeholder', { judge, placeholder: '' }]]],
]

describe('the options of built-in processors', () => {
  const cases = wrong.flatMap(([name, make, tried]) => tried.map(([field, options]) => ({ name, make, field, options, given: String(JSON.stringify(options)) })))

  it.each(cases)('[G2.13] $name names $field in its error: $given', ({ make, field, options }) => {
    let refused: unknown
    try {
      make(options as never)
    } catch (error) {
      refused = error
    }
    const { code, message, details } = refused as { code: string; message: string; details: { field?: string; option?: string; limit?: unknown; form?: unknown } }
    expect(['invalid_argument', 'unsupported_option']).toContain(code)
    expect([details.field ?? details.option, message].join(' ')).toContain(field)
  })
})
