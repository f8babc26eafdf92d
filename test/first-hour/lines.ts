/** A file and a text in it: the title of a test, a line of types that must compile or must not, or a sentence of a page. */
type Shown = readonly [file: string, text: string]

const start = 'test/start'
const memory = 'test/memory'
const types = 'src/agent/agent.test-d.ts'
const examples = 'test/package/programs/parts'

/** What a new user meets in the first hour, and what shows it. */
export const lines: Record<string, Record<string, readonly Shown[]>> = {
  'start and recovery': {
    'every option has an effect or is rejected': [
      ['test/options/walk.test.ts', '[G1.12] has a probe that needs it, through this call, or a test that shows its effect, or that it is rejected by name'],
      ['test/options/walk.test.ts', '[G1.12] finds an option that is added to %s, which has no probe'],
    ],
    'the first use starts the whole Heed': [
      [`${start}/first-use.test.ts`, '[R12.1] continues the run of another agent: %s'],
      [`${start}/first-use.test.ts`, '[R12.1] sends the due notification of another agent: %s'],
      [`${start}/first-use.test.ts`, 'a handler without a request'],
    ],
    'a server is ready when every agent is registered': [[`${start}/first-use.test.ts`, '[R12.2] is ready although no request has used an agent, and every agent is registered then']],
    'two sends in one tick name one run': [[`${start}/one-tick.test.ts`, '[A4.5] each receipt names the run that takes its signal, and the run can be sent to by that id']],
    'the branch, the attributes and the action agree': [[`${start}/one-tick.test.ts`, '[A4.6] the branch, its attributes and the action agree']],
    'a schedule that is declared again keeps its phase': [[`${start}/declared-again.test.ts`, '[S1.12] keeps its phase, declared %s']],
    'the request context of a waiting call survives a restart': [
      [`${start}/kept-context.test.ts`, '[R10.1] runs with the JSON part of its request context, %s'],
      [`${start}/kept-context.test.ts`, '[R10.3] does not run its tool where a part of the context was lost, and the model reads why'],
    ],
    'a failed run is logged with its remedy': [[`${start}/silent-options.test.ts`, '[T2.3] is logged with its remedy where no caller receives the error']],
    'without a key the program of README says so and ends': [['examples/docs.test.ts', 'README.md: without a key its program says which variable to set, and ends']],
    'streamOptions.runId': [
      [`${start}/silent-options.test.ts`, '[A3.9] runId is the id of the run%s'],
      [`${start}/silent-options.test.ts`, '[A3.9] %s with the id of a run that the thread has is rejected and stores nothing'],
    ],
    'options of a send that cannot take effect': [
      ['test/thread/refused-sends.test.ts', '[A3.10] %s is rejected by name: %j'],
      ['test/http/letter.test.ts', '[H5.6] an unknown name in ifActive, ifIdle or streamOptions is rejected by its name, and so is one that has no effect'],
    ],
    'streamOptions.memory.thread': [[`${start}/silent-options.test.ts`, '[A3.9] memory.thread sets the title and merges the metadata, of a new thread and of an existing one']],
    'title and metadata of an existing thread': [
      [`${memory}/described-by-calls.test.ts`, 'of %s: of a thread that exists the title is set and the metadata is merged'],
      [`${memory}/described-by-calls.test.ts`, 'sets the title, merges the metadata and sets working memory, also over HTTP'],
    ],
    'arguments of memory that cannot take effect': [[`${memory}/without-effect.test.ts`, '[M1.25] what cannot take effect is rejected by name']],
    'the outcome of input with which a processor failed': [['test/processors/outcomes.test.ts', '[A4.4] that %s fails with is persisted, with the code, and the same when it is sent again']],
    'an agent by its key': [['test/http/agent-by-key.test.ts', '[H5.7] every route finds an agent by its key in `agents` too']],
    'a LibSQLVector of another database': [[`${start}/silent-options.test.ts`, '[K2.7] rejects a LibSQLVector of another database than the storage']],
    'the default file of an agent without a Heed': [[`${start}/silent-options.test.ts`, '[M1.14] the default file of an agent without a Heed is named in one line of the log']],
    'semanticRecall on a database server': [[`${memory}/server.test.ts`, '[K2.1] has an index: agents recall what other threads said, and programs search']],
    'default options of legacy methods': [[`${start}/silent-options.test.ts`, '[G1.7] default options of the legacy methods are for each of them alone']],
    'provider options on instructions': [[`${start}/silent-options.test.ts`, '[G1.7] provider options on instructions that are about the call are options of the call']],
  },
  types: {
    'a LibSQLVector is a vector': [[`${examples}/memory-examples.ts`, 'vector: new LibSQLVector(']],
    'a model by a function, and from the environment': [[types, "model: async () => 'openai/gpt-5.5'"], [types, "model: process.env.MODEL ?? 'openai/gpt-5.5'"]],
    'streamOptions.memory without a thread': [[types, 'streamOptions: { memory: { options: { lastMessages: 4 } } }']],
    'a send needs one of two targets': [[types, "agent.sendMessage('Hi', {})"], [types, "agent.sendMessage('Hi', { threadId: 't' })"]],
    'the names of types': [[`${examples}/signal-examples.ts`, 'AgentChunkType, AgentExecutionOptions, AgentGenerateOptions, AgentStreamOptions']],
    'every example compiles against the package': [['test/package/programs/examples.ts', 'every form of an agent and of a memory can be constructed'], ['test/package/programs/examples.ts', 'the calls of the pages run']],
  },
  'memory and recall': {
    'the first search is complete, or says that it is not': [
      [`${memory}/first-search.test.ts`, '[K1.1] finds every message: the index is made before it'],
      [`${memory}/first-search.test.ts`, '[K1.1] gives the first run of an agent its evidence'],
      [`${memory}/first-search.test.ts`, '[K1.17] that cannot read more than 10,000 messages says so: in its result, over HTTP, and in the block of the prompt'],
      [`${memory}/first-search.test.ts`, '[K1.17] the block of a run says that messages are missing'],
    ],
    'TokenLimiter drops old recall blocks before history': [
      [`${memory}/recall-window.test.ts`, '[K2.15] leaves out the blocks of earlier runs before any message of the conversation'],
      [`${memory}/recall-window.test.ts`, '[K2.15] counts what the run itself adds, with the same result for the first run as for later ones'],
    ],
    'all recall blocks of a window are bounded': [
      [`${memory}/recall-window.test.ts`, '[K2.14] have at most 1,500 tokens together, the newest question has its answer, and the prefix changes at cuts of the window alone'],
      [`${memory}/recall-window.test.ts`, '[K2.18] says once that no more messages are added, %s'],
    ],
    'repeated questions do not displace facts': [
      [`${memory}/repeated-questions.test.ts`, '[K2.16] find the facts as they did the first time, also in other words%s'],
      [`${memory}/repeated-questions.test.ts`, '[K2.16] equal statements are quoted once'],
      [`${memory}/repeated-questions.test.ts`, '[K2.19] %s and answers without content are found after the fact that they are about'],
    ],
    'the scope of recall': [[`${memory}/specification/recall.test.ts`, 'topK, messageRange and scope'], ['docs/recall.md', '**It reaches across threads**']],
    'input processors see what memory added': [[`${memory}/memory-first.test.ts`, '[G3.3] see working memory and what was recalled, in processInput and in processInputStep']],
    'a search within a range of dates': [[`${memory}/lists.test.ts`, '[K2.17] a search within a range of dates returns messages of that range alone']],
    'a window of exactly N': [[`${memory}/lists.test.ts`, '[P1.6] a window of exactly N has N messages before the question and begins with one of a user']],
    'a failed upload leaves no bytes': [
      [`${memory}/memory-first.test.ts`, '[G3.6] leaves a note in history in place of its bytes, and the thread goes on'],
      ['test/processors/failed-input.test.ts', '[G3.7] keeps a note in place of the bytes of its files, sent, asked and in attachments, and the thread goes on'],
    ],
    'the messages of a new thread': [[`${memory}/lists.test.ts`, '[M1.20] the messages of a thread that does not exist yet are an empty list: in the process, over HTTP and through the client']],
    'a text is embedded once': [
      [`${memory}/embedding-cost.test.ts`, '[K1.19] no text twice: clones, other threads and other resources use the vectors that are stored'],
      [`${memory}/embedding-cost.test.ts`, '[K1.19] a model by its name and as an object is one embedder'],
    ],
    'the cost of embedding is documented': [['docs/recall.md', '| a paid embedder |'], ['docs/recall.md', '| local embedder, `onnxruntime-node` |']],
    'the fastest local engine': [['src/embed/minilm/minilm.test.ts', 'localEmbedder().engine']],
    'a progress bar for long indexing': [[`${memory}/embedding-cost.test.ts`, '[K1.21] is a bar of the console logger on a terminal, which is removed at the end, and no line']],
    'InMemoryStore searches every row': [['src/store/sqlite/in-memory.test.ts', 'finds every message, also the first of thousands, and the event loop runs meanwhile']],
  },
  'programs that come from elsewhere': {
    'a processor may edit in place': [
      ['test/processors/edited-in-place.test.ts', 'processInput: the model reads and the store keeps what it left'],
      ['test/processors/edited-in-place.test.ts', '%s: text, steps, the store and the next prompt'],
      ['test/processors/read-only.test.ts', '[G2.44] processInput that %s ends the run, and the error names processInputStep'],
    ],
    'metadata of an input message': [[`${memory}/kept-as-saved.test.ts`, '[M1.22] the metadata of an input message'], [`${memory}/kept-as-saved.test.ts`, 'with parts and no id']],
    'what is saved is what is recalled': [[`${memory}/kept-as-saved.test.ts`, 'is recalled with the parts that it was saved with: %s']],
    'entries of a model list': [['test/agent/model-lists.test.ts', 'has settings, provider options and headers of its own, over those of the call'], ['test/agent/model-lists.test.ts', 'is refused with %s']],
    'the threadId of a saved message': [[`${memory}/lists.test.ts`, '[M1.19] saveMessages stores a message in the thread that it names, whatever the form of its content']],
    'updatedAt after a deletion': [[`${memory}/lists.test.ts`, '[M1.18] deleting messages changes updatedAt of their thread, and deleting none does not']],
    'threads of one millisecond': [[`${memory}/lists.test.ts`, '[M1.17] threads of one millisecond are in the order in which they were created, in both directions and page by page']],
    'a provider that finishes with an error': [['test/agent/model-lists.test.ts', 'and sends none: the call fails, and history has the answer as incomplete']],
    'a hook that returns {}': [['test/processors/edited-in-place.test.ts', 'of %s changes nothing']],
    'the working-memory tool accepts what has one meaning': [
      [`${memory}/working-memory.test.ts`, '[M2.15] is changed by a call without the wrapper, or with JSON text, that can only mean one thing'],
      [`${memory}/working-memory.test.ts`, '[M2.15] is changed by a call whose whole input is JSON text'],
      [`${memory}/working-memory.test.ts`, '[M2.15] that is a text is changed by a call whose whole input is a text'],
    ],
    'history has the decision about a call': [['test/thread/approved-by.test.ts', '[R6.11] after a decision, history says who decided what']],
    'common words in ranking': [
      [`${memory}/repeated-questions.test.ts`, '[K1.18] a word that says nothing about the topic is no match'],
      [`${memory}/repeated-questions.test.ts`, '[K1.20] a common word that is all that matches is not before what is nearer in meaning'],
    ],
  },
  clients: {
    'a page after kill -9': [['test/browser/outage.campaign.ts', '[U1.12] %s: after kill -9 during a text the page follows the run that continues, and shows that it runs']],
    'a send during an outage': [['test/browser/outage.campaign.ts', '[U1.9] %s: a message that is sent during an outage stays, is marked, and is sent again on request, once']],
    'steering messages in the queue': [['test/browser/outage.campaign.ts', '[U1.14] useThread: a message that steers is shown once, and the queue says what each of its entries will do']],
    'no error in the console for a new thread': [['test/browser/outage.campaign.ts', '[U1.13] %s: a new thread causes no error in the console']],
    'decisions about runs without a thread': [['test/http/without-thread.test.ts', '[H1.11] over HTTP: its caller can %s, and gets the rest of the run']],
    'objects, runId, the context in the query, suspendPayload': [
      ['test/http/without-thread.test.ts', '[H5.1] find the value of a structured answer in its chunks'],
      ['test/http/without-thread.test.ts', '[H5.1] name their run, with and without a thread'],
      ['test/http/without-thread.test.ts', '[H5.1] bring a request context in the query, in base64'],
      ['test/http/without-thread.test.ts', "finishReason: 'suspended', suspendPayload:"],
    ],
    'the calls that differ': [['test/http/differences.test.ts', '[H5.3] are those of this test']],
    'the chat protocol of the AI SDK': [['test/http/chat-route.test.ts', '[H1.12] sends the last message to the thread and reads the answer, with the ids of history']],
    'queueMessage of an older server': [['test/http/older-server.test.ts', 'to the message routes is sent signals, each once, and nothing is queued']],
    'the inbox tool offers no threadId': [['test/inbox/tool.test.ts', '[N3.3] is about its own thread and resource, whatever the model passes']],
    'the metadata of agents': [['test/http/without-thread.test.ts', "expect(await client.listAgents()).toMatchObject({ guide: { metadata: { team: 'travel', tenant: 'none' } } })"]],
    'a row of the type v2': [['src/signals/conversions.test.ts', "[{ type: 'email' }, 'v2', 'reactive', 'email']"]],
    'a virtual clock settles on every store': [['test/schedule/settled-clock.test.ts', 'has moved when what became due is stored: schedules and notifications, and what the agent answered']],
  },
  pages: {
    'the programs of README in an empty folder, with and without a key, on each Node': [
      ['test/package/programs/readme.ts', 'the first program of README needs no key, and an older Node rejects it with one sentence'],
      ['test/package/programs/readme.ts', 'the second program of README prints its answer with a key'],
      ['test/package/programs/readme.ts', 'the second program of README says without a key which variable to set, and ends'],
    ],
    'README installs, runs without a key, and draws a picture': [['README.md', 'npm install heed'], ['README.md', '┌─ thread ─'], ['examples/docs.test.ts', '$page:$line runs and prints what it says']],
    'an older Node': [['README.md', 'needs Node 24 or newer'], [`${start}/node-version.test.ts`, '[R12.3] $specifier is not imported by a Node that is too old, and the error names the one to use']],
    'a table of imports': [['docs/coming-from-mastra.md', '| in Mastra | in Heed |']],
    'an example for each subject': [['examples/examples.test.ts', 'are all here, and each says what it shows']],
    "GitHub's priorities": [['docs/sources.md', 'Priorities: a result that passed is `low`']],
    'the length of keys': [['docs/server.md', 'A key of `apiKeys()` has at least 16 characters'], ['docs/sources.md', 'A `secret` has at least 16 characters']],
    'thread ids are global': [['docs/threads.md', 'Thread ids are unique in a storage, across all resources']],
    'when the local embedder is loaded': [['docs/recall.md', 'The model is loaded with the first text or question.']],
  },
}
