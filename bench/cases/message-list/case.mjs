export const messageList = {
  name: 'message-list',
  title: '4,000 messages into a MessageList and out as a prompt',
  about:
    'Stored messages, each a new object: user messages and answers, every tenth with a tool call. `first` is the first time in a ' +
    'process, `warm` the median of later ones; `parse` is JSON.parse of the same messages, the minimum cost. Milliseconds.',
  sides: ['heed', 'peer'],
  rounds: { full: 7, quick: 2 },
  input: { full: { messages: 4_000, warmup: 5, runs: 15 }, quick: { messages: 4_000, warmup: 2, runs: 5 } },
  comparisons: [
    { measure: 'first', of: 'heed', atMost: 50, unit: ' ms' },
    { measure: 'warm', of: 'heed', atMost: 50, unit: ' ms' },
    { measure: 'warm over parse', of: 'heed' },
    { measure: 'first', of: 'heed', to: 'peer' },
    { measure: 'warm', of: 'heed', to: 'peer' },
  ],
}
