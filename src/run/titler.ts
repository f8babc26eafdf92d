/** Makes a title of the first words of a thread. Rejects when the model won't, and with the signal's reason when it aborts. */
export type Titler = (words: string, signal: AbortSignal, threadId: string) => Promise<string>
