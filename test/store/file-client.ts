import { createClient } from '@libsql/client'
import type { LibSQLClient, LibSQLTransaction } from '../../src/store/sqlite/remote.ts'

/**
 * A client of a file, which stands for that of a server. The driver of files keeps a statement open that met another writer, and the
 * connection its lock with it, until the statement is collected as garbage: other clients, and later transactions of that connection, find
 * the file locked for as long. So a client that met another writer opens its connections anew, once none is used.
 */
export function fileClient(url: string): LibSQLClient {
  const client = createClient({ url })
  let open = 0
  let hasMetWriter = false
  let waiting: Array<() => void> = []

  const ended = () => {
    open -= 1
    if (open > 0) return
    for (const go of waiting) go()
    waiting = []
  }
  const noticed = (error: unknown): never => {
    if (String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')) hasMetWriter = true
    throw error
  }
  const renewed = async () => {
    while (hasMetWriter && open > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    if (!hasMetWriter) return
    hasMetWriter = false
    client.reconnect()
  }
  const begin = async (mode: 'write' | 'read' | 'deferred'): Promise<LibSQLTransaction> => {
    open += 1
    try {
      return await client.transaction(mode)
    } catch (error) {
      ended()
      return noticed(error)
    }
  }

  return {
    async transaction(mode) {
      await renewed()
      const transaction = await begin(mode)
      const { execute, batch } = transaction
      let isOpen = true
      return {
        execute: (statement) => execute.call(transaction, statement).catch(noticed),
        ...(batch && { batch: (statements) => batch.call(transaction, statements).catch(noticed) }),
        executeMultiple: (sql) => transaction.executeMultiple(sql),
        commit: () => transaction.commit().catch(noticed),
        close() {
          transaction.close()
          if (isOpen) ended()
          isOpen = false
        },
      }
    },
    close: () => client.close(),
  }
}
