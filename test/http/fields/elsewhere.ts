/** Fields whose effect the walk does not see, with the test that shows it. */
interface Elsewhere {
  file: string
  title: string
  /** Routes and fields, as in the walk; `*` stands for any route. */
  fields: readonly string[]
}

const chat = ['messages', 'messages.role', 'messages.parts', 'messages.parts.type', 'messages.metadata'].map((name) => `POST /agents/{agentId}/chat ${name}`)
const decisions = ['state', 'toolCallId', 'approval', 'approval.id', 'approval.approved', 'approval.reason'].map((name) => `POST /agents/{agentId}/chat messages.parts.${name}`)
const decided = ['send-tool-approval', 'send-stream-resume', 'approve-tool-call', 'approve-tool-call-generate', 'decline-tool-call', 'decline-tool-call-generate', 'resume-stream', 'resume-stream-until-idle', 'recover']
const ofThread = 'GET /agents/{agentId}/threads/{threadId}'

export const elsewhere: readonly Elsewhere[] = [
  // One place reads it for every route.
  { file: 'test/http/without-thread.test.ts', title: '[H5.1] bring a request context in the query, in base64', fields: ['* ?requestContext'] },
  {
    file: 'test/http/access.test.ts', title: 'send-message?wait=outcome',
    fields: ['send-message', 'queue-message', 'signals'].map((path) => `POST /agents/{agentId}/${path} ?wait`),
  },
  { file: 'test/http/inbox.test.ts', title: '[H1.3] are sent, listed, read and marked', fields: ['POST /agents/{agentId}/threads/{threadId}/notifications/mark status'] },
  { file: 'test/http/inbox-counts.test.ts', title: 'inbox', fields: ['POST /agents/{agentId}/threads/subscribe inbox', `${ofThread}/subscribe ?inbox`] },
  { file: 'test/http/stream-tickets.test.ts', title: '[H3.12] open nothing else: no other thread, resource, agent or route', fields: ['POST /agents/{agentId}/threads/{threadId}/ticket resourceId'] },
  {
    file: 'test/voice/socket-rights.test.ts', title: '[Z5.2] a thread of another resource stays closed',
    fields: ['POST /agents/{agentId}/threads/{threadId}/voice/ticket resourceId', `${ofThread}/voice ?resourceId`],
  },
  {
    file: 'test/voice/http.test.ts', title: '[Z5.8] requests as existing clients write them work, on their paths',
    fields: ['/voice/listen', '/listen'].flatMap((path) => ['audio', 'options'].map((name) => `POST /agents/{agentId}${path} ${name}`)),
  },
  { file: 'test/inspect/routes.test.ts', title: '[I2.3] the signals of a thread are listed newest first', fields: [`${ofThread}/signals ?state`, `${ofThread}/signals ?limit`] },
  { file: 'test/inspect/routes.test.ts', title: '[I2.2] the runs of a thread have their steps', fields: [`${ofThread}/runs ?page`, `${ofThread}/runs ?perPage`] },
  { file: 'test/http/runs.test.ts', title: '[H1.4] a run that was given up is listed, and taken up again', fields: ['GET /agents/{agentId}/parked-runs ?perPage'] },
  { file: 'test/http/runs.test.ts', title: '[H1.4] one run is watched from its start or from a chunk on', fields: ['POST /agents/{agentId}/observe offset'] },
  { file: 'test/http/watches.test.ts', title: '[V1.25] a client reads why each message', fields: ['?limit', '?after'].map((name) => `GET /agents/{agentId}/watches/{watchId}/explanation ${name}`) },
  {
    file: 'test/http/letter-memory.test.ts', title: '[K2.21] says why a search finds a message',
    fields: ['?limit', '?messageId'].map((name) => `GET /memory/search/explanation ${name}`),
  },
  { file: 'docs/server.md', title: '| a decision with `requestContext` |', fields: decided.map((path) => `POST /agents/{agentId}/${path} requestContext`) },
  { file: 'test/http/chat-route.test.ts', title: '[H1.12] sends the last message to the thread and reads the answer', fields: chat },
  { file: 'test/http/chat-route.test.ts', title: '[H1.12] approves a call and gets the rest of the answer', fields: decisions },
  { file: 'test/http/chat-route.test.ts', title: '[H1.12] a failed run is an error of the chat, and what can not be sent is refused', fields: ['POST /agents/{agentId}/chat trigger'] },
  { file: 'test/http/included.test.ts', title: "list({ filter: '", fields: ['GET /memory/threads/{threadId}/messages ?filter'] },
  { file: 'test/http/existing-workflows.test.ts', title: '[F6.6] go on one step at a time', fields: ['POST /workflows/{workflowId}/stream closeOnSuspend'] },
  {
    file: 'test/http/stored-agents.test.ts', title: '[O3.4] drafts are stored',
    fields: [
      ...['GET /stored/agents', 'GET /stored/agents/{agentId}/versions'].flatMap((route) => [`${route} ?page`, `${route} ?perPage`]), 'GET /stored/agents/{agentId} ?status',
      'GET /stored/agents/{agentId}/versions ?orderBy', ...['POST /stored/agents', 'PATCH /stored/agents/{agentId}', 'POST /stored/agents/{agentId}/versions'].map((route) => `${route} autoPublish`),
    ],
  },
  { file: 'test/http/existing-workflows.test.ts', title: '[F6.10] a restart leaves alone', fields: ['GET /workflows ?partial'] },
  {
    file: 'test/http/existing-workflows.test.ts', title: '[F6.6] start, answer and begin again',
    fields: ['?fields', '?withNestedWorkflows'].map((name) => `GET /workflows/{workflowId}/runs/{runId} ${name}`),
  },
  { file: 'test/http/existing-workflows.test.ts', title: '[F6.9] observe gives a run', fields: ['POST /workflows/{workflowId}/observe ?offset'] },
  { file: 'test/workflow/over-http.test.ts', title: 'after', fields: ['GET /workflows/{workflowId}/runs/{runId}/stream ?after'] },
  {
    file: 'test/http/existing-scores.test.ts', title: '[J4.19] lists',
    fields: [
      ...['run/{runId}', 'scorer/{scorerId}', 'entity/{entityType}/{entityId}'].map((path) => `GET /scores/${path} ?page`), 'GET /scores/scorer/{scorerId} ?entityType',
    ],
  },
  {
    file: 'test/http/existing-scores.test.ts', title: '[J4.20] stores',
    fields: ['threadId', 'resourceId', 'runId', 'scorerId', 'version', 'score', 'reason', 'metadata', 'entityId', 'entityType', 'source'].map((name) => `POST /scores score.${name}`),
  },
]
