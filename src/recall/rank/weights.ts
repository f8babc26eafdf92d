/** How much each reason counts. Chosen on conversations; `npm run bench:recall` shows how, and what other choices give. */
export interface Weights {
  /** Words that it shares with the question. */
  words: number
  /** Words that it and the message before it share with the question. */
  wordsOfPair: number
  /** How near its meaning is to that of the question. */
  meaning: number
  /** How near the meaning of it and of the message before it is. */
  meaningOfPair: number
  /** The score of the message before it, and of the one after it. */
  previous: number
  next: number
  /** How good the best of its thread are. */
  thread: number
  /** Words that its whole thread shares with the question. */
  wordsOfThread: number
  /** What a message loses that is itself a question. */
  question: number
}

export const defaultWeights: Weights = {
  words: 0.7,
  wordsOfPair: 0.15,
  meaning: 0.7,
  meaningOfPair: 0.5,
  previous: 0.2,
  next: 0.1,
  thread: 0.3,
  wordsOfThread: 0.2,
  question: 0.1,
}
