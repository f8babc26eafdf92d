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

/** What knows nothing of the rest. */
const leaves = ['errors.ts', 'json.ts', 'is-promise.ts', 'arguments.ts', 'clock.ts', 'ids.ts', 'iso.ts', 'redact.ts', 'logger.ts', 'retry-after.ts']
/** The leaves that pure code may use: no clock, no output. */
const pureLeaves = ['errors.ts', 'json.ts', 'arguments.ts', 'iso.ts']

/** Everything that makes a thread run, without a driver. `http`, `client`, `cli` and `testing` know it; it knows none of them. */
const core = [
  ...leaves,
  'message/**',
  'recall/**',
  'schema/**',
  'tracing/**',
  'signals/**',
  'prompt/**',
  'processors/**',
  'run/**',
  'agent/**',
  'thread/**',
  'store/*.ts',
  'bus/*.ts',
  'memory/**',
  'inbox/**',
  'schedule/**',
  'sources/**',
]
const drivers = ['store/*/**', 'bus/*/**']

export const arrows: ArrowTable = {
  'errors.ts': [],
  'json.ts': [],
  'is-promise.ts': [],
  'arguments.ts': ['errors.ts'],
  'clock.ts': [],
  'ids.ts': [],
  'iso.ts': [],
  'secret-shapes.ts': [],
  'redact.ts': ['secret-shapes.ts'],
  // What is logged goes through one door.
  'logger.ts': ['redact.ts'],
  'stream-headers.ts': [],
  'retry-after.ts': [],
  'worker.ts': [],

  // MessageList gives its messages as a prompt too, so it stands above `prompt`; the rest of the folder stands below.
  'message/list.ts': [...leaves, 'message/**', 'prompt/**'],
  'message/**': leaves,
  // What answers a question best, of passages and vectors that it is given.
  'recall/**': [...pureLeaves, 'type message/**'],
  'schema/**': leaves,
  'signals/**': [...pureLeaves, 'message/**', 'type run/chunk.ts'],
  'prompt/**': [...pureLeaves, 'message/**', 'signals/**'],
  // The package's entry for processors also has those of memory.
  'processors/index.ts': ['processors/**', 'memory/**'],
  'processors/**': [...leaves, 'message/**', 'signals/**', 'schema/**', 'prompt/tokens.ts', 'type prompt/**', 'type run/**'],
  // What an OpenTelemetry SDK is told, where one is registered. It finds the SDK without importing anything.
  'tracing/**': [...leaves, 'type message/**', 'type run/**', 'type signals/**', 'type store/*.ts'],
  // One run of a model and its tools; it knows no thread and no store.
  'run/**': [...leaves, 'tracing/**', 'message/**', 'prompt/**', 'schema/**', 'signals/**', 'processors/**'],
  // What an agent is. Without a Heed it keeps its threads in a local file, which is loaded when the first one is used.
  'agent/**': [
    ...leaves, 'tracing/**', 'message/**', 'type recall/**', 'prompt/**', 'schema/**', 'signals/**', 'processors/**', 'run/**', 'thread/**', 'memory/**', 'inbox/**', 'schedule/**', 'store/*.ts',
    'type sources/**', 'lazy store/libsql/**', 'type heed.ts', 'type bus/contract.ts',
  ],

  // Where things happen outside. Agents that hear of them are passed in.
  'sources/**': [...leaves, 'run/**', 'type schema/**', 'type inbox/**', 'store/*.ts'],

  // The states of a thread and of a signal, as pure functions that stores and hosts share.
  'thread/machine*.ts': [...pureLeaves, 'message/**', 'signals/**'],
  // A thread knows stores and buses by their contracts, never by a driver.
  'thread/**': [
    ...leaves, 'tracing/**', 'thread/machine*.ts', 'message/**', 'prompt/**', 'signals/**', 'processors/**', 'run/**',
    'store/*.ts', 'bus/*.ts', 'type inbox/policy.ts',
  ],

  // Notifications: what is decided about them, and when they are sent to their threads.
  'schedule/**': [...leaves, 'inbox/**', 'signals/**', 'thread/**', 'store/*.ts'],
  'inbox/**': [...leaves, 'schema/**', 'signals/**', 'run/**', 'thread/**', 'store/*.ts'],

  // Contracts, which the core may know; then the drivers and what they share, which it may not.
  'store/conformance.ts': ['store/conformance/**'],
  // A file is the default, and its driver is loaded when it is first used.
  'store/default.ts': ['store/*.ts', 'lazy store/libsql/**'],
  'store/*.ts': [...leaves, 'message/**', 'type recall/**', 'signals/**', 'thread/machine*.ts', 'type bus/contract.ts'],
  // A store brings the bus of those who share it.
  'store/*/**': [...leaves, 'worker.ts', 'store/*.ts', 'message/**', 'recall/**', 'signals/**', 'thread/machine*.ts', 'bus/*.ts', 'bus/libsql/**'],
  'bus/conformance.ts': ['bus/conformance/**'],
  'bus/*.ts': [...leaves, 'type run/chunk.ts'],
  'bus/*/**': [...leaves, 'bus/*.ts', 'type run/chunk.ts'],

  // Vectors without a network, in a thread of its own.
  'embed/**': [...leaves, 'worker.ts'],

  'memory/**': [...leaves, 'type tracing/**', 'message/**', 'recall/**', 'prompt/**', 'schema/**', 'signals/**', 'processors/**', 'run/**', 'thread/**', 'store/*.ts'],

  // Importing `heed` loads nothing but the store that needs no driver.
  'heed.ts': [...core, 'store/memory/**', 'lazy store/libsql/**'],
  'index.ts': [...core, 'heed.ts', 'store/memory/**', 'lazy store/libsql/**'],

  'testing/**': [...core, 'heed.ts', 'index.ts', 'store/conformance/**', 'bus/conformance/**'],
  'http/**': [...core, 'heed.ts', 'index.ts', 'stream-headers.ts'],
  // Goes into browsers: types of the core, and of what runs only the shape of messages.
  'client/**': ['message/**', 'errors.ts', 'json.ts', 'stream-headers.ts', 'type agent/**', 'type run/**', 'type signals/**', 'type thread/**', 'type store/*.ts', 'type memory/**', 'type inbox/**', 'type prompt/**', 'type processors/**'],
  'cli/**': [...core, ...drivers, 'heed.ts', 'index.ts', 'http/**', 'client/**', 'testing/**'],
}

/** Files that exist for a peer: whoever imports them has it. */
export const madeFor: Readonly<Record<string, string>> = { 'client/react/**': 'react' }

/** Same input, same output: no Node, no clock, no chance, no network in these. Ids and times are passed in. */
export const pure: readonly string[] = ['prompt/**', 'recall/**', 'signals/**', 'thread/machine*.ts']

/** Above this a file is more than one idea. Tests are exempt. */
export const MAX_LINES = 400

/** Names that say nothing about the domain. */
export const emptyNames: readonly string[] = ['util', 'utils', 'helper', 'helpers', 'manager', 'managers', 'misc']
