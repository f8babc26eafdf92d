import { expect, it } from 'vitest'
import type { MessageRow } from '../../message/row.ts'
import { OpenMessage } from './run-history.ts'

const row = (role: MessageRow['role'], messageId = 'm', toolCallId?: string): MessageRow => ({
  id: `${messageId}/${role}`,
  messageId,
  role,
  createdAt: new Date(0),
  content: {
    format: 2,
    parts:
      toolCallId === undefined ? [] : [{ type: 'tool-invocation', toolInvocation: { toolCallId, toolName: 't', args: {}, state: 'call' } }],
  },
})

function open() {
  let count = 0
  return new OpenMessage(() => `id-${++count}`)
}

it('an open message continues over steps and results, and ends when a signal or a user message is stored after it', () => {
  const message = open()
  expect(message.next()).toBe('id-1')
  message.follow([row('assistant'), row('tool'), row('context')])
  expect(message.next()).toBe('id-1')
  message.follow([row('tool'), row('signal')])
  expect(message.sealed).toBe(true)
  expect(message.id).toBe('id-1')
  expect(message.next()).toBe('id-2')
  message.follow([row('assistant'), row('user')])
  expect(message.next()).toBe('id-3')
})

it('an open message does not end before it began', () => {
  const message = open()
  message.follow([row('signal')])
  expect(message.next()).toBe('id-1')
})

it('an open message is resumed by one of its calls, or by its id', () => {
  const rows = [row('assistant', 'm1', 'c1'), row('tool', 'm1'), row('assistant', 'm2', 'c1')]
  const byCall = open()
  byCall.resume([...rows, row('signal', 's')], { toolCallId: 'c1' })
  expect([byCall.id, byCall.sealed, byCall.next()]).toEqual(['m2', true, 'id-2'])
  const byId = open()
  byId.resume(rows, { messageId: 'm1' })
  expect([byId.id, byId.sealed]).toEqual(['m1', false])
  byId.follow([row('signal')])
  expect(byId.next()).toBe('id-2')
  const unknown = open()
  unknown.resume(rows, {})
  expect(unknown.id).toBe('id-1')
})
