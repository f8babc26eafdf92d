/**
 * The dependency arrows of `src`: which files may import which. This table is the rule; `npm run lint` holds the tree to it.
 *
 * Each line says: these files may import those. Files are globs below `src`; the first line that matches a file is its line. Files of
 * one line may import each other. Two marks narrow what is allowed:
 *
 *   'type X'   only `import type` from X: nothing is loaded
 *   'lazy X'   only `await import()` of X, or its types: loaded when used
 *
 * Tests are exempt. A new folder needs a line of its own.
 */
export type ArrowTable = Readonly<Record<string, readonly string[]>>

/** Knows nothing of the domain. */
const base = ['base/**']
/** The part of `base` that pure code may use: no clock, no output, no Node. */
const pureBase = ['base/errors.ts', 'base/json.ts', 'base/arguments.ts']
/** What every store and every user of a store may know. */
const contracts = ['store/contract/**']

/** Everything that makes a thread run, without a driver. `http`, `client`, `cli` and `testing` know it; it knows none of them. */
const core = [
  ...base, 'machine.ts', 'message/**', 'recall/rank/**', 'recall/text/**', 'recall/filter/**', 'recall/*.ts', 'schema/**', 'tracing/**', 'signals/**', 'prompt/**',
  'processors/**', 'run/**', 'agent/**', 'thread/**', ...contracts, 'store/*.ts', 'bus/*.ts', 'memory/**', 'inbox/**', 'schedule/**',
  'watch/**', 'channel/**', 'sources/**', 'policy/**', 'scorers/**', 'editor/**', 'heed/**', 'workflow/**', 'voice/**',
]
const drivers = ['store/*/**', 'bus/*/**', 'recall/{index,services,stores}/**', 'recall/vectors/**']

export const arrows: ArrowTable = {
  'base/**': [],

  // The states of a thread and of a signal, as pure functions that stores and hosts share.
  'machine.ts': [...pureBase, 'message/**', 'signals/**'],

  // MessageList renders its messages as a prompt too, so it stands above `prompt`; the rest of the folder stands below.
  'message/list/**': [...base, 'message/**', 'prompt/**'],
  'message/**': base,
  'schema/**': base,
  'signals/**': [...pureBase, 'message/**'],
  'prompt/**': [...pureBase, 'message/**', 'signals/**'],

  // The entry of the package for processors also exports those of memory.
  'processors/index.ts': ['processors/**', 'memory/**'],
  'processors/builtin/**': [...base, 'processors/*.ts', 'message/**', 'signals/**', 'schema/**', 'prompt/tokens.ts', 'type prompt/**', 'type run/**'],
  'processors/**': [...base, 'message/**', 'signals/**', 'schema/**', 'prompt/system.ts', 'type prompt/**', 'type run/**'],
  // Spans and metrics for a registered OpenTelemetry SDK, which is found without importing anything.
  'tracing/**': [...base, 'type message/**', 'type run/**', 'type signals/**', 'type store/contract/**'],
  // One run of a model and its tools; it knows no thread and no store.
  'run/**': [...base, 'type scorers/contract.ts', 'tracing/**', 'message/**', 'prompt/**', 'schema/**', 'signals/**', 'processors/**'],

  // A thread knows stores and buses by their contracts, never by a driver.
  'thread/**': [
    'type scorers/contract.ts', 'type editor/contract.ts', ...base, 'tracing/**', 'machine.ts', 'message/**', 'prompt/**', 'signals/**', 'processors/**', 'run/**',
    ...contracts, 'store/*.ts', 'bus/*.ts',
  ],
  // Sends at given times, and the dispatcher that the inbox shares.
  'schedule/**': [...base, 'signals/**', 'run/**', 'thread/**', ...contracts],
  // Notifications: the policy that decides about them, and their delivery to threads.
  'inbox/**': [...base, 'machine.ts', 'message/taint.ts', 'schema/**', 'signals/**', 'run/**', 'thread/**', 'schedule/**', ...contracts],
  'memory/**': [
    ...base, 'type tracing/**', 'message/**', 'recall/*.ts', 'recall/text/**', 'recall/filter/**', 'recall/rank/**', 'prompt/**', 'schema/**', 'signals/**',
    'processors/**', 'run/**', 'thread/**', ...contracts, 'store/*.ts',
  ],
  // Events from outside. The agents that receive them are passed in.
  'sources/**': [...base, 'run/**', 'type schema/**', 'type inbox/**', ...contracts],

  // Messages from outside: what an adapter verifies and maps, contacts, and channels.
  'channel/**': [
    ...base, 'sources/signature.ts', 'sources/body.ts', 'type sources/event.ts', 'run/model/**', 'type store/contract/**',
  ],
  // What agents may receive and users may do, by policies in the language of Cedar, which is loaded when it is first used.
  'policy/**': base,

  // Workflows as data, what runs of them do next, and the states of both: pure.
  'workflow/plan/**': [...pureBase, 'type message/**', 'type schema/**', 'type run/request-context.ts', 'type workflow/{step,definition/hooks}.ts'],
  // Workflows: their steps, and their runs in memory and on threads. Steps know agents by an interface of their own, and how input is read.
  'workflow/**': [
    ...base, 'workflow/**', 'message/**', 'schema/**', 'processors/**', 'run/request-context.ts', 'run/output/structured-output.ts', 'type run/**', 'type signals/**', 'thread/**',
    'schedule/**', 'agent/input.ts', 'type agent/askable.ts', 'type scorers/contract.ts', 'scorers/sampling.ts', ...contracts,
  ],

  // The composition root: the objects of one storage. It stands below the agent; Heed, which knows the agents, stands above.
  'heed/heed.ts': [...core],
  'heed/config.ts': [...core],
  'heed/sources.ts': [...core],
  'heed/channels.ts': [...core],
  'heed/scores.ts': [...core],
  'heed/**': [
    ...base, 'tracing/**', 'message/**', 'signals/**', 'run/**', 'thread/**', 'memory/**', 'inbox/**', 'schedule/**', 'watch/**', 'scorers/scoring.ts', 'type scorers/contract.ts', 'type editor/contract.ts',
    'type voice/contract.ts', ...contracts,
    'store/*.ts', 'type bus/contract.ts', 'type policy/**',
  ],
  // What an agent is. Without a Heed it stores its threads in a local file; the driver is loaded when the first one is used.
  'agent/**': [
    ...base, 'tracing/**', 'message/**', 'type recall/**', 'prompt/**', 'schema/**', 'signals/**', 'processors/**', 'run/**', 'thread/**', 'memory/**',
    'inbox/**', 'schedule/**', 'watch/**', 'type scorers/contract.ts', 'scorers/sampling.ts', 'type editor/contract.ts', 'editor/applied.ts', 'type voice/contract.ts', ...contracts, 'store/*.ts', 'type sources/**', 'heed/site.ts', 'type heed/heed.ts',
  ],

  // The states of a watch and of a reply, as pure functions that stores and the services share.
  'watch/{machine,replies/machine}.ts': pureBase,
  // The other pure parts of a watch: what it expects, what may cross into its thread, and how a message is shown and labelled.
  'watch/{annotation,candidate-text,criteria,pattern,pattern-syntax,result-json,result-schema,result-text,result-value}.ts': [
    ...pureBase, 'watch/machine.ts', 'signals/**', 'type schema/**', 'type store/contract/watches.ts',
  ],
  // Inbound messages that agents wait for: what fits, who judges, what reaches the thread.
  'watch/**': [
    ...base, 'watch/**', 'type message/chunk.ts', 'type tracing/**', 'tracing/chat-trace.ts', 'schema/**', 'signals/**', 'run/**', 'thread/**',
    'schedule/**', ...contracts,
  ],

  // Scores of runs. An agent knows the shape of a scorer; scorers call agents as judges.
  'scorers/contract.ts': ['type message/**'],
  // Which runs of an agent are scored, and the service that scores them. It stands below the agent.
  'scorers/{sampling,filter}.ts': [...base, 'scorers/{contract,filter}.ts'],
  'scorers/{scoring,scored-run,checked-result,messages}.ts': [
    'tracing/**',
    ...base, 'scorers/{contract,messages,scored-run}.ts', 'message/**', 'type run/**', 'thread/**', 'schedule/**', 'type store/contract/**',
  ],
  'scorers/**': [...base, 'scorers/**', 'message/**', 'prompt/system.ts', 'recall/text/**', 'schema/**', 'signals/tags.ts', 'type processors/**', 'run/**', 'agent/**'],

  // Which version of an agent a run gets, and the states of versions and releases, as pure functions that stores share.
  'editor/{contract,machine}.ts': pureBase,
  // What a run gets of a version.
  'editor/applied.ts': [...base, 'editor/{contract,machine}.ts', 'type run/**'],
  // What is saved and published. It knows agents by an interface of its own.
  'editor/**': [...base, 'editor/**', 'signals/tags.ts', 'type run/request-context.ts'],
  // What a voice, a session and the thread of a session promise.
  'voice/contract.ts': ['type base/**', 'type message/**', 'type tracing/options.ts'],
  // The states of a session, how much of a text a user heard, and sentences: pure.
  'voice/{sentences,session/machine,session/heard}.ts': ['type voice/contract.ts'],
  // What a client and the server of a session say to each other: both load it.
  'voice/wire.ts': ['type voice/contract.ts'],
  // Speech: voices on models of the AI SDK, and sessions. An agent knows the shape of a voice, and gives it its thread.
  'voice/**': [...base, 'voice/**', 'type message/**', 'tracing/operation.ts', 'tracing/telemetry.ts', 'tracing/chat-trace.ts', 'type tracing/**'],

  // WebSockets of RFC 6455, on connections of Node's server.
  'socket/**': base,

  // Contracts, which the core may know; then the drivers and what they share, which it may not.
  'store/contract/**': [...base, 'machine.ts', 'type editor/contract.ts', 'type watch/{machine,replies/machine}.ts', 'message/**', 'type recall/**', 'signals/**', 'type bus/contract.ts'],
  // A file is the default, and its driver is loaded when it is first used.
  'store/*.ts': [...base, ...contracts, 'message/**', 'signals/**', 'lazy store/sqlite/**', 'type bus/contract.ts'],
  // What every store does inside a transaction, over one table interface.
  'store/core/**': [...base, ...contracts, 'machine.ts', 'editor/{contract,machine}.ts', 'message/**', 'recall/text/**', 'signals/**'],
  // What every SQL store needs.
  'store/sql/**': [
    ...base, ...contracts, 'store/*.ts', 'store/core/**', 'machine.ts', 'editor/{contract,machine}.ts', 'watch/{annotation,machine,replies/machine}.ts', 'message/**', 'signals/**', 'recall/filter/**', 'recall/text/**',
    'type bus/contract.ts',
  ],
  // SQLite's own: file, log, workers, caches; and libSQL servers.
  'store/sqlite/**': [
    ...base, ...contracts, 'store/*.ts', 'store/core/**', 'store/sql/**', 'machine.ts', 'message/**', 'signals/**', 'recall/**', 'bus/*.ts', 'bus/libsql/**',
  ],
  // PostgreSQL's own: sessions, transactions, schema. Its tables are those of SQLite's schema.
  'store/postgres/**': [
    ...base, ...contracts, 'store/*.ts', 'store/core/**', 'store/sql/**', 'store/sqlite/migrations.ts', 'recall/**', 'bus/*.ts', 'bus/postgres/**',
  ],
  'store/conformance/**': [...base, ...contracts, 'store/*.ts', 'machine.ts', 'type editor/contract.ts', 'type watch/{machine,replies/machine}.ts', 'message/**', 'signals/**'],

  // What answers a question best, of passages and vectors that it is given: pure.
  'recall/rank/**': [...pureBase, 'recall/*.ts', 'recall/text/**', 'type message/**'],
  'recall/text/**': [...pureBase, 'recall/*.ts', 'type message/**'],
  'recall/filter/**': [...pureBase, 'recall/*.ts', 'type message/**'],
  // The index of recall in a SQLite file with its worker, and the embedders and vector stores that it calls.
  'recall/{index,services}/**': [...base, ...contracts, 'recall/**', 'message/**', 'signals/**', 'store/*.ts', 'store/core/**', 'store/sql/**', 'store/sqlite/**'],
  'recall/vectors/**': [...base, ...contracts, 'signals/**', 'recall/**', 'store/*.ts', 'store/sql/**', 'store/sqlite/**'],
  // Adapters of vector databases, whose drivers are loaded when they are used.
  'recall/stores/**': [...base, ...contracts, 'recall/*.ts', 'recall/filter/**', 'recall/vectors/**'],
  'recall/*.ts': [...pureBase, 'type message/**'],
  // Vectors without a network, in a thread of its own.
  'embed/**': base,

  'bus/conformance/**': [...base, 'type message/**', 'bus/*.ts', 'type store/contract/**'],
  'bus/conformance.ts': ['bus/conformance/**'],
  'bus/*.ts': [...base, 'type message/**'],
  'bus/*/**': [...base, 'type message/**', 'bus/*.ts'],

  // `InMemoryStore` is the SQL store, so importing `heed` loads that store's code; `node:sqlite` is loaded when a store is first opened.
  'index.ts': [...core, 'store/sqlite/in-memory.ts', 'lazy store/sqlite/**'],
  'testing/**': [...core, 'socket/**', 'store/conformance/**', 'bus/conformance/**'],
  // The route for the AI SDK's own transport answers with the client's transport, which is loaded when the route is first used.
  'http/**': [...core, 'socket/**', 'index.ts', 'lazy client/**', 'type studio/**'],
  // The built pages of Studio as answers of the server. Their sources are in `studio/`, beside `src`.
  'studio/**': base,
  // Runs in browsers: the types of the core, and of its code only the shape of messages.
  'client/**': [
    'message/**', 'base/arguments.ts', 'base/errors.ts', 'base/json.ts', 'base/stream-headers.ts', 'voice/wire.ts', 'type voice/**', 'type agent/**', 'type run/**',
    'type signals/**', 'type thread/**', 'type store/**', 'type memory/**', 'type inbox/**', 'type prompt/**', 'type processors/**', 'type workflow/**', 'type editor/**', 'type machine.ts', 'type base/**',
  ],
  // The demo is a program of a user: it is made of what the package exports.
  'cli/**': [...core, ...drivers, 'http/**', 'client/**', 'testing/**', 'studio/**', 'index.ts'],
}

/** Arrows between two rooms that know each other's types, with the reason. No others form a circle. */
export const mutual: Readonly<Record<string, string>> = {
  'agent/** -> heed/heed.ts': 'an agent names the Heed that it belongs to, and a Heed its agents',
  'heed/sources.ts -> heed/heed.ts': 'the sources of a Heed look up its agents',
  'heed/channels.ts -> heed/heed.ts': 'the channels of a Heed store their messages in its storage',
  'heed/scores.ts -> heed/heed.ts': 'scores are in the storages of the agents of a Heed',
  'tracing/** -> run/**': 'spans describe runs, and runs open spans',
  'tracing/** -> store/contract/**': 'spans name stored rows',
  'processors/** -> run/**': 'hooks receive types of the run, and the run calls the hooks',
  'processors/builtin/** -> run/**': 'hooks receive types of the run',
  'recall/{index,services}/** -> store/sqlite/**': 'the index is a SQLite file beside the messages, and the store owns the index',
  'recall/vectors/** -> store/sqlite/**': 'vectors are in a SQLite file that the store opens',
  'workflow/plan/** -> workflow/**': 'a graph holds the steps that a workflow is made of, and a workflow is planned by its graph',
  'store/*.ts -> store/sqlite/**': 'the default storage is a file; its driver is loaded at first use',
}

/** Files that exist for a peer: who imports them has it. */
export const madeFor: Readonly<Record<string, string>> = { 'client/react/**': 'react' }

/** Same input, same output: no Node, no clock, no chance, no network in these. Ids and times are passed in. */
export const pure: readonly string[] = [
  'prompt/**', 'workflow/plan/**', 'recall/*.ts', 'recall/rank/**', 'recall/text/**', 'recall/filter/**', 'signals/**', 'machine.ts', 'watch/{machine,replies/machine}.ts', 'editor/{contract,machine}.ts',
  'watch/{annotation,candidate-text,criteria,pattern,pattern-syntax,result-json,result-schema,result-text,result-value}.ts',
  'voice/{sentences,wire,session/machine,session/heard}.ts',
]

/** What the pages of Studio, in `studio/`, import besides each other: what a user has, and what is built into them. */
export const studioPackages: readonly string[] = ['heed/client', 'heed/react', 'react', 'react-dom/client', 'marked', '@tanstack/react-virtual']

/** Above about 500 lines a file is more than one idea. Tests are exempt. */
export const MAX_LINES = 520

/** Longer lines are hard to read and to review. Tests are exempt. */
export const MAX_COLUMNS = 140

/** Above this a folder is more than one concept. Tests don't count. */
export const MAX_FILES = 18

/** Names that say nothing about the domain. */
export const emptyNames: readonly string[] = ['util', 'utils', 'helper', 'helpers', 'manager', 'managers', 'misc']
