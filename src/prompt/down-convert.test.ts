import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import type { ModelToolOutput } from '../message/message.ts'
import { toV2Prompt, toV3Prompt } from './down-convert.ts'

const url = new URL('https://example.com/a.png')
const image = { type: 'file' as const, mediaType: 'image/png' }
const output = (value: ModelToolOutput): LanguageModelV4Message =>
  ({ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output: value }] })

const prompt: LanguageModelV4Prompt = [
  { role: 'system', content: 's' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'u' },
      { ...image, data: { type: 'data', data: 'AAEC' }, filename: 'a.png' },
      { ...image, data: { type: 'url', url } },
      { type: 'file', mediaType: 'image', data: { type: 'data', data: new Uint8Array([1]) } },
      { type: 'file', mediaType: 'text/plain', data: { type: 'text', text: 'hi' } },
      { ...image, data: { type: 'reference', reference: { openai: 'file-1' } } },
    ],
    providerOptions: { openai: { a: 1 } },
  },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'r' },
      { type: 'custom', kind: 'a.b' },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url } },
      { type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} },
    ],
  },
  output({ type: 'execution-denied', reason: 'no' }),
  output({ type: 'content', value: [
    { type: 'text', text: 'see' },
    { ...image, data: { type: 'data', data: new Uint8Array([0, 1, 2]) } },
    { ...image, data: { type: 'url', url } },
    { type: 'file', mediaType: 'application/pdf', data: { type: 'data', data: 'AAEC' }, filename: 'a.pdf' },
    { type: 'file', mediaType: 'application/pdf', data: { type: 'reference', reference: { openai: 'file-1' } } },
    { type: 'custom' },
  ] }),
  { role: 'assistant', content: [{ type: 'custom', kind: 'a.b' }] },
  { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'x', approved: true }] },
]

const oldUser = {
  role: 'user',
  content: [
    { type: 'text', text: 'u' },
    { ...image, data: 'AAEC', filename: 'a.png' },
    { ...image, data: url },
    { type: 'file', mediaType: 'image/*', data: new Uint8Array([1]) },
    { type: 'file', mediaType: 'text/plain', data: btoa('hi') },
  ],
  providerOptions: { openai: { a: 1 } },
}
const oldAssistant = {
  role: 'assistant',
  content: [{ type: 'reasoning', text: 'r' }, { type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} }],
}
const result = (value: object) => ({ role: 'tool', content: [
  { type: 'tool-result', toolCallId: 'c', toolName: 't', output: value },
] })

describe('a prompt for models of earlier interface versions', () => {
  it('has untagged files and version 3 results', () => {
    expect(toV3Prompt(prompt)).toEqual([
      { role: 'system', content: 's' },
      oldUser,
      oldAssistant,
      result({ type: 'execution-denied', reason: 'no' }),
      result({ type: 'content', value: [
        { type: 'text', text: 'see' },
        { type: 'image-data', data: 'AAEC', mediaType: 'image/png' },
        { type: 'image-url', url: url.href },
        { type: 'file-data', data: 'AAEC', mediaType: 'application/pdf', filename: 'a.pdf' },
        { type: 'file-id', fileId: { openai: 'file-1' } },
        { type: 'custom' },
      ] }),
      { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'x', approved: true }] },
    ])
  })

  it('has version 2 results: denials as errors, media, and no approvals', () => {
    expect(toV2Prompt(prompt)).toEqual([
      { role: 'system', content: 's' },
      oldUser,
      oldAssistant,
      result({ type: 'error-text', value: 'no' }),
      result({ type: 'content', value: [
        { type: 'text', text: 'see' },
        { type: 'media', data: 'AAEC', mediaType: 'image/png' },
        { type: 'text', text: url.href },
        { type: 'media', data: 'AAEC', mediaType: 'application/pdf' },
      ] }),
    ])
  })

  it('is converted once per message, so that a growing thread costs only its new messages', () => {
    const [first] = toV3Prompt(prompt.slice(1, 2))
    expect(toV3Prompt(prompt)[1]).toBe(first)
    expect(toV2Prompt(prompt)[1]).toBe(toV2Prompt(prompt)[1])
  })
})
