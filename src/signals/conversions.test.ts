import { describe, expect, it } from 'vitest'
import type { DataChunk } from '../message/chunk.ts'
import { isHeedError } from '../base/errors.ts'
import type { Message, MessageContent, MessageRole } from '../message/message.ts'
import { createdSignal, isUserAuthored, rowToSignal, signalToDataChunk, signalToRow } from './conversions.ts'
import { messageInputToSignal, normalizeSignal } from './normalize.ts'
import { renderSignal } from './render.ts'

const context = { id: 's1', now: Date.parse('2026-03-01T10:00:00.000Z') }
const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
const full = {
  ...normalizeSignal(
    {
      type: 'notification',
      tagName: 'build',
      contents: [
        { type: 'text', text: 'Broken', providerOptions },
        { type: 'file', data: 'AAAA', mediaType: 'image/png', filename: 'a.png' },
      ],
      attributes: { source: 'ci', run: 7 },
      metadata: { url: 'https://example.com' },
      providerOptions,
    },
    context,
  ),
  acceptedAt: '2026-03-01T10:00:01.000Z',
}

const message = (role: MessageRole, content: Partial<MessageContent> & Record<string, unknown>, type?: string): Message => ({
  id: 'row1',
  role,
  createdAt: new Date('2025-01-01T00:00:00.000Z'),
  ...(type !== undefined && { type }),
  content: { format: 2, parts: [], ...content },
})

/** A row of an older writer, where parts and records take shapes that ours do not. */
const older = (content: Record<string, unknown>, type?: string) => message('signal', content, type)

describe('rows', () => {
  it('keep the signal beside its parts', () => {
    expect(signalToRow(full, { threadId: 't1', resourceId: 'r1' })).toStrictEqual({
      id: 's1',
      messageId: 's1',
      role: 'signal',
      type: 'build',
      threadId: 't1',
      resourceId: 'r1',
      createdAt: new Date('2026-03-01T10:00:00.000Z'),
      content: {
        format: 2,
        parts: [
          { type: 'text', text: 'Broken', providerMetadata: providerOptions },
          { type: 'file', data: 'AAAA', mimeType: 'image/png', filename: 'a.png' },
        ],
        metadata: {
          signal: {
            id: 's1',
            type: 'notification',
            tagName: 'build',
            attributes: { source: 'ci', run: 7 },
            metadata: { url: 'https://example.com' },
            createdAt: '2026-03-01T10:00:00.000Z',
            acceptedAt: '2026-03-01T10:00:01.000Z',
          },
        },
        providerMetadata: providerOptions,
      },
    })
  })

  it('of plain messages are signals too', () => {
    const row = signalToRow(messageInputToSignal('Hi', context), { threadId: 't1', messageId: 'm1' })
    expect(row).toMatchObject({ id: 's1', messageId: 'm1', role: 'signal', type: 'user' })
    expect(row.content.parts).toStrictEqual([{ type: 'text', text: 'Hi' }])
    expect(row).not.toHaveProperty('resourceId')
  })

  it('give the signal back', () => {
    expect(rowToSignal(signalToRow(full, { threadId: 't1' }))).toStrictEqual(full)
    const guarded = messageInputToSignal('<user>', context)
    expect(rowToSignal(signalToRow(guarded, { threadId: 't1' }))).toStrictEqual(guarded)
    expect(guarded.guarded).toBe(true)
  })

  it('give the signal back as a message under another id', () => {
    const row = { ...signalToRow(full, { threadId: 't1' }), id: 'message-7' }
    expect(rowToSignal(row).id).toBe('s1')
  })
})

describe('rows of older writers', () => {
  it.each([
    ['text', 'stashed', 'stashed'],
    ['parts', [{ type: 'text', text: 'stashed' }], 'stashed'],
    ['a message', { role: 'user', content: 'stashed' }, 'stashed'],
    ['a message of parts', { role: 'user', content: [{ type: 'text', text: 'stashed' }] }, 'stashed'],
    [
      'messages and images',
      [{ role: 'user', content: 'a' }, { role: 'user', content: [{ type: 'image', image: '/9j/4AAQ' }] }],
      [{ type: 'text', text: 'a' }, { type: 'file', data: '/9j/4AAQ', mediaType: 'image/jpeg' }],
    ],
    ['an unknown part', [{ type: 'text', text: 'stashed' }, { type: 'hologram' }], 'shown'],
    ['a message of an assistant', { role: 'assistant', content: 'stashed' }, 'shown'],
    ['nothing', [], 'shown'],
    ['a number', 7, 'shown'],
  ])('prefer contents kept beside the parts when they can be read: %s', (_, contents, expected) => {
    const row = older({ parts: [{ type: 'text', text: 'shown' }], metadata: { signal: { type: 'user-message', contents } } })
    expect(rowToSignal(row).contents).toStrictEqual(expected)
  })

  it.each<[Record<string, unknown> | undefined, string | undefined, string, string]>([
    [{ type: 'user-message' }, 'user-message', 'user', 'user'],
    [{ type: 'system-reminder' }, 'system-reminder', 'reactive', 'system-reminder'],
    [{ type: 'notification' }, 'pull-review', 'notification', 'pull-review'],
    [{ type: 'notification', tagName: 'a>b' }, undefined, 'notification', 'notification'],
    [{ type: 'system-reminder' }, 'v2', 'reactive', 'system-reminder'],
    [{ type: 'notification' }, 'v2', 'notification', 'notification'],
    [{ type: 'user-message' }, 'v2', 'user', 'user'],
    [{ type: 'email' }, 'v2', 'reactive', 'email'],
    [{ type: 'email' }, 'pull-review', 'reactive', 'email'],
    [{ type: 'state' }, 'text', 'state', 'state'],
    [{}, 'v2', 'user', 'user'],
    [{}, 'system-reminder', 'reactive', 'system-reminder'],
    [{}, 'email', 'reactive', 'email'],
    [{ type: 'email' }, undefined, 'reactive', 'email'],
    [{ type: 'not a name' }, undefined, 'reactive', 'system-reminder'],
    [{}, undefined, 'user', 'user'],
    [undefined, undefined, 'user', 'user'],
  ])('record %j in a row of type %s is %s with the tag %s', (record, rowType, type, tagName) => {
    const row = older({ parts: [{ type: 'text', text: 'x' }], metadata: record && { signal: record } }, rowType)
    expect(rowToSignal(row)).toMatchObject({ id: 'row1', type, tagName, createdAt: '2025-01-01T00:00:00.000Z' })
    expect(isUserAuthored(row)).toBe(type === 'user')
  })

  it('lose what cannot be written, and nothing else', () => {
    const attributes = { ok: 1, 'not ok': 2, none: null, list: [1] }
    const image = { type: 'image', url: 'https://example.com/a', mimeType: 'image/webp' }
    const parts = [{ type: 'data-x', data: 1 }, image, { type: 'step-start' }]
    const row = older({ parts, metadata: { signal: { type: 'state', attributes, createdAt: 'long ago' } } })
    expect(rowToSignal(row)).toStrictEqual({
      id: 'row1',
      type: 'state',
      tagName: 'state',
      contents: [{ type: 'file', data: 'https://example.com/a', mediaType: 'image/webp' }],
      attributes: { ok: 1, list: '[1]' },
      createdAt: '2025-01-01T00:00:00.000Z',
    })
  })

  it('of users give text and attachments', () => {
    const row = message('user', {
      content: 'Look',
      experimental_attachments: [{ url: 'https://example.com/a.pdf', contentType: 'application/pdf', name: 'a.pdf' }],
    })
    expect(rowToSignal(row)).toMatchObject({
      type: 'user',
      tagName: 'user',
      contents: [
        { type: 'text', text: 'Look' },
        { type: 'file', data: 'https://example.com/a.pdf', mediaType: 'application/pdf', filename: 'a.pdf' },
      ],
    })
  })

  it('of assistants are no signals', () => {
    expect(() => rowToSignal(message('assistant', {}))).toThrow(expect.toSatisfy(isHeedError))
    expect(isUserAuthored(message('assistant', {}))).toBe(false)
    expect(isUserAuthored(message('user', {}))).toBe(true)
  })
})

describe('echoes', () => {
  it('have every field but guarded, and are transient', () => {
    const { guarded: _, ...signal } = messageInputToSignal('<user>', context)
    const chunk: DataChunk = signalToDataChunk({ ...signal, guarded: true }, 'run1')
    expect(chunk).toStrictEqual({ type: 'data-user-message', data: signal, transient: true, runId: 'run1' })
    expect(signalToDataChunk(full, 'run1')).toStrictEqual({ type: 'data-signal', data: full, transient: true, runId: 'run1' })
  })
})

describe('the signal of a receipt', () => {
  const created = createdSignal(full)

  it('has dates for times and converts itself', () => {
    expect(created).toMatchObject({ ...full, createdAt: new Date(full.createdAt), acceptedAt: new Date(full.acceptedAt) })
    const { messageId: _, ...stored } = signalToRow(full, { threadId: 't1', resourceId: 'r1' })
    expect(created.toDBMessage({ threadId: 't1', resourceId: 'r1' })).toStrictEqual(stored)
    expect(created.toDBMessage()).not.toHaveProperty('threadId')
    expect(created.toLLMMessage()).toStrictEqual(renderSignal(full))
    expect(created.toDataPart()).toStrictEqual({ type: 'data-signal', data: full, transient: true })
  })

  it('can be cloned and sent again', () => {
    expect(structuredClone(created)).toMatchObject({ id: 's1', contents: full.contents })
    expect(Object.keys(created)).not.toContain('toDBMessage')
    const { acceptedAt: _, ...again } = full
    expect(normalizeSignal(created, context)).toStrictEqual(again)
  })
})
