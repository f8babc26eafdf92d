/** The messages that the store has of a thread, oldest first. */
export async function storedMessages(memory, target) {
  const { messages } = await memory.recall({ ...target, perPage: false })
  return messages
}
