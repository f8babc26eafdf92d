import { expect, it } from 'vitest'
import { allRoutes } from '../routes/index.ts'
import type { Operations } from '../routes/operations.ts'
import { hasScope, isLimited, principalScopes, scopeOfRequest, type PrincipalScope } from './scopes.ts'

const agent = '/agents/:agentId'
const thread = `${agent}/threads/:threadId`
const memory = '/memory/threads/:threadId'
const workflow = '/workflows/:workflowId'
const workflowRun = `${workflow}/runs/:runId`

/** The scope that each route needs. A new route needs a line here. */
const table: Record<PrincipalScope | 'none', string[]> = {
  none: [
    'GET /agents', `GET ${agent}`, `GET ${agent}/tools/:toolId`, `GET ${agent}/voice/speakers`, `GET ${agent}/speakers`, `GET ${agent}/voice/listener`, 'GET /memory/status', 'GET /memory/config', 'GET /memory/observational-memory', 'POST /webhooks/:sourceId',
    'POST /channels/:channelId', 'GET /health', 'GET /ready', 'GET /me', 'GET /openapi.json', 'GET /workflows', `GET ${workflow}`,
    'GET /scores/scorers', 'GET /scores/scorers/:scorerId',
  ],
  read: [
    `POST ${agent}/threads/subscribe`, `GET ${thread}/subscribe`, `POST ${thread}/ticket`, `GET ${thread}/queue`, `GET ${thread}/signals/:signalId`, `GET ${thread}/active-run`, `GET ${thread}/lanes`,
    `GET ${thread}/lanes/:laneId`, `GET ${thread}/lanes/:laneId/history`, `GET ${thread}/notifications`, `GET ${thread}/notifications/:notificationId`, `GET ${agent}/schedules`,
    `GET ${agent}/schedules/:scheduleId`, `GET ${agent}/watches`, `GET ${agent}/watches/:watchId`, `GET ${agent}/watches/:watchId/explanation`, `GET ${agent}/suspended-runs`, `POST ${agent}/observe`, `GET ${agent}/parked-runs`,
    `GET ${agent}/active-threads`, `GET ${agent}/chat/:threadId/stream`, 'GET /memory/threads', `GET ${memory}`, `GET ${memory}/clones`, `GET ${memory}/source`,
    `GET ${memory}/clone-history`, `GET ${memory}/messages`, 'GET /memory/search', 'GET /memory/search/explanation', `GET ${memory}/working-memory`, `GET ${memory}/working-memory/versions`, 'GET /replies',
    `GET ${thread}/runs`, `GET ${thread}/signals`, 'GET /notifications', 'GET /events', 'GET /scores', 'GET /scores/run/:runId', 'GET /scores/scorer/:scorerId', 'GET /scores/entity/:entityType/:entityId', `GET ${workflow}/runs`, `GET ${workflowRun}`, `GET ${workflowRun}/stream`,
    `POST ${workflow}/observe`, 'GET /workflows/run-counts',
  ],
  send: [
    `POST ${agent}/send-message`, `POST ${agent}/queue-message`, `POST ${agent}/threads/abort`, `POST ${thread}/queue/cancel`, `POST ${thread}/queue/reorder`,
    `POST ${thread}/notifications/mark`, `POST ${agent}/decline-tool-call`, `POST ${agent}/decline-tool-call-generate`, `POST ${agent}/chat`,
    `GET ${thread}/voice`, `POST ${thread}/voice/ticket`, 'POST /scores',
  ],
  notify: [`POST ${agent}/signals`, `POST ${agent}/state-signals`, `POST ${agent}/notifications`, `POST ${thread}/notifications/retry`, 'POST /replies/:replyId/retry', `POST ${workflowRun}/events`],
  schedule: [
    `POST ${agent}/schedules`, `POST ${agent}/schedules/:scheduleId/pause`, `POST ${agent}/schedules/:scheduleId/resume`, `DELETE ${agent}/schedules/:scheduleId`,
    `POST ${agent}/watches`, `DELETE ${agent}/watches/:watchId`,
  ],
  approve: [
    `POST ${agent}/send-tool-approval`, `POST ${agent}/send-stream-resume`, `POST ${agent}/approve-tool-call`, `POST ${agent}/approve-tool-call-generate`,
    `POST ${agent}/resume-stream`, `POST ${agent}/resume-stream-until-idle`, `POST ${workflowRun}/resume`, `POST ${workflowRun}/restart`, `POST ${workflowRun}/time-travel`,
    ...['resume', 'resume-no-wait', 'resume-async', 'resume-stream', 'restart', 'restart-async', 'time-travel', 'time-travel-async', 'time-travel-stream'].map((name) => `POST ${workflow}/${name}`),
  ],
  run: [
    `POST ${agent}/recover`, `POST ${thread}/retry`, `POST ${agent}/generate`, `POST ${agent}/voice/speak`, `POST ${agent}/speak`, `POST ${agent}/voice/listen`, `POST ${agent}/listen`, `POST ${agent}/stream`, `POST ${agent}/stream-until-idle`, `POST ${workflow}/start`, `POST ${workflow}/stream`,
    `POST ${workflowRun}/cancel`, `POST ${workflow}/create-run`, `POST ${workflow}/start-async`,
  ],
  memory: [
    'POST /memory/threads', `PATCH ${memory}`, `DELETE ${memory}`, `POST ${memory}/clone`, `POST ${memory}/transfer`, 'POST /memory/save-messages', 'POST /memory/messages/delete',
    'POST /memory/messages/update', `POST ${memory}/working-memory`, `POST ${memory}/working-memory/undo`, `DELETE ${workflowRun}`,
  ],
  edit: [
    ...['GET', 'POST'].flatMap((method) => ['/stored/agents', '/stored/agents/:agentId/versions'].map((path) => `${method} ${path}`)),
    ...['GET', 'PATCH', 'DELETE'].map((method) => `${method} /stored/agents/:agentId`), 'GET /stored/agents/:agentId/versions/compare',
    ...['GET', 'DELETE'].map((method) => `${method} /stored/agents/:agentId/versions/:version`), ...['activate', 'restore'].map((name) => `POST /stored/agents/:agentId/versions/:version/${name}`),
    'GET /editor/agents', `POST ${agent}/versions/preview`, `DELETE ${agent}/versions/:version`,
    ...['GET ', 'GET /:blockId', 'DELETE /:blockId', 'POST /:blockId/clone', 'GET /:blockId/versions', 'POST /:blockId/versions', 'GET /:blockId/versions/compare', 'GET /:blockId/versions/:version', 'DELETE /:blockId/versions/:version', 'GET /:blockId/releases', 'POST /:blockId/releases', 'POST /:blockId/releases/rollback'].map((route) => route.replace(' ', ' /prompt-blocks')),
    `GET ${agent}/editor`, `GET ${agent}/versions`, `POST ${agent}/versions`, `GET ${agent}/versions/compare`, `GET ${agent}/versions/:version`, `GET ${agent}/releases`,
    `POST ${agent}/releases`, `POST ${agent}/releases/rollback`,
  ],
  operate: [`POST ${agent}/explain-prompt`, `GET ${thread}/runs/:runId/steps/:step/prompt`, 'GET /processes', 'POST /tick', 'GET /metrics', 'POST /scores/retry'],
}

it('[H8.1] every route needs the scope of its line', () => {
  const routes = allRoutes({ openApi: () => ({}) } as unknown as Operations)
  const found = Map.groupBy(routes, (route) => scopeOfRequest(route) ?? 'none')
  const listed = Object.fromEntries([...found].map(([scope, some]) => [scope, some.map(({ method, path }) => `${method} ${path}`).toSorted()]))
  expect(listed).toEqual(Object.fromEntries(Object.entries(table).map(([scope, some]) => [scope, some.toSorted()])))
})

it('[H8.1] a decision that runs no tool is a send', () => {
  const needed = (body: object) => scopeOfRequest({ path: `${agent}/send-tool-approval` }, { ...body })
  expect([{ approved: true }, { approved: false }, { approved: true, messages: [] }].map(needed)).toEqual(['approve', 'send', 'send'])
})

it('[H8.1] scopes that are named are all that a principal has; without any it has what it had before there were scopes', () => {
  const all = principalScopes.operator
  const of = (principal: Parameters<typeof hasScope>[0]) => all.filter((scope) => hasScope(principal, scope))
  expect(of({ id: 'a', resources: ['a'] })).toEqual(principalScopes.tenant)
  expect(of({ id: 'a', resources: '*' })).toEqual(all)
  expect(of({ id: 'a', resources: ['a'], operator: true })).toEqual(all)
  expect(of({ id: 'a', resources: ['a'], scopes: [] })).toEqual([])
  expect(of({ id: 'a', resources: '*', scopes: ['read', 'payments'] })).toEqual(['read'])
  expect(of({ id: 'a', resources: ['a'], scopes: principalScopes.endUser })).toEqual(['read', 'send', 'run'])
  expect([{ id: 'a', resources: '*' as const }, { id: 'a', resources: '*' as const, scopes: ['read'] }, { id: 'a', resources: ['a'], operator: true }].map(isLimited)).toEqual([false, true, true])
})
