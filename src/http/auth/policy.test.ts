import { describe, expect, it } from 'vitest'
import { allRoutes } from '../routes/index.ts'
import type { Operations } from '../routes/operations.ts'
import { policyQuestion, userPrincipal, type PolicyCall } from './policy.ts'
import { principalFlaw } from './principal.ts'

const web = { id: 'web', resources: ['alice'], scopes: ['threads:read'] }
const call = (fields: Partial<PolicyCall> = {}): PolicyCall => ({ principal: web, params: {}, query: {}, body: {}, ...fields })
const routes = allRoutes({ openApi: () => ({}) } as unknown as Operations)

describe('what a request asks of the policies', () => {
  it('[V4.9] every route asks one action or, where it concerns no thread, none', () => {
    const asked = (action?: string) =>
      routes.filter((route) => policyQuestion(route, call())?.action === action).map(({ method, path }) => `${method} ${path}`)
    expect(asked()).toEqual([
      'GET /agents', 'GET /agents/:agentId', 'GET /agents/:agentId/tools/:toolId',
      ...['GET /editor', 'GET /editor/agents', 'GET /versions', 'POST /versions', 'POST /versions/preview', 'DELETE /versions/:version', 'GET /versions/compare', 'GET /versions/:version', 'GET /releases', 'POST /releases', 'POST /releases/rollback'].map((route) => (route === 'GET /editor/agents' ? route : route.replace(' ', ' /agents/:agentId'))),
      ...['GET ', 'POST ', 'GET /:agentId', 'PATCH /:agentId', 'DELETE /:agentId', 'GET /:agentId/versions', 'POST /:agentId/versions', 'GET /:agentId/versions/compare', 'GET /:agentId/versions/:version', 'DELETE /:agentId/versions/:version', 'POST /:agentId/versions/:version/activate', 'POST /:agentId/versions/:version/restore'].map((route) => route.replace(' ', ' /stored/agents')),
      ...['GET ', 'GET /:blockId', 'DELETE /:blockId', 'POST /:blockId/clone', 'GET /:blockId/versions', 'POST /:blockId/versions', 'GET /:blockId/versions/compare', 'GET /:blockId/versions/:version', 'DELETE /:blockId/versions/:version', 'GET /:blockId/releases', 'POST /:blockId/releases', 'POST /:blockId/releases/rollback'].map((route) => route.replace(' ', ' /prompt-blocks')),
      ...['voice/speakers', 'speakers', 'voice/listener'].map((name) => `GET /agents/:agentId/${name}`), 'GET /memory/status', 'GET /memory/config',
      'GET /memory/observational-memory', 'GET /workflows', 'GET /workflows/:workflowId', 'GET /scores/scorers', 'GET /scores/scorers/:scorerId', 'POST /webhooks/:sourceId', 'POST /channels/:channelId', 'GET /health', 'GET /ready', 'GET /me', 'GET /processes', 'POST /tick', 'GET /metrics',
      'GET /openapi.json',
    ])
    const approvals = ['send-tool-approval', 'send-stream-resume', 'approve-tool-call', 'approve-tool-call-generate', 'resume-stream', 'resume-stream-until-idle']
    expect(asked('approve_tool')).toEqual(approvals.map((name) => `POST /agents/:agentId/${name}`))
    const byPost = ['threads/subscribe', 'threads/:threadId/ticket', 'observe', 'explain-prompt'].map((name) => `POST /agents/:agentId/${name}`)
    expect(asked('read_thread').filter((route) => !route.startsWith('GET '))).toEqual([...byPost, 'POST /workflows/:workflowId/observe'])
    expect(asked('send_signal').filter((route) => route.startsWith('GET '))).toEqual(['GET /agents/:agentId/threads/:threadId/voice'])
    for (const sent of ['DELETE /memory/threads/:threadId', 'POST /agents/:agentId/decline-tool-call']) expect(asked('send_signal')).toContain(sent)
  })

  it('[V4.9] names the thread, the run, the call and the resource that the request names', () => {
    const principal = { type: 'user', id: 'web', resources: ['alice'], operator: false, scopes: ['threads:read'] }
    expect(policyQuestion({ path: '/memory/threads/:threadId', read: true }, call({ params: { threadId: 'one' } }))).toEqual({
      principal, action: 'read_thread', threadId: 'one', resourceId: 'alice',
    })
    expect(policyQuestion({ path: '/workflows/:workflowId/runs/:runId/resume' }, call({ params: { workflowId: 'buy', runId: 'r' } }))).toEqual({
      principal, action: 'send_signal', threadId: 'workflow:buy/r', resourceId: 'alice',
    })
    expect(policyQuestion({ path: '/workflows/:workflowId/start' }, call({ params: { workflowId: 'buy' }, query: { runId: 'r' } }))).toMatchObject({ action: 'send_signal', threadId: 'workflow:buy/r' })
    expect(policyQuestion({ path: '/agents/:agentId/signals' }, call({ params: { agentId: 'a' }, body: { threadId: 'one', resourceId: 'bob' } }))).toEqual({
      principal, action: 'send_signal', agentId: 'a', threadId: 'one', resourceId: 'bob',
    })
    expect(policyQuestion({ path: '/agents/:agentId/generate' }, call({ params: { agentId: 'a' }, body: { memory: { thread: { id: 'one' }, resource: 'bob' } } }))).toEqual({
      principal, action: 'send_signal', agentId: 'a', threadId: 'one', resourceId: 'bob',
    })
    expect(policyQuestion({ path: '/agents/:agentId/approve-tool-call' }, call({ params: { agentId: 'a' }, body: { runId: 'r', toolCallId: 'c' } }))).toEqual({
      principal, action: 'approve_tool', agentId: 'a', runId: 'r', toolCallId: 'c', resourceId: 'alice',
    })
    // A score is about the thread that it names within, and without one about all threads.
    expect(policyQuestion({ path: '/scores' }, call({ body: { score: { threadId: 'one', resourceId: 'bob', runId: 'r' } } }))).toEqual({ principal, action: 'send_signal', threadId: 'one', resourceId: 'bob' })
    expect(policyQuestion({ path: '/scores/retry' }, call({ body: { runId: 'r' } }))).toEqual({ principal, action: 'send_signal', resourceId: 'alice' })
    const operator = { id: 'admin', resources: '*' as const }
    expect(policyQuestion({ path: '/memory/search', read: true }, call({ principal: operator }))).toEqual({ principal: userPrincipal(operator), action: 'read_thread' })
  })

  it('[V4.9] [V4.12] a decline, and results of the caller\'s tools, are sends', () => {
    const about = (body: object) => policyQuestion({ path: '/agents/:agentId/send-tool-approval' }, call({ body: { threadId: 'one', ...body } }))?.action
    expect([{ approved: true }, { approved: false }, { approved: true, messages: [] }, {}].map(about)).toEqual(['approve_tool', 'send_signal', 'send_signal', 'approve_tool'])
  })

  it('[V4.9] [V4.11] names every thread and message that a change of memory names, and both owners of a transfer', () => {
    const at = (path: string, fields: Partial<PolicyCall>) => policyQuestion({ path }, call({ principal: { id: 'admin', resources: '*' }, ...fields }))
    const messages = [{ id: 'a', threadId: 'one', resourceId: 'bob' }, { id: 'b', threadId: 'two' }, { id: 'c' }]
    expect(at('/memory/save-messages', { body: { messages } })).toMatchObject({ resourceId: 'bob', threads: [{ threadId: 'one', resourceId: 'bob' }, { threadId: 'two' }] })
    expect(at('/memory/messages/update', { body: { messages } })).toMatchObject({ messageIds: ['c'] })
    expect(at('/memory/messages/delete', { body: { messageIds: ['a', { id: 'b' }, 7] } })).toMatchObject({ messageIds: ['a', 'b'] })
    expect(at('/memory/messages/delete', { body: { messageIds: 'a', threadId: 'one' } })).not.toHaveProperty('messageIds')
    const transfer = at('/memory/threads/:threadId/transfer', { params: { threadId: 'one' }, body: { resourceId: 'bob' } })
    expect(transfer).toMatchObject({ threadId: 'one', givenTo: 'bob' })
    expect(transfer).not.toHaveProperty('resourceId')
  })

  it('[V4.9] a principal is a user with its resources and scopes', () => {
    expect(userPrincipal({ id: 'admin', resources: '*' })).toEqual({ type: 'user', id: 'admin', resources: '*', operator: true, scopes: [] })
    expect(principalFlaw({ ...web, scopes: 'all' })).toContain('scopes must be')
    expect(principalFlaw(web)).toBeUndefined()
  })
})
