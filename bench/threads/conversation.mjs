/** So many messages of a conversation, a second apart, from number `from` on. */
export function conversation(count, { from = 0, threadId, resourceId } = {}) {
  return Array.from({ length: count }, (_, index) => {
    const nth = from + index
    return {
      id: `${threadId}-${nth}`,
      threadId,
      resourceId,
      role: nth % 2 === 0 ? 'user' : 'assistant',
      createdAt: new Date(1_700_000_000_000 + nth * 1_000),
      content: { format: 2, parts: [{ type: 'text', text: `Message ${nth}: what was said of the plan, and who was to do it by when.` }] },
    }
  })
}

/** Stores a conversation in pieces. */
export async function fill(memory, target, count, atOnce = 2_000) {
  await memory.createThread(target)
  for (let from = 0; from < count; from += atOnce) {
    await memory.saveMessages({ messages: conversation(Math.min(atOnce, count - from), { from, ...target }) })
  }
}
